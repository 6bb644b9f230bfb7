"""What a withdrawal's or a balance transaction's event must fulfil before a handler may act on it."""

from tests.reference.reading import Json, Refused, check_date, is_bigint

VERSION_MAX = 2**63 - 1
SMALLINT_MIN, SMALLINT_MAX = -(2**15), 2**15 - 1
AMOUNTS = (
    "amount_total_minor",
    "fee_total_minor",
    "total_locked_minor",
    "filled_minor",
    "remaining_minor",
    "refunded_minor",
    "fee_recognized_minor",
)
KEY_BYTES_MAX = 512
"""Like every id: what becomes a table's key must fit into its index."""
REVERSAL_REASONS = ("BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT")


def check_withdrawal(event: Json) -> None:
    """Raises Refused unless the fields, and the fill and reversal that the type promises, are as the contract says."""
    o = event["data"]["object"]
    if not isinstance(o.get("status"), str):
        raise Refused("body_shape", "data.object.status")
    if not (is_bigint(o.get("version")) and 0 <= o["version"] <= VERSION_MAX):
        raise Refused("body_shape", "data.object.version")
    for name in AMOUNTS:
        if o.get(name) is not None and not is_bigint(o[name]):
            raise Refused("body_shape", f"data.object.{name}")
    for name in ("settled_splits", "max_splits"):
        if o.get(name) is not None and not _is_smallint(o[name]):
            raise Refused("body_shape", f"data.object.{name}")
    if not _is_text_or_null(o.get("merchant_reference")):
        raise Refused("body_shape", "data.object.merchant_reference")
    if event["type"] == "withdrawal.filled":
        _check_fill(event["data"].get("fill"))
    if event["type"] == "withdrawal.fill_reversed":
        _check_reversal(event)


def _check_fill(fill: object) -> None:
    if not isinstance(fill, dict):
        raise Refused("fill_shape", "data.fill")
    if not _is_key(fill.get("leg_ref")):
        raise Refused("fill_shape", "data.fill.leg_ref")
    if not is_bigint(fill.get("amount_minor")):
        raise Refused("fill_shape", "data.fill.amount_minor")
    if fill.get("sequence") is not None and not _is_smallint(fill["sequence"]):
        raise Refused("fill_shape", "data.fill.sequence")
    if fill.get("fee_recognized_minor") is not None and not is_bigint(fill["fee_recognized_minor"]):
        raise Refused("fill_shape", "data.fill.fee_recognized_minor")
    if not _is_text_or_null(fill.get("balance_transaction_id")):
        raise Refused("fill_shape", "data.fill.balance_transaction_id")
    for name in ("settled_at", "auto_confirm_at"):
        if not _is_text_or_null(fill.get(name)):
            raise Refused("fill_shape", f"data.fill.{name}")
        if fill.get(name) is not None:
            check_date(fill[name], f"data.fill.{name}", "fill_shape")


def _check_reversal(event: Json) -> None:
    fill, reversal = event["data"].get("fill"), event["data"].get("reversal")
    if not isinstance(fill, dict) or not isinstance(reversal, dict):
        raise Refused("reversal_shape", "data.fill or data.reversal")
    if not _is_key(fill.get("leg_ref")):
        raise Refused("reversal_shape", "data.fill.leg_ref")
    if not is_bigint(fill.get("amount_minor")):
        raise Refused("reversal_shape", "data.fill.amount_minor")
    if not isinstance(fill.get("balance_transaction_id"), str):
        raise Refused("reversal_shape", "data.fill.balance_transaction_id")
    if reversal.get("reason_code") not in REVERSAL_REASONS:
        raise Refused("reversal_shape", "data.reversal.reason_code")
    for name in ("reverses_balance_transaction_id", "balance_transaction_id"):
        if not _is_key(reversal.get(name)):
            raise Refused("reversal_shape", f"data.reversal.{name}")
    if reversal["reverses_balance_transaction_id"] != fill["balance_transaction_id"]:
        raise Refused("reversal_shape", "the reversal does not point to the fill's balance transaction")
    if reversal["balance_transaction_id"] == reversal["reverses_balance_transaction_id"]:
        raise Refused("reversal_shape", "a balance transaction that reverses itself")
    if not _is_text_or_null(event["data"].get("replacement_withdrawal_id")):
        raise Refused("reversal_shape", "data.replacement_withdrawal_id")
    check_date(event["created_at"], "created_at", "reversal_shape")


def check_transaction(event: Json) -> None:
    """Raises Refused unless the balance transaction has the contract's types and a date."""
    b = event["data"]["object"]
    for name in ("type", "direction", "created_at"):
        if not isinstance(b.get(name), str):
            raise Refused("body_shape", f"data.object.{name}")
    if not is_bigint(b.get("amount_minor")):
        raise Refused("body_shape", "data.object.amount_minor")
    for name in ("bucket_from", "bucket_to"):
        if not _is_text_or_null(b.get(name)):
            raise Refused("body_shape", f"data.object.{name}")
    source = b.get("source")
    if source is not None and not (isinstance(source, dict) and _is_text_or_null(source.get("id"))):
        raise Refused("body_shape", "data.object.source")
    check_date(b["created_at"], "data.object.created_at")


def _is_smallint(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and SMALLINT_MIN <= value <= SMALLINT_MAX


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_key(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.encode()) <= KEY_BYTES_MAX
