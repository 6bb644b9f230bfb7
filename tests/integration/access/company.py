"""An installation as a company has it: secured servers, a user of Kafka and a role of PostgreSQL for each process."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tallyhook.operations.access.acl import PROCESSES, Process, Right, default_principals, rights
from tallyhook.operations.access.grants import Role, role_names
from tallyhook.settings import Installation, KafkaSettings

from .secured_kafka import SecuredKafka
from .secured_postgres import PASSWORD, SecuredPostgres

PARTITIONS = 2
STOP_SECONDS = 40.0


@dataclass
class Company:
    """Servers and installation; the rights are those of the tables in the code, and nothing more."""

    kafka: SecuredKafka
    postgres: SecuredPostgres
    installation: Installation
    certificate: Path
    folder: Path
    public_key: str
    rights: list[Right] = field(default_factory=list)

    @property
    def roles(self) -> Mapping[Role, str]:
        """The names of the roles."""
        return role_names(self.installation.schema_name)

    def environment(self, process: Process | None, role: Role | None) -> dict[str, str]:
        """The settings of one process, with its user and its role."""
        found = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        found |= {
            "TALLYHOOK_TOPIC_PREFIX": self.installation.topic_prefix,
            "TALLYHOOK_SCHEMA": self.installation.schema_name,
            "TALLYHOOK_PARTITIONS": str(self.installation.partitions),
            "TALLYHOOK_INGRESS_PUBLIC_KEYS": self.public_key,
            "TALLYHOOK_KAFKA_REQUEST_TIMEOUT_SECONDS": "5",
            "TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS": "6",
            "TALLYHOOK_STREAM_DATA_DIR": str(self.folder / "streams"),
        }
        if process is not None:
            found |= {
                "TALLYHOOK_KAFKA_BOOTSTRAP": self.kafka.sasl_address,
                "TALLYHOOK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
                "TALLYHOOK_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
                "TALLYHOOK_KAFKA_SASL_USERNAME": user_of(process),
                "TALLYHOOK_KAFKA_SASL_PASSWORD": PASSWORD,
                "TALLYHOOK_KAFKA_SSL_CA_LOCATION": str(self.certificate),
            }
        if role is not None:
            found |= {
                "TALLYHOOK_DATABASE_URL": self.postgres.url_of(self.roles[role]),
                "TALLYHOOK_DATABASE_PASSWORD": PASSWORD,
            }
        return found

    def root(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the super user."""
        return psycopg.connect(self.postgres.address, autocommit=True)

    def kafka_of(self, process: Process) -> KafkaSettings:
        """The settings of a client of this process's user."""
        return self.kafka.sasl(user_of(process), PASSWORD)


def user_of(process: Process) -> str:
    """The user that a process is by default."""
    return default_principals()[process].removeprefix("User:")


def every_right(installation: Installation) -> list[Right]:
    """The table as the command prints it."""
    return rights(installation, default_principals())


def passwords() -> dict[str, str]:
    """Of every user."""
    return {user_of(process): PASSWORD for process in PROCESSES}


class Stage:
    """One process of the pipeline on a port of its own; a context that ends it."""

    def __init__(self, name: str, environment: Mapping[str, str], port_setting: str, port: int, log: Path) -> None:
        self.name, self._port, self._log = name, port, log
        self._environment = {**environment, port_setting: str(port)}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tallyhook", self.name], env=self._environment, stdout=log, stderr=log
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    @property
    def url(self) -> str:
        """Of the door, or of the health pages."""
        return f"http://127.0.0.1:{self._port}"

    def log(self) -> str:
        """What it wrote."""
        return self._log.read_text(errors="replace")

    def ready(self) -> bool:
        """Whether it says so."""
        return self.reasons() == []

    def reasons(self) -> list[str] | None:
        """Why it is not ready; None where it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=3) as answer:
                answer.read()
                return []
        except urllib.error.HTTPError as refusal:
            return list(json.loads(refusal.read(100_000)).get("reasons", []))
        except (OSError, ValueError):
            return None
