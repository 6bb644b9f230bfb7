"""The broker's configuration: one node that is broker and controller, made for fast starts on one machine."""

from pathlib import PurePath

from tallyhook.errors import LocalStackError

NODE_ID = 1
HEAP_MEGABYTES = 768


def broker_settings(
    *, data: PurePath, broker_port: int, controller_port: int, listen: str = "127.0.0.1"
) -> dict[str, str]:
    """Names and values of `server.properties`; clients are told 127.0.0.1 whatever address it listens on.

    Raises LocalStackError for a folder Kafka cannot take.
    """
    if "," in str(data):
        raise LocalStackError(f"Kafka cannot keep its data in a folder with a comma in its name: {data}")
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://{listen}:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "num.partitions": 8,
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 8,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 8,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        # A consumer group is ready at once instead of waiting for further members.
        "group.initial.rebalance.delay.ms": 0,
        # Partitions of a killed consumer (new group protocol) go on after 6 s; the defaults allow no less than 45.
        "group.consumer.min.session.timeout.ms": 6000,
        "group.consumer.session.timeout.ms": 6000,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.heartbeat.interval.ms": 1500,
        # A broker that was killed is let in again when its old registration has expired.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # Segments and their indexes are allocated in advance, and there are many partitions.
        "log.segment.bytes": 64 * 1024 * 1024,
        "log.index.size.max.bytes": 1024 * 1024,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        "log.cleaner.threads": 1,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "num.recovery.threads.per.data.dir": 2,
        # Above the largest body that the ingress can be told to take.
        "message.max.bytes": 9 * 1024 * 1024,
    }
    return {name: str(value) for name, value in settings.items()}


def as_properties(settings: dict[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def as_environment(settings: dict[str, str]) -> dict[str, str]:
    """The variables from which Kafka's container image makes the same file."""
    return {"KAFKA_" + name.upper().replace(".", "_"): value for name, value in settings.items()}


def _escape(value: str) -> str:
    """Java reads these files as Latin-1 and takes backslashes as escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
