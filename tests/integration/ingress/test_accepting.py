"""What is accepted: the same bytes, under the object's id, with what the door knows of them."""

import base64
import gzip
import http.client
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Message
from nacl.signing import VerifyKey

from schemas.headers import decode
from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import Installation
from tests.integration.ingress.events import event, header_pairs, headers_of
from tests.integration.ingress.process import IngressProcess

Records = Callable[[str], list[Message]]


def murmur2(data: bytes) -> int:
    """Java's org.apache.kafka.common.utils.Utils.murmur2, as an unsigned number."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_the_record_holds_the_signed_bytes_and_every_header(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """A 200 means that the very bytes are in the topic, with id, version, key id and the webhook's own headers."""
    body = b' {"note":"\xe0\xb8\x97 \\ud83d\\ude3f",' + event()[1:]
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    answer = ingress.post(body, headers={"traceparent": trace, "content-type": "text/strange"})

    assert (answer.status, answer.body) == (200, b'{"status":"accepted"}')
    [record] = records(topics.events)
    assert body == record.value()
    assert record.key() == b"dep_1"
    headers = headers_of(record)
    known = decode(header_pairs(record))
    assert (
        known.id,
        known.type,
        known.subject,
        known.version,
        known.status,
    ) == ("evt_1", "deposit.updated", "dep_1", 1, "open")
    assert (known.object_kind, known.merchant, known.sequence, known.livemode) == ("deposit_order", "mer_1", 7, True)
    assert (
        known.origin,
        known.key_id,
        known.source,
        known.time,
    ) == ("webhook", "k1", "/gateway", "2026-01-02T03:04:05Z")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", known.received_at)
    assert ("evt_1", trace) == (headers["webhook-id"], headers["traceparent"])
    assert headers["webhook-signature"].startswith("v1a,")
    assert headers["webhook-timestamp"].isdigit()


def test_an_object_has_the_partition_that_java_would_choose(
    ingress: IngressProcess, topics: TopicNames, records: Records, installation: Installation
) -> None:
    """The key's partition is Java's murmur2, so that every client agrees on it."""
    ids = [f"dep_{number}-ไทย" for number in range(40)]

    for object_id in ids:
        assert ingress.post(event(f"evt_{object_id}", object_id), message_id="x").status == 200

    found = {(record.key() or b"").decode(): record.partition() for record in records(topics.events)}
    expected = {name: (murmur2(name.encode()) & 0x7FFFFFFF) % installation.partitions for name in ids}
    assert expected == found
    assert len(set(found.values())) > 4


def test_any_good_signature_beside_others_is_enough(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """A rotation sends several entries: unknown keys, other schemes and double spaces do not matter."""
    body = event()
    stranger = SigningKey.generate()
    good = ingress.key.sign("evt_1", int(time.time()), body)
    bad = stranger.sign("evt_1", int(good["webhook-timestamp"]), body)["webhook-signature"]
    other = "v1,c2FtZQ=="
    own = good["webhook-signature"]

    for value in (f"{bad} {other} {own}", f"{own} {bad} {other}", f"{bad}  {other}  {own}"):
        assert ingress.request("POST", "/webhooks/default", body, good | {"webhook-signature": value}).status == 200

    assert [headers_of(record)["ce_keyid"] for record in records(topics.events)] == ["k1"] * 3


def test_chunked_bodies_are_accepted(ingress: IngressProcess, topics: TopicNames, records: Records) -> None:
    """The length need not be known beforehand."""
    body = event(note="x" * 5000)
    headers = ingress.key.sign("evt_1", int(time.time()), body)

    connection = http.client.HTTPConnection("127.0.0.1", ingress.port, timeout=20)
    pieces = [body[at : at + 100] for at in range(0, len(body), 100)]
    connection.request("POST", "/webhooks", iter(pieces), headers, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()

    assert [body] == [record.value() for record in records(topics.events)]


def test_five_hundred_at_once_keep_each_object_in_order(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """Many senders at once lose nothing, and what one sender sends of an object stays in its order."""

    def send(sender: int) -> list[int]:
        return [
            ingress.post(event(f"evt_{sender}_{n}", f"dep_{sender}", version=n), message_id="x").status
            for n in range(10)
        ]

    with ThreadPoolExecutor(50) as pool:
        statuses = [status for found in pool.map(send, range(50)) for status in found]

    assert statuses == [200] * 500
    found: dict[str, list[int]] = {}
    for record in sorted(records(topics.events), key=lambda r: (r.partition() or 0, r.offset() or 0)):
        found.setdefault((record.key() or b"").decode(), []).append(int(headers_of(record)["ce_version"]))
    assert {f"dep_{sender}": list(range(10)) for sender in range(50)} == found
    assert ingress.metric("tallyhook_ingress_accepted_total") == 500


def test_an_unusable_event_is_a_dead_letter_with_its_bytes(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """Authentic but unusable is answered 200: the bytes are durable, with reason, and with what could be read."""
    body = event("evt_bad", "dep_7", version="91")

    assert ingress.post(body, message_id="evt_bad").status == 200

    [letter] = records(topics.dead_letters)
    headers = headers_of(letter)
    assert (body, b"dep_7") == (letter.value(), letter.key())
    assert (headers["ce_stage"], headers["ce_reason"], headers["ce_keyid"]) == ("ingress", "envelope_version", "k1")
    assert (
        headers["ce_id"],
        headers["ce_sequence"],
        headers["ce_merchant"],
        headers["ce_subject"],
    ) == ("evt_bad", "7", "mer_1", "dep_7")
    assert headers["ce_detail"]
    assert headers["ce_receivedat"].endswith("Z")
    assert {"webhook-id", "webhook-timestamp", "webhook-signature"} <= set(headers)
    assert records(topics.events) == []
    assert ingress.metric("tallyhook_ingress_dead_lettered_total", reason="envelope_version") == 1


def test_the_key_of_a_dead_letter_is_the_best_that_is_known(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """The object's id, else the event's, else none."""
    for body in (event("evt_a", version=None), event("evt_b", entity={"id": ""}), b"\x00\xff", b"[]"):
        assert ingress.post(body).status == 200

    keys = {headers_of(letter)["ce_reason"]: letter.key() for letter in records(topics.dead_letters)}
    assert keys == {
        "envelope_version": b"dep_1",
        "envelope_object_id": b"evt_b",
        "envelope_not_json": None,
        "envelope_not_object": None,
    }


def test_compressed_bytes_that_were_signed_as_they_are_end_as_a_dead_letter(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """Nothing is inflated: the bytes are authentic, they are just no JSON."""
    body = gzip.compress(event())

    assert ingress.post(body, headers={"content-encoding": "gzip"}).status == 415
    assert records(topics.dead_letters) == []
    assert ingress.post(body).status == 200

    assert [body] == [letter.value() for letter in records(topics.dead_letters)]


def test_another_merchants_event_is_a_dead_letter(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """The endpoint takes one merchant's events."""
    assert ingress.post(event(account={"merchant_id": "mer_2"})).status == 200

    [letter] = records(topics.dead_letters)
    assert (headers_of(letter)["ce_reason"], headers_of(letter)["ce_merchant"]) == ("envelope_merchant", "mer_2")


def test_test_events_go_to_topics_of_their_own(
    ingress: IngressProcess, topics: TopicNames, records: Records, installation: Installation
) -> None:
    """livemode false never reaches the live topic."""
    body = event(livemode=False)

    assert ingress.post(body).status == 200

    [record] = records(TopicNames(installation.test_prefix).events)
    assert (body, "false") == (record.value(), headers_of(record)["ce_livemode"])
    assert records(topics.events) + records(topics.dead_letters) == []


def test_deep_nesting_and_lone_surrogates_below_the_envelope_do_no_harm(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """What is wrong deeper is judged later; nesting that cannot be read is set aside, and the process lives."""
    surrogate = event("evt_s")[:-1] + b',"note":"\\ud800","nul":"\\u0000"}'
    deep = event("evt_d")[:-1] + b',"x":' + b"[" * 60_000 + b"]" * 60_000 + b"}"

    assert [ingress.post(body).status for body in (surrogate, deep, event("evt_e"))] == [200, 200, 200]

    assert {surrogate, event("evt_e")} == {record.value() for record in records(topics.events)}
    [letter] = records(topics.dead_letters)
    assert (deep, "envelope_not_json") == (letter.value(), headers_of(letter)["ce_reason"])


def test_the_signature_is_checked_over_the_bytes_that_are_stored(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """Anyone who holds the public key can check a stored record again."""
    body = event()
    ingress.post(body)

    [record] = records(topics.events)
    headers = headers_of(record)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + (record.value() or b"")
    public = base64.b64decode(ingress.key.public_text().removeprefix("whpk_"))
    VerifyKey(public).verify(signed, base64.b64decode(headers["webhook-signature"].removeprefix("v1a,")))
    assert json.loads(record.value() or b"")["id"] == headers["ce_id"]
