# syntax=docker/dockerfile:1
# One image for every process: the command chooses which, e.g. `docker run tallyhook ingress`.

ARG PYTHON_IMAGE=python:3.11-slim-bookworm

# Build stage: everything is installed into one virtual environment, which is all that the final stage takes over.
FROM ${PYTHON_IMAGE} AS build

# faust-streaming brings no wheel for aarch64 and is compiled there; the compiler stays behind in this stage.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends build-essential \
 && rm -rf /var/lib/apt/lists/*

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/tallyhook
ENV PATH=/opt/tallyhook/bin:$PATH

WORKDIR /src

# The dependencies come first and alone: a change of the program does not install them again.
COPY requirements/base.txt requirements/base.txt
RUN pip install --requirement requirements/base.txt

COPY pyproject.toml README.md LICENSE ./
COPY bench bench
COPY ingress ingress
COPY schemas schemas
COPY sinks sinks
COPY streams streams
COPY tallyhook tallyhook
# Without the module that arms them, failpoints cannot kill a process of this image, whatever its environment says.
RUN rm tallyhook/failpoint_arming.py
# `pip check` fails the build when the pins do not satisfy the project.
RUN pip install --no-deps . \
 && pip check \
 && python -m compileall -q /opt/tallyhook/lib


FROM ${PYTHON_IMAGE} AS run

ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="tallyhook" \
      org.opencontainers.image.description="Exactly-once business effects from at-least-once, out-of-order payment webhooks" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# A fixed number, so that a cluster can demand a user that is not root and volumes can be owned by it.
RUN groupadd --gid 10001 tallyhook \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin tallyhook \
 && install --directory --owner=10001 --group=10001 --mode=0750 /var/lib/tallyhook /var/lib/tallyhook/streams

COPY --from=build /opt/tallyhook /opt/tallyhook

# The file system may be read-only: the only folder a process writes to is the stream's, and /tmp.
ENV PATH=/opt/tallyhook/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TALLYHOOK_STREAM_DATA_DIR=/var/lib/tallyhook/streams

WORKDIR /var/lib/tallyhook
USER 10001:10001

# Webhooks, and the health pages of stream, sink and relay.
EXPOSE 8080 9101 9102 9103

# Asks the health page of whichever process the container runs whether it lives; a job is healthy while it runs. A
# supervisor that replaces unhealthy containers must not do so because a database is away, hence not `readyz`.
HEALTHCHECK --interval=15s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "-m", "tallyhook.operations.healthcheck", "livez"]

ENTRYPOINT ["tallyhook"]
CMD ["--help"]
