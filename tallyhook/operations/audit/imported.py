"""What was taken over from the handler that stood here before: where the recomputation of an object begins."""

from dataclasses import dataclass, field
from typing import Any

from tallyhook.operations.audit.stored_event import DEPOSIT, TRANSACTION, WITHDRAWAL, Json, moment, parse_json
from tallyhook.operations.audit.transactions import Transaction
from tallyhook.operations.audit.withdrawal_events import Fill, Tombstone
from tallyhook.operations.audit.withdrawals import COLUMNS, MARKS, Row

_KINDS = {
    "deposit": DEPOSIT,
    "overpayment_flag": DEPOSIT,
    "withdrawal": WITHDRAWAL,
    "fill": WITHDRAWAL,
    "reversal": WITHDRAWAL,
    "transaction": TRANSACTION,
    "balance": DEPOSIT,
}
"""A balance belongs to the ledger, which is looked at with the deposits."""
_MARKED_BY = {
    "closed": "closed_at",
    "close_enqueued": "close_enqueued_at",
    "refund_enqueued": "refund_enqueued_at",
    "lock_released": "user_lock_released_at",
}


@dataclass(slots=True)
class Imported:
    """Rows as they were imported, by kind and key.

    Args:
        source: which import brought them; it is named in the ledger's entries.
    """

    source: str = ""
    rows: dict[str, dict[str, Json]] = field(default_factory=dict)

    def add(self, kind: str, key: str, source: str, row: str) -> None:
        """Takes one row of imported_objects; `row` is JSON with the names of the columns."""
        self.source = source
        found: Any = parse_json(row)
        self.rows.setdefault(kind, {})[key] = found

    @property
    def kinds(self) -> set[str]:
        """The kinds of objects that the rows belong to."""
        return {_KINDS[name] for name in self.rows if name in _KINDS}

    def deposit(self) -> Json | None:
        """The deposit's row, its columns named as the members of a snapshot are."""
        return next(iter(self.rows.get("deposit", {}).values()), None)

    def flags(self) -> dict[str, tuple[int, Json]]:
        """By claim: the version that was first seen with it, and the flag as it was sent."""
        found = self.rows.get("overpayment_flag", {})
        return {claim: (row["observed_deposit_version"], row["raw_flag"]) for claim, row in found.items()}

    def withdrawal(self) -> Row | None:
        """The withdrawal's row."""
        found = next(iter(self.rows.get("withdrawal", {}).values()), None)
        if found is None:
            return None
        marks = {mark: found.get(column) is not None for mark, column in _MARKED_BY.items()}
        return {name: found.get(name) for name in COLUMNS if name not in MARKS} | marks

    def fills(self) -> dict[str, Fill]:
        """Its chunks by leg_ref."""
        return {
            leg_ref: Fill(
                leg_ref,
                row.get("sequence"),
                row["amount_minor"],
                row.get("fee_recognized_minor"),
                moment(row.get("settled_at")),
                moment(row.get("auto_confirm_at")),
                row.get("balance_transaction_id"),
                moment(row.get("reversed_at")),
            )
            for leg_ref, row in self.rows.get("fill", {}).items()
        }

    def tombstones(self) -> dict[str, Tombstone]:
        """The reversals of its chunks by leg_ref; a date that is none counts as lost, and the row then differs."""
        found = {}
        for leg_ref, row in self.rows.get("reversal", {}).items():
            at = moment(row.get("reversed_at"))
            if at is not None:
                found[leg_ref] = Tombstone(
                    leg_ref,
                    row["reason_code"],
                    row["reverses_balance_transaction_id"],
                    row["reversal_balance_transaction_id"],
                    at,
                    row.get("replacement_withdrawal_id"),
                    row["amount_minor"],
                    row["status_snapshot"],
                    row.get("effect_enqueued_at") is not None,
                )
        return found

    def transaction(self) -> Transaction | None:
        """The balance transaction's row."""
        row = next(iter(self.rows.get("transaction", {}).values()), None)
        at = None if row is None else moment(row.get("created_at"))
        if row is None or at is None:
            return None
        return Transaction(
            row["type"],
            row["direction"],
            row["amount_minor"],
            row.get("bucket_from"),
            row.get("bucket_to"),
            row.get("source_id"),
            at,
            row.get("merchant_id"),
            row.get("balance_after"),
        )

    def openings(self) -> list[tuple[str, int]]:
        """User and what his balance held beside the credits that were imported (satang); none where that is nothing."""
        rows = self.rows.get("balance", {})
        found = [(user_id, row["balance_minor"] - row["explained_minor"]) for user_id, row in rows.items()]
        return [(user_id, amount_minor) for user_id, amount_minor in found if amount_minor]
