"""Ports of a state directory: chosen once, kept over restarts because clients hold them."""

import json
import random
import socket
import threading
from contextlib import suppress
from pathlib import Path

from tallyhook.errors import LocalStackError
from tallyhook.local.state_files import write_atomically

# Below the range the systems hand out for outgoing connections, so that no client sits on a stored port.
LOWEST, HIGHEST = 15_000, 31_999
ATTEMPTS = 200


class Ports:
    """Names to port numbers in `run/ports.json`."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "run" / "ports.json"
        self.numbers: dict[str, int] = {}
        self._choosing = threading.Lock()
        with suppress(OSError, ValueError, AttributeError, TypeError):
            stored = json.loads(self.path.read_text(encoding="utf-8")).items()
            self.numbers = {str(name): int(number) for name, number in stored}

    def __getitem__(self, name: str) -> int:
        """The port of that name; chosen and stored at the first call."""
        if name not in self.numbers:
            self.renew(name)
        return self.numbers[name]

    def demand_free(self, name: str) -> None:
        """Raises LocalStackError when another program listens on that port."""
        if not is_free(self[name]):
            raise LocalStackError(
                f"port 127.0.0.1:{self[name]} of {name} is taken by another program; end that one, "
                "or stop the stack and start it anew (it then takes another port)"
            )

    def renew(self, name: str) -> int:
        """Chooses another free port for that name and stores it."""
        with self._choosing:
            taken = set(self.numbers.values())
            for _ in range(ATTEMPTS):
                number = random.randint(LOWEST, HIGHEST)  # noqa: S311 - a port is no secret
                if number not in taken and is_free(number):
                    self.numbers[name] = number
                    write_atomically(self.path, json.dumps(self.numbers))
                    return number
        raise LocalStackError(f"no free port found on 127.0.0.1 between {LOWEST} and {HIGHEST} for {name}")


def is_free(number: int) -> bool:
    """Whether a server could listen on that port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
            probe.listen(1)
        except OSError:
            return False
        return True
