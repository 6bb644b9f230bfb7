"""A broker as a company has it: TLS with SCRAM or client certificates, ACLs, and denied is what is not allowed."""

from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tallyhook.local.kafka_config import as_properties, broker_settings
from tallyhook.local.kafka_server import BROKER_PORT, CONTROLLER_PORT, KafkaServer
from tallyhook.local.ports import Ports
from tallyhook.local.state_files import write_atomically
from tallyhook.operations.access.acl import Operation, Resource, Right
from tallyhook.settings import KafkaSettings

from .certificates import Authority, Certificate

SASL_PORT, MTLS_PORT = "kafka-sasl", "kafka-mtls"
SUPER_USER = "User:ANONYMOUS"
"""Who comes by the plain listener, which is for the test's own administration alone."""

ANSWER_SECONDS = 20.0


_RESOURCES: dict[Resource, ResourceType] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,  # librdkafka's name for it
}
_OPERATIONS: dict[Operation, AclOperation] = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}


class SecuredKafka(KafkaServer):
    """Adds a SASL_SSL listener and one that demands client certificates.

    Args:
        authority: whose client certificates are taken.
        certificate: the broker's own.
    """

    def __init__(
        self, state_dir: Path, ports: Ports, cache: Path, *, authority: Authority, certificate: Certificate
    ) -> None:
        super().__init__(state_dir, ports, cache, lambda _progress: None)
        self._authority, self._certificate = authority, certificate

    @property
    def sasl_address(self) -> str:
        """host:port for SASL over TLS."""
        return f"127.0.0.1:{self.ports[SASL_PORT]}"

    @property
    def mtls_address(self) -> str:
        """host:port for clients with certificates."""
        return f"127.0.0.1:{self.ports[MTLS_PORT]}"

    @property
    def admin(self) -> AdminClient:
        """The super user's client."""
        return AdminClient({"bootstrap.servers": self.address})

    def sasl(self, user: str, password: str) -> KafkaSettings:
        """The settings of a client with SCRAM."""
        return KafkaSettings.model_validate(
            {
                "bootstrap": self.sasl_address,
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_username": user,
                "sasl_password": password,
                "ssl_ca_location": self._authority.certificate,
            }
        )

    def make_users(self, passwords: dict[str, str]) -> None:
        """Users of SCRAM-SHA-512 with their passwords."""
        upserts: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(
                user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode()
            )
            for user, password in passwords.items()
        ]
        client = self.admin  # held: a client that is collected cancels what was asked
        answers = client.alter_user_scram_credentials(upserts, request_timeout=ANSWER_SECONDS)
        for answer in answers.values():
            answer.result(ANSWER_SECONDS)

    def allow(self, rights: Iterable[Right]) -> None:
        """Adds ACLs."""
        client = self.admin
        for answer in client.create_acls([_binding(right) for right in rights]).values():
            answer.result(ANSWER_SECONDS)

    def take_away(self, right: Right) -> None:
        """Removes one ACL, which must be there."""
        client = self.admin
        answers = client.delete_acls([_filter(right)])
        assert sum(len(answer.result(ANSWER_SECONDS)) for answer in answers.values()) == 1, right

    def _write_properties(self) -> Path:
        settings = broker_settings(
            data=self.data.resolve(),
            broker_port=self.ports[BROKER_PORT],
            controller_port=self.ports[CONTROLLER_PORT],
        )
        more = f"SASL_SSL://{self.sasl_address},SSL://{self.mtls_address}"
        settings |= {
            "listeners": f"{settings['listeners']},{more}",
            "advertised.listeners": f"{settings['advertised.listeners']},{more}",
            "listener.security.protocol.map": (
                f"{settings['listener.security.protocol.map']},SASL_SSL:SASL_SSL,SSL:SSL"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificate.bundle),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.certificate),
            "listener.name.ssl.ssl.client.auth": "required",
            # CN=ingress,... is the principal User:ingress.
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": SUPER_USER,
        }
        path = self.folder / "server.properties"
        write_atomically(path, as_properties(settings))
        return path.resolve()

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        command = super()._java(main_class, *arguments)
        return [command[0], "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug", *command[1:]]


def _binding(right: Right) -> AclBinding:
    return AclBinding(
        _RESOURCES[right.resource],
        right.name,
        ResourcePatternType[right.pattern.upper()],
        right.principal,
        "*",
        _OPERATIONS[right.operation],
        AclPermissionType.ALLOW,
    )


def _filter(right: Right) -> AclBindingFilter:
    return AclBindingFilter(
        _RESOURCES[right.resource],
        right.name,
        ResourcePatternType[right.pattern.upper()],
        right.principal,
        "*",
        _OPERATIONS[right.operation],
        AclPermissionType.ALLOW,
    )
