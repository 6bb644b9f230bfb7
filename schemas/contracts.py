"""What consumers may rely on: a JSON Schema (draft 2020-12) an effect, made from the types that the pipeline writes.

`python -m schemas.contracts` writes them anew; a test holds the files to the types, and what the pipeline emits to the
files.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from schemas.effects import (
    BALANCE_ENTRY,
    EFFECT_TYPES,
    BalanceEntry,
    CloseWithdrawal,
    CompensateReversedFill,
    FailOrder,
    HoldGoods,
    RefundUnfilled,
    ReleaseGoods,
    ReleaseUserLock,
    ShowLateSlip,
    ShowPendingReview,
    ShowProgress,
    UpdateLocalStatus,
    UpdateOrderStatus,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parent / "json" / "effects"

PAYLOAD_TYPES = dict[str, type[msgspec.Struct]]([*EFFECT_TYPES.items(), (BALANCE_ENTRY, BalanceEntry)])
"""By effect name, as it stands in `ce_type`; balance entries too."""

EXAMPLES: dict[str, tuple[msgspec.Struct, ...]] = {
    "release_goods": (
        ReleaseGoods("ord_1042", partial=False, received=500_000, ordered=500_000),
        ReleaseGoods("ord_1043", partial=True, received=45_000, ordered=50_000),
    ),
    "hold_goods": (HoldGoods("ord_1042"),),
    "show_late_slip": (ShowLateSlip("ord_1044", "2026-08-22T03:02:11.402Z"),),
    "fail_order": (FailOrder("ord_1044", "expired"), FailOrder("ord_1045", "สลิปไม่ชัด"), FailOrder("ord_1046", None)),
    "show_pending_review": (ShowPendingReview("ord_1047", "กำลังตรวจสอบสลิป"), ShowPendingReview("ord_1047", None)),
    "update_order_status": (UpdateOrderStatus("ord_1048", "slip_received"),),
    "show_progress": (ShowProgress("WD-20260821-0007", 70_000, 100_000), ShowProgress(None, 0, 100_000)),
    "close_withdrawal": (CloseWithdrawal("wdr_1", "WD-20260821-0007"), CloseWithdrawal("wdr_2", None)),
    "refund_unfilled": (
        RefundUnfilled("wdr_1", "WD-20260821-0007", 30_000, 803, 30_803, 71_872),
        RefundUnfilled("wdr_2", None, None, None, None, None),
    ),
    "release_user_lock": (ReleaseUserLock("wdr_3", "WD-20260821-0009"),),
    "update_local_status": (UpdateLocalStatus("WD-20260821-0007", "open"), UpdateLocalStatus(None, "open")),
    "compensate_reversed_fill": (
        CompensateReversedFill("wdr_1", "leg_4TQ2XM9K", 30_000, "BANK_RECALL", "btxn_17", "btxn_52", "wdr_9"),
        CompensateReversedFill("wdr_1", "leg_7HB3ND5R", 40_000, "ACCOUNT_FROZEN", "btxn_18", "btxn_53", None),
    ),
    BALANCE_ENTRY: (
        BalanceEntry("deposit:dep_1:credit", "usr_7", 500_000, 500_000, "dep_1", "ord_1042"),
        BalanceEntry("deposit:dep_1:debit", "usr_7", -500_000, 0, "dep_1", "ord_1042"),
    ),
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one effect's payload, with examples; `$id` is what `ce_dataschema` says.

    Members may be added later, so that a schema forbids no others; none is ever removed, renamed or left out.
    """
    made = PAYLOAD_TYPES[name]
    found = msgspec.json.schema(made)["$defs"][made.__name__] | {"title": name}
    return {
        "$schema": DIALECT,
        "$id": f"/schemas/effects/{name}.json",
        **found,
        "examples": [msgspec.to_builtins(example) for example in EXAMPLES[name]],
    }


def file_text(name: str) -> str:
    """The schema as its file holds it."""
    return json.dumps(schema_of(name), ensure_ascii=False, indent=2) + "\n"


def write_all(folder: Path) -> None:
    """Writes every schema's file into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAYLOAD_TYPES:
        (folder / f"{name}.json").write_text(file_text(name), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
