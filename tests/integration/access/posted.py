"""Signed events for the door, and what comes out at the other end."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

from tallyhook.gateway.signing import SigningKey

MERCHANT = "mer_access"
RECEIVED_MINOR, FEE_MINOR = 10_000, 150


def settled(deposit: str, sequence: int, **changes: object) -> bytes:
    """A settled deposit, or with changes of its envelope."""
    event: dict[str, Any] = {
        "id": f"evt_{deposit}",
        "object": "event",
        "type": "deposit.settled",
        "livemode": True,
        "created_at": "2026-03-02T10:04:41Z",
        "sequence": sequence,
        "account": {"merchant_id": MERCHANT},
        "data": {
            "object": {
                "id": deposit,
                "object": "deposit_order",
                "version": 3,
                "status": "settled",
                "ordered_amount_minor": RECEIVED_MINOR,
                "transferred_amount_minor": RECEIVED_MINOR,
                "amount_received_minor": RECEIVED_MINOR,
                "fee_total_minor": FEE_MINOR,
                "credited_amount_minor": RECEIVED_MINOR - FEE_MINOR,
                "partial": False,
            }
        },
    }
    return json.dumps(event | changes).encode()


def post(url: str, key: SigningKey, body: bytes) -> tuple[int, str]:
    """Status and body of the door's answer."""
    message_id = f"msg_{abs(hash(body))}"
    headers = key.sign(message_id, int(time.time()), body) | {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/webhooks", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
