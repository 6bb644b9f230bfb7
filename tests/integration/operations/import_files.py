"""CSV files of an old handler, and what `tallyhook import` tells of them."""

from typing import Any

from tests.integration.operations.operated import Operated

DEPOSITS = (
    "pg_deposit_id,pg_version,status,is_terminal,ordered_amount_minor,transferred_amount_minor,amount_received_minor,"
    "fee_total_minor,credited_amount_minor,fee_breakdown,our_order_id,our_user_id,credited_user_at,reversed_at,"
    "merchant_reference,updated_at\n"
)
SETTLED = 'dep_1,5,settled,true,10000,10000,10000,150,9850,"{""vat"":10}",ord-1,usr-1,2026-03-01T10:00:00Z,,ref-1,x\n'
REVERSED = "dep_2,9,reversed,t,500,700,500,0,500,,ord-2,usr-1,2026-03-01 10:00:00+07:00,2026-03-02T00:00:00Z,ref-2,x\n"
OPEN = "dep_3,1,open,,,,,,,,ord-3,usr-2,,,ref-3,x\n"
WITHDRAWALS = (
    "pg_withdrawal_id,pg_version,status,amount_total_minor,fee_total_minor,filled_minor,remaining_minor,"
    "refunded_minor,our_payout_id,closed_at,refund_enqueued_at,user_lock_released_at\n"
)
FILLS = (
    "leg_ref,pg_withdrawal_id,sequence,amount_minor,fee_recognized_minor,settled_at,auto_confirm_at,"
    "balance_transaction_id,reversed_at\n"
)
REVERSALS = (
    "leg_ref,pg_withdrawal_id,reason_code,reverses_balance_transaction_id,reversal_balance_transaction_id,"
    "reversed_at,replacement_withdrawal_id\n"
)


def imported(place: Operated, what: str, text: str, *options: str, code: int = 0) -> Any:
    """What the command prints as JSON for a file with this text."""
    file = place.folder / f"{what}.csv"
    file.write_text(text, encoding="utf-8")
    return place.json("import", what, str(file), *options, code=code)


def counts(told: Any) -> dict[str, tuple[int, int, int]]:
    """New, same and different by kind."""
    return {row["kind"]: (row["new"], row["same"], row["different"]) for row in told["counts"]}
