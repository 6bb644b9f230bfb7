"""Posts deliveries as the gateway does: signed, from several connections, again and again until the answer is 200."""

import http.client
import queue
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from tallyhook.gateway.signing import SigningKey

SENDERS = 12
GIVE_UP_SECONDS = 240.0


class Delivery(Protocol):
    """What is posted: a body, under an id that may be repeated."""

    @property
    def id(self) -> str:
        """The header webhook-id."""

    @property
    def body(self) -> bytes:
        """The signed bytes."""


class Gateway:
    """Sends deliveries at a rate; `answers` counts the statuses (0: no answer).

    `slowest_seconds` is the longest that an answer took, and `without_retry_after` counts 503 that named no moment.
    """

    def __init__(self, netloc: str, key: SigningKey, rate_a_second: float) -> None:
        self._netloc, self._key, self._pause_seconds = netloc, key, 1 / rate_a_second
        self._hurried = threading.Event()
        self._waiting: queue.Queue[Delivery | None] = queue.Queue(maxsize=SENDERS)
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(SENDERS)]
        self._feeder: threading.Thread | None = None
        self.answers: Counter[int] = Counter()
        self.unsent: list[str] = []
        self.sent = self.without_retry_after = 0
        self.slowest_seconds = 0.0
        self._lock = threading.Lock()

    def start(self, deliveries: Sequence[Delivery]) -> None:
        """Begins to post; returns at once."""
        for thread in self._threads:
            thread.start()
        self._feeder = threading.Thread(target=self._feed, args=(deliveries,), daemon=True)
        self._feeder.start()

    def hurry(self) -> None:
        """Posts what is left as fast as it is answered."""
        self._hurried.set()

    def join(self, timeout_seconds: float) -> None:
        """Waits until every delivery was answered with 200."""
        deadline = time.monotonic() + timeout_seconds
        for thread in (*([self._feeder] if self._feeder else []), *self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not any(thread.is_alive() for thread in self._threads), f"still posting: {self.answers}"
        assert self.unsent == []

    def _feed(self, deliveries: Sequence[Delivery]) -> None:
        due = time.monotonic()
        for delivery in deliveries:
            due += self._pause_seconds
            if not self._hurried.is_set():
                self._hurried.wait(max(0.0, due - time.monotonic()))
            self._waiting.put(delivery)
        for _ in self._threads:
            self._waiting.put(None)

    def _send_all(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while (event := self._waiting.get()) is not None:
            deadline = time.monotonic() + GIVE_UP_SECONDS
            status, unbidden = 0, False
            while status != http.client.OK:
                if time.monotonic() > deadline:
                    self.unsent.append(event.id)
                    break
                connection = connection or http.client.HTTPConnection(self._netloc, timeout=12)
                began = time.monotonic()
                try:
                    headers = self._key.sign(event.id, int(time.time()), event.body)
                    connection.request("POST", "/webhooks", event.body, headers)
                    answer = connection.getresponse()
                    answer.read()
                    status = answer.status
                    unbidden = status == http.client.SERVICE_UNAVAILABLE and not answer.getheader("retry-after")
                except (OSError, http.client.HTTPException):
                    connection.close()
                    connection, status, unbidden = None, 0, False
                with self._lock:
                    self.answers[status] += 1
                    self.without_retry_after += unbidden
                    self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
                    self.sent += status == http.client.OK
                if status != http.client.OK:
                    time.sleep(0.2)  # the gateway waits before it sends again
        if connection is not None:
            connection.close()
