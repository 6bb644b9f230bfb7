"""The gateway's public keys: somebody must vouch now, tomorrow, and for what is sent again weeks later."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ingress.endpoint_settings import read_endpoints
from ingress.endpoints import Endpoint
from ingress.public_keys import PublicKey
from tallyhook.errors import SettingsError
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import IngressSettings

ENDING_SOON = timedelta(days=14)
RESENDS = timedelta(days=31)
"""The gateway sends an event again on demand for so long, and may do so with the signature that it made at first."""


def endpoints_of(settings: IngressSettings) -> tuple[Sequence[Endpoint], Sequence[Finding]]:
    """The door's endpoints, and what is wrong with the settings when there are none.

    A machine without the door's settings is no danger, but then nothing can be said about keys.
    """
    try:
        return read_endpoints(settings), ()
    except SettingsError as failure:
        given = settings.public_keys or settings.public_keys_file or settings.endpoints_file
        if given:
            finding = Finding(
                "keys_unusable",
                "breaks",
                ("P1", "P8"),
                "the door's endpoints",
                str(failure),
                "endpoints with usable keys",
                "the door refuses to start, so that no webhook is taken",
                "correct the place that is named, then look again: tallyhook doctor",
            )
            return (), (finding,)
    finding = Finding(
        "keys_unset",
        "warning",
        ("P1",),
        "the door's endpoints",
        "no public key is set where the doctor runs",
        "the door's own settings",
        "keys, merchants and limits of the endpoints are not checked",
        "run the doctor with the settings of the door (TALLYHOOK_INGRESS_PUBLIC_KEYS or ..._FILE)",
    )
    return (), (finding,)


def examine(endpoints: Sequence[Endpoint], *, livemode: bool, now: datetime) -> Iterator[Finding]:
    """Every danger in the keyrings, and endpoints that take anybody's events."""
    for endpoint in endpoints:
        keys = [key for key in endpoint.keyring.keys if not (livemode and key.test_only)]
        yield from _windows(f"endpoint {endpoint.name}", keys, now)
        if endpoint.merchant is None:
            yield Finding(
                "merchant_any",
                "warning",
                ("P2",),
                f"endpoint {endpoint.name}",
                "takes the events of any merchant",
                "the merchant whose gateway account posts there",
                "events of another account, signed by the same gateway, would credit users here",
                "set TALLYHOOK_INGRESS_MERCHANT_ID, or `merchant` in the endpoints' file",
            )


def _windows(subject: str, keys: Sequence[PublicKey], now: datetime) -> Iterator[Finding]:
    valid = [key for key in keys if key.valid_at(now)]
    if not valid:
        yield Finding(
            "keys_none_valid",
            "breaks",
            ("P1",),
            subject,
            "; ".join(f"key {key.id}: {key.window}" for key in keys) or "no key for live events",
            f"a key that vouches at {now:%Y-%m-%d %H:%M} UTC",
            "every webhook is refused with 401 until the gateway gives up",
            "put the gateway's present public key into the keyring; it is read again without a restart",
        )
    for key in valid:
        if key.not_after is None or key.not_after - now >= ENDING_SOON:
            continue
        after = [other for other in keys if other is not key and other.valid_at(key.not_after + timedelta(seconds=1))]
        yield Finding(
            "key_ending",
            "warning",
            ("P1",),
            f"{subject}, key {key.id}",
            f"ends on {key.not_after:%Y-%m-%d %H:%M} UTC, in {(key.not_after - now) / timedelta(days=1):.1f} days; "
            + (f"then {', '.join(other.id for other in after)} vouches" if after else "then no key vouches any more"),
            f"another key, or more than {ENDING_SOON.days} days",
            "what the gateway signs with it from then on is refused with 401",
            "put the gateway's next public key into the keyring, or raise not_after; no restart is needed",
        )
    yield from _overlaps(subject, keys)


def _overlaps(subject: str, keys: Sequence[PublicKey]) -> Iterator[Finding]:
    for key in keys:
        if key.not_after is None:
            continue
        successors = [
            other.not_before
            for other in keys
            if other.not_before is not None
            and (key.not_before is None or other.not_before > key.not_before)
            and (other.not_after is None or other.not_after > key.not_after)
        ]
        if successors and key.not_after - min(successors) < RESENDS:
            begun = min(successors)
            yield Finding(
                "key_overlap",
                "warning",
                ("P1",),
                f"{subject}, key {key.id}",
                f"vouches until {key.not_after:%Y-%m-%d}, its successor since {begun:%Y-%m-%d}",
                f"until {begun + RESENDS:%Y-%m-%d}: {RESENDS.days} days beside its successor",
                "an event that is sent again with its first signature is refused, unless the gateway signs it anew",
                f'set not_after of key {key.id} to "{(begun + RESENDS).isoformat()}"',
            )
