/* Shows a process a wall clock that differs from the machine's by what a file says, and may jump at any moment.
 *
 * Preloaded into every process of a pipeline; it acts on those alone whose last argument names a file of the folder
 * in CLOCK_SHIFT_FOLDER. The file holds one signed 64-bit number, the shift in nanoseconds. Monotonic clocks are left
 * as they are, as they are where an administrator or NTP sets a machine's clock. A deadline that a program made of its
 * wall clock is given to the kernel by the machine's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000LL
/* No machine has been up for thirty years, so a deadline after this is one of the wall clock. */
#define WALL_SECONDS 1000000000LL

static const volatile int64_t *shift;

__attribute__((constructor)) static void find_shift(void)
{
    const char *folder = getenv("CLOCK_SHIFT_FOLDER");
    char arguments[16384], path[4096];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, arguments, sizeof arguments - 1);
    if (file >= 0)
        close(file);
    if (folder == NULL || length < 2)
        return;
    arguments[length] = 0;
    const char *last = arguments + length - 1;
    while (last > arguments && last[-1] != 0)
        last--;
    if (strchr(last, '/') != NULL || snprintf(path, sizeof path, "%s/%s", folder, last) >= (int)sizeof path)
        return;
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED)
        shift = found;
}

static int64_t shift_nanoseconds(void)
{
    return shift == NULL ? 0 : *shift;
}

static struct timespec moved(struct timespec at, int64_t nanoseconds)
{
    int64_t whole = (int64_t)at.tv_sec * NANOSECONDS + at.tv_nsec + nanoseconds;
    return (struct timespec){.tv_sec = whole / NANOSECONDS, .tv_nsec = whole % NANOSECONDS};
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int outcome = real(clock, at);
    if (outcome == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *at = moved(*at, shift_nanoseconds());
    return outcome;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

static const struct timespec *machine_deadline(const struct timespec *deadline, struct timespec *room)
{
    if (deadline == NULL || deadline->tv_sec < WALL_SECONDS)
        return deadline;
    *room = moved(*deadline, -shift_nanoseconds());
    return room;
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    struct timespec room;
    if (real == NULL)
        real = dlsym(RTLD_NEXT, "cnd_timedwait");
    return real(condition, mutex, machine_deadline(deadline, &room));
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec room;
    if (real == NULL)
        real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (real == NULL)
        real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real(condition, mutex, machine_deadline(deadline, &room));
}
