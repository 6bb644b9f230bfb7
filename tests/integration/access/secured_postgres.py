"""PostgreSQL as a company has it: TLS with a certificate to be verified, passwords, and a role for each process."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from tallyhook.local.ports import Ports
from tallyhook.local.postgres_home import PostgresHome
from tallyhook.local.postgres_server import DATABASE, USER, PostgresServer

from .certificates import Certificate

_DEBIAN = Path("/usr/lib/postgresql")
PASSWORD = "of the test alone"


def with_tls() -> Path | None:
    """The folder of PostgreSQL's binaries that know TLS, which those of the Python package do not; None without."""
    found = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


class SecuredPostgres(PostgresServer):
    """Everybody but the super user comes by TLS and with a password.

    Args:
        binaries: with TLS.
        certificate: the server's, valid for localhost.
    """

    def __init__(
        self, state_dir: Path, ports: Ports, *, binaries: Path, certificate: Certificate, authority: Path
    ) -> None:
        super().__init__(state_dir, ports, lambda _progress: None)
        self._binaries, self._certificate, self._authority = binaries, certificate, authority

    @property
    def home(self) -> PostgresHome:
        """The usual place, with other binaries."""
        return replace(super().home, bin=self._binaries)

    def url_of(self, role: str, *, port: int | None = None) -> str:
        """libpq URI of a role, whose server certificate is verified down to its host name."""
        return (
            f"postgresql://{role}@localhost:{port or self.ports['postgres']}/{DATABASE}"
            f"?sslmode=verify-full&sslrootcert={self._authority}"
        )

    def set_passwords(self, roles: list[str]) -> None:
        """The same for every role."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            for role in roles:
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(PASSWORD))
                connection.execute(statement)

    def _initialise_once(self) -> None:
        super()._initialise_once()
        data = self.home.data.resolve()
        rules = [
            f"host all {USER} 127.0.0.1/32 trust",
            "hostssl all all 127.0.0.1/32 scram-sha-256",
            "hostnossl all all 127.0.0.1/32 reject",
        ]
        (data / "pg_hba.conf").write_text("\n".join(rules) + "\n", encoding="ascii")
        for name, source in (("server.crt", self._certificate.certificate), ("server.key", self._certificate.key)):
            shutil.copyfile(source, data / name)
            (data / name).chmod(0o600)
            if self.home.owner is not None:
                os.chown(data / name, *self.home.owner)

    def _command(self) -> list[str]:
        return [*super()._command(), "-c", "ssl=on", "-c", "password_encryption=scram-sha-256"]
