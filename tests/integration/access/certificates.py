"""A certificate authority of the test's own, made with the openssl command."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OPENSSL = shutil.which("openssl")
DAYS = "2"


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of a certificate and its key; `bundle` holds both, as Kafka's PEM keystores want them."""

    certificate: Path
    key: Path
    bundle: Path


class Authority:
    """Signs certificates that end in two days.

    Args:
        folder: where its files are kept.
        name: its common name.
    """

    def __init__(self, folder: Path, name: str = "Tallyhook test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._key = folder, folder / "ca.key"
        self.certificate = folder / "ca.pem"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS),
            *("-subj", f"/CN={name}", "-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def issue(self, name: str, *, hosts: str | None = None) -> Certificate:
        """A certificate of this common name; `hosts` is its subjectAltName, such as `IP:127.0.0.1`."""
        key, request, certificate = (self._folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        _openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request)),
        )
        extensions = self._folder / f"{name}.ext"
        lines = ["basicConstraints=CA:FALSE", *([f"subjectAltName={hosts}"] if hosts else [])]
        extensions.write_text("\n".join(lines) + "\n", encoding="ascii")
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key)),
            *("-CAcreateserial", "-days", DAYS, "-extfile", str(extensions), "-out", str(certificate)),
        )
        bundle = self._folder / f"{name}.bundle.pem"
        bundle.write_text(key.read_text() + certificate.read_text(), encoding="ascii")
        return Certificate(certificate, key, bundle)


def _openssl(*arguments: str) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *arguments], check=True, capture_output=True, timeout=30)
