"""The door: from a request to its answer. 2xx is said only of bytes that Kafka has confirmed."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import orjson

from ingress.endpoints import Endpoint
from ingress.envelope import BadEnvelope, Envelope, read
from ingress.messages import ACCEPTED, Head, Request, Response
from ingress.publisher import NotConfirmed, Publisher
from ingress.quiet_log import QuietLog
from ingress.records import Receipt, Record, dead_letter, event_record, fields_of
from ingress.refusals import REFUSAL_REASONS, RefusalReason, Refused, response_of
from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.metrics import Metrics
from tallyhook.settings import Installation

_log = logs.logger(__name__)


class Door:
    """Routes, verifies, reads the envelope, publishes, answers. Knows neither sockets nor HTTP's syntax.

    Args:
        endpoints: by path.
        installation: whose topics are written to, and in which mode.
        max_in_flight: requests at once; further ones are told to come again.
        not_ready: why `/readyz` says 503; empty when all is well.
        not_live: why `/livez` says 503.

    Attributes:
        publisher: None while Kafka has not answered, or a topic's record limit has changed.
        make_room: refuses a request whose body is still on its way; false when there is none. Then `left` has followed.
        topic_body_bytes: largest body that every topic takes.
        takes_test_events: whether the topic for `livemode: false` exists.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        installation: Installation,
        *,
        max_in_flight: int,
        metrics: Metrics,
        clock: Clock,
        not_ready: Callable[[], list[str]],
        not_live: Callable[[], list[str]],
    ) -> None:
        self._endpoints, self._livemode = endpoints, installation.livemode
        self._names = TopicNames(installation.topic_prefix)
        self._test_events = TopicNames(installation.test_prefix).events
        self._max_in_flight, self._metrics, self._clock = max_in_flight, metrics, clock
        self._not_ready, self._not_live = not_ready, not_live
        self._quiet = QuietLog(_log, clock)
        self._in_flight = 0
        self.publisher: Publisher | None = None
        self.make_room: Callable[[], bool] = lambda: False
        self.takes_test_events = False
        self.topic_body_bytes = 0
        self.shutting_down = False
        self._pages: dict[str, Callable[[Head], Response]] = {
            "/livez": lambda _: _health(self._not_live()),
            "/readyz": lambda _: _health(self._not_ready()),
            "/metrics": self._exposition,
        }
        metrics.prepare(
            "ingress", reason=REFUSAL_REASONS, endpoint=sorted({endpoint.name for endpoint in endpoints.values()})
        )
        self._accepted = metrics.counter("tallyhook_ingress_accepted_total")
        self._publish_seconds = metrics.histogram("tallyhook_ingress_publish_seconds")

    def early(self, head: Head) -> Response | None:
        """What the head alone decides; None lets the request in."""
        page = self._pages.get(head.path)
        if page is not None:
            if head.method in ("GET", "HEAD"):
                return page(head)
            return self._refuse("method", f"not for {head.path}", allow="GET, HEAD")
        if head.path not in self._endpoints:
            return self._refuse("not_found", "no such path")
        if head.method != "POST":
            return self._refuse("method", "not for a webhook", allow="POST")
        if head.all(b"content-encoding"):
            return self._refuse("content_encoding", "the signature is of the plain bytes")
        if self.shutting_down:
            return self._refuse("shutting_down", "the process is ending", close=True)
        if self.publisher is None:
            return self._refuse("starting", "Kafka has not answered yet")
        if self._in_flight >= self._max_in_flight and not self.make_room():
            return self._refuse("in_flight", f"{self._in_flight} requests are under way")
        self._in_flight += 1
        return None

    def max_body_bytes(self, head: Head) -> int:
        """The endpoint's limit, or less where a topic takes only smaller records."""
        return min(self._endpoints[head.path].max_body_bytes, self.topic_body_bytes)

    def left(self) -> None:
        """A request that was let in is over."""
        self._in_flight -= 1

    def refused(self, refusal: Refused) -> Response:
        """The answer to what cannot be read whole."""
        return self._refuse(refusal.reason, refusal.detail, close=True)

    async def answer(self, request: Request) -> Response:
        """Verifies and publishes; the answer comes after Kafka's confirmation."""
        endpoint, publisher = self._endpoints[request.head.path], self.publisher
        if publisher is None:
            return self._refuse("starting", "Kafka has not answered yet")
        if len(request.body) > self.topic_body_bytes:
            return self._refuse("body_too_large", f"{len(request.body)} bytes; the topics take {self.topic_body_bytes}")
        now = self._clock.now()
        try:
            record = self._record(self._receipt(request, endpoint, now), endpoint)
        except Refused as refusal:
            return self._refuse(refusal.reason, refusal.detail, endpoint=endpoint.name)
        began_at = self._clock.monotonic_seconds()
        try:
            await publisher.publish(record)
        except NotConfirmed as failure:
            return self._refuse("not_confirmed", str(failure), topic=record.topic, message_id=record.message_id)
        self._publish_seconds.observe(self._clock.monotonic_seconds() - began_at)
        self._accepted.inc()
        if record.reason is not None:
            self._metrics.counter("tallyhook_ingress_dead_lettered_total", reason=record.reason).inc()
        return ACCEPTED

    def _receipt(self, request: Request, endpoint: Endpoint, now: datetime) -> Receipt:
        vouched = endpoint.scheme.verify(request, endpoint.keyring.keys, now)
        received_at = now.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return Receipt(request, vouched, endpoint.scheme.headers, received_at)

    def _record(self, receipt: Receipt, endpoint: Endpoint) -> Record:
        """Where the bytes go; raises Refused for what a key for tests cannot vouch for."""
        try:
            envelope = read(receipt.request.body, max_id_bytes=endpoint.max_id_bytes)
        except BadEnvelope as bad:
            return self._dead_letter(receipt, bad, endpoint)
        _demand_live_key(receipt, envelope.livemode)
        try:
            topic = self._topic(envelope, endpoint)
        except BadEnvelope as bad:
            return self._dead_letter(receipt, bad, endpoint)
        return event_record(topic, receipt, envelope, source=endpoint.source)

    def _topic(self, envelope: Envelope, endpoint: Endpoint) -> str:
        """The topic of a sound envelope; raises BadEnvelope when it belongs elsewhere."""
        if endpoint.merchant is not None and envelope.merchant != endpoint.merchant:
            detail = f"account.merchant_id is not the merchant of endpoint {endpoint.name}"
            raise BadEnvelope("envelope_merchant", detail, fields_of(envelope))
        if envelope.livemode == self._livemode:
            return self._names.events
        if not envelope.livemode and self.takes_test_events:
            return self._test_events
        raise BadEnvelope("wrong_livemode", self._mode_detail(envelope.livemode), fields_of(envelope))

    def _dead_letter(self, receipt: Receipt, bad: BadEnvelope, endpoint: Endpoint) -> Record:
        _demand_live_key(receipt, bad.fields.livemode)
        letter = dead_letter(self._names.dead_letters, receipt, bad, max_id_bytes=endpoint.max_id_bytes)
        self._quiet.info(
            "dead letter", reason=bad.reason, detail=bad.detail, endpoint=endpoint.name, message_id=letter.message_id
        )
        return letter

    def _mode_detail(self, livemode: bool) -> str:
        if livemode:
            return "a live event on an installation for test events (TALLYHOOK_LIVEMODE=false)"
        return f"topic {self._test_events} does not exist: create it with `tallyhook topics apply`"

    def _refuse(
        self,
        reason: RefusalReason,
        detail: str,
        *,
        allow: str | None = None,
        close: bool = False,
        **facts: object,
    ) -> Response:
        self._metrics.counter("tallyhook_ingress_refused_total", reason=reason).inc()
        self._quiet.info("refused", reason=reason, detail=detail, **facts)
        return response_of(reason, allow=allow, close=close)

    def _exposition(self, head: Head) -> Response:
        self._metrics.gauge("tallyhook_ingress_in_flight").set(self._in_flight)
        self._metrics.gauge("tallyhook_ready").set(0 if self._not_ready() else 1)
        accept = b",".join(head.all(b"accept")).decode("latin-1")
        return Response(200, *self._metrics.exposition(accept))


def _demand_live_key(receipt: Receipt, livemode: object) -> None:
    """A key for tests vouches for what says of itself that it is a test, and for nothing else."""
    key = receipt.vouched.key
    if key.test_only and livemode is not False:
        named = receipt.vouched.message_id or "it"
        raise Refused("test_key", f"{named} is authentic by key {key.id}, which vouches for livemode false alone")


def _health(reasons: list[str]) -> Response:
    if not reasons:
        return Response(200, orjson.dumps({"status": "ok", "pid": os.getpid()}))
    return Response(503, orjson.dumps({"status": "unavailable", "pid": os.getpid(), "reasons": reasons}))
