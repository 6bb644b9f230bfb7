"""Senders of a case: many connections at once, each kept open as a gateway keeps it."""

import http.client
import select
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.integration.ingress.process import Answer, IngressProcess
from tests.integration.ingress.raw import connected, head, read_answer

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Post:
    """One request as it will be sent."""

    body: bytes
    headers: Mapping[str, str]
    path: str = "/webhooks"
    method: str = "POST"


def signed_post(ingress: IngressProcess, body: bytes, message_id: str = "evt_1") -> Post:
    """A good webhook of this moment."""
    return Post(body, ingress.key.sign(message_id, int(time.time()), body))


def send_all(ingress: IngressProcess, posts: Iterable[Post], connections: int = 8) -> list[Answer]:
    """Sends the posts over so many kept connections; the answers in the order of the posts."""
    listed = list(posts)
    answers: list[Answer | None] = [None] * len(listed)

    def work(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", ingress.port, timeout=TIMEOUT_SECONDS)
        for at in range(first, len(listed), connections):
            post = listed[at]
            connection.request(post.method, post.path, post.body, dict(post.headers))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            answers[at] = Answer(response.status, found, response.read())
            if response.will_close:
                connection.close()
        connection.close()

    with ThreadPoolExecutor(connections) as pool:
        for done in [pool.submit(work, first) for first in range(connections)]:
            done.result()
    return [answer for answer in answers if answer is not None]


def send_slowly(ingress: IngressProcess, post: Post, *, half_sent: threading.Barrier, pause_seconds: float) -> int:
    """Sends half of a body, meets the others, sends the rest in pieces with pauses between; the status.

    Like any good client it reads while it sends, so that an answer ends the upload. Raises ConnectionError for a reset
    and for an end without an answer.
    """
    headers = dict(post.headers) | {"content-length": str(len(post.body))}
    half = len(post.body) // 2
    size = half // 4
    with connected(ingress.port, TIMEOUT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head(post.path, headers) + post.body[:half])
        half_sent.wait(TIMEOUT_SECONDS)
        for begin in range(half, len(post.body), size):
            if select.select([connection], [], [], pause_seconds)[0]:
                break
            connection.sendall(post.body[begin : begin + size])
        return read_answer(connection)[0]
