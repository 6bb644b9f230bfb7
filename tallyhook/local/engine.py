"""Whether a Docker engine of this machine answers, decided within two seconds."""

import threading
from urllib.parse import urlsplit

DETECTION_SECONDS = 2.0
LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")


def engine_answers(seconds: float = DETECTION_SECONDS) -> bool:
    """Asks the engine that DOCKER_HOST or the default socket names.

    An engine of another machine counts as none: the servers of the local stack are reached by 127.0.0.1 only.
    """
    answers = threading.Event()

    def ask() -> None:
        if _ask_once(seconds):
            answers.set()

    # The client's own time-outs do not bound name look-ups and version talks, so the whole question is bounded here.
    asking = threading.Thread(target=ask, name="docker-detection", daemon=True)
    asking.start()
    asking.join(seconds)
    return answers.is_set()


def _ask_once(seconds: float) -> bool:
    try:
        import docker
        from docker.errors import DockerException
        from testcontainers.core.docker_client import DockerClient
    except ImportError:
        return False
    try:
        client = docker.from_env(timeout=max(1, int(seconds)))
        try:
            return bool(client.ping()) and is_of_this_machine(DockerClient().host())
        finally:
            client.close()
    except (DockerException, OSError):
        return False


def is_of_this_machine(host: str) -> bool:
    """Whether a host name that testcontainers gives for the engine is the loopback."""
    return (urlsplit(f"//{host}").hostname or "") in LOCAL_HOSTS
