"""What an old handler keeps: its kinds of rows, their columns, and what each column must hold.

Names are those of the gateway's own example handlers, whose tables most merchants have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Type = Literal["key", "text", "bigint", "whole", "above zero", "smallint", "boolean", "instant", "json"]
"""`whole` is a bigint of zero or more, `key` a text that is not empty and fits into an index."""
Name = Literal["correlation", "deposit", "overpayment_flag", "withdrawal", "fill", "reversal", "transaction", "balance"]

NOT_COMPENSATED: Final = "the old handler has not compensated this chunk, so let it finish first"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        also: other names under which an old handler may keep it.
        required: whether a row without it is refused.
        mark: a moment of the handler's own: only whether it is there is compared.
        own: whether the table here has the column too.
        derived: where it is absent it is made from other rows here, and is not compared.
        zero_is_none: some handlers keep 0 where nothing is known.
        present: whether the source must have the column, though it may be empty in a row: what a guard hangs on.
        empty_is_none: some handlers keep an empty text where nothing is known.
        never_empty: what an empty value would mean, where the source has the column and must not leave it empty.
    """

    name: str
    type: Type = "text"
    also: tuple[str, ...] = ()
    required: bool = False
    mark: bool = False
    own: bool = True
    derived: bool = False
    zero_is_none: bool = False
    present: bool = False
    empty_is_none: bool = False
    never_empty: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of rows.

    Args:
        plural: how the command line calls it.
        table: here, and by default there.
        also_tables: where an old handler may keep it otherwise.
        owner: the column that names the deposit, withdrawal or user it belongs to; one owner's rows are taken together.
        fresh: the column here that tells when the row last changed; None where there is none.
    """

    name: Name
    plural: str
    table: str
    columns: Sequence[Column]
    owner: str
    also_tables: tuple[str, ...] = ()
    fresh: str | None = None

    @property
    def key(self) -> str:
        """The column of the primary key."""
        return self.columns[0].name


def _key(name: str, *also: str) -> Column:
    return Column(name, "key", also, required=True)


def _must(name: str, type_: Type = "text", *also: str) -> Column:
    return Column(name, type_, also, required=True)


CORRELATIONS: Final = Kind(
    "correlation",
    "correlations",
    "pg_deposit_correlations",
    (_key("pg_deposit_id"), _must("merchant_reference", "key"), _must("our_order_id"), _must("our_user_id", "key")),
    owner="pg_deposit_id",
)
DEPOSITS: Final = Kind(
    "deposit",
    "deposits",
    "pg_deposits",
    (
        _key("pg_deposit_id"),
        _must("pg_version", "whole"),
        _must("status"),
        Column("is_terminal", "boolean"),
        Column("late_slip_accepted_until", "instant"),
        Column("ordered_amount_minor", "bigint"),
        Column("transferred_amount_minor", "bigint"),
        Column("amount_received_minor", "bigint"),
        Column("fee_total_minor", "bigint"),
        Column("credited_amount_minor", "bigint"),
        Column("fee_breakdown", "json"),
        Column("overpayment", "json"),
        Column("balance_transaction_id"),
        Column("clearing_available_at", "instant"),
        _must("our_order_id"),
        _must("our_user_id", "key"),
        Column("credited_user_at", "instant", mark=True, present=True),
        Column("reversed_at", "instant", mark=True, present=True),
        Column("merchant_reference", "key", own=False),
        Column("credited_to_user_minor", "above zero", own=False),
    ),
    owner="pg_deposit_id",
    fresh="updated_at",
)
FLAGS: Final = Kind(
    "overpayment_flag",
    "flags",
    "pg_deposit_overpayment_flags",
    (
        _key("claim_id"),
        _must("pg_deposit_id", "key"),
        _must("observed_deposit_version", "whole"),
        _must("cause"),
        _must("amount_minor", "above zero"),
        _must("slip_received_at", "instant"),
        _must("status_snapshot"),
        _must("action_required_snapshot"),
        Column("expected_response_at", "instant"),
        _must("raw_flag", "json"),
    ),
    owner="pg_deposit_id",
    fresh="received_at",
)
WITHDRAWALS: Final = Kind(
    "withdrawal",
    "withdrawals",
    "pg_withdrawals",
    (
        _key("pg_withdrawal_id"),
        _must("pg_version", "whole"),
        _must("status"),
        _must("amount_total_minor", "bigint"),
        Column("fee_total_minor", "bigint", zero_is_none=True),
        Column("total_locked_minor", "bigint", zero_is_none=True),
        Column("filled_minor", "bigint", derived=True),
        _must("remaining_minor", "bigint"),
        Column("refunded_minor", "bigint", zero_is_none=True),
        Column("fee_recognized_minor", "bigint", zero_is_none=True),
        Column("settled_splits", "smallint", zero_is_none=True),
        Column("max_splits", "smallint"),
        Column("our_ref", also=("our_payout_id",), empty_is_none=True),
        Column("replacement_withdrawal_id"),
        Column("closed_at", "instant", mark=True, present=True),
        Column("close_enqueued_at", "instant", mark=True),
        Column("refund_enqueued_at", "instant", mark=True),
        Column("user_lock_released_at", "instant", mark=True),
    ),
    owner="pg_withdrawal_id",
    fresh="updated_at",
)
FILLS: Final = Kind(
    "fill",
    "fills",
    "pg_withdrawal_fills",
    (
        _key("leg_ref"),
        _must("pg_withdrawal_id", "key"),
        Column("sequence", "smallint"),
        _must("amount_minor", "bigint"),
        Column("fee_recognized_minor", "bigint"),
        Column("settled_at", "instant"),
        Column("auto_confirm_at", "instant"),
        Column("balance_transaction_id"),
        Column("reversed_at", "instant"),
    ),
    owner="pg_withdrawal_id",
    fresh="received_at",
)
REVERSALS: Final = Kind(
    "reversal",
    "reversals",
    "pg_withdrawal_fill_reversals",
    (
        _key("leg_ref"),
        _must("pg_withdrawal_id", "key"),
        _must("reason_code"),
        _must("reverses_balance_transaction_id", "key"),
        _must("reversal_balance_transaction_id", "key"),
        _must("reversed_at", "instant"),
        Column("replacement_withdrawal_id"),
        Column("amount_minor", "bigint", derived=True),
        Column("status_snapshot", derived=True),
        Column("effect_enqueued_at", "instant", mark=True, derived=True, never_empty=NOT_COMPENSATED),
    ),
    owner="pg_withdrawal_id",
)
TRANSACTIONS: Final = Kind(
    "transaction",
    "transactions",
    "pg_balance_txns",
    (
        _key("btxn_id"),
        _must("type"),
        _must("direction"),
        _must("amount_minor", "bigint"),
        Column("bucket_from"),
        Column("bucket_to"),
        Column("source_id"),
        _must("created_at", "instant"),
        Column("merchant_id", derived=True),
        Column("balance_after", "json", derived=True),
    ),
    owner="btxn_id",
)
BALANCES: Final = Kind(
    "balance",
    "balances",
    "pg_user_balances",
    (_key("user_id", "id"), _must("balance_minor", "bigint"), Column("explained_minor", "bigint", own=False)),
    owner="user_id",
    also_tables=("users",),
)

KINDS: Final[Sequence[Kind]] = (
    DEPOSITS, FLAGS, CORRELATIONS, WITHDRAWALS, FILLS, REVERSALS, TRANSACTIONS, BALANCES,
)  # fmt: skip
"""In the order in which they are taken over: a deposit comes with its correlation, and no correlation before it."""
BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}
BY_PLURAL: Final[Mapping[str, Kind]] = {kind.plural: kind for kind in KINDS}

GROUPS: Final[Sequence[Sequence[Kind]]] = (
    (DEPOSITS, FLAGS), (CORRELATIONS,), (WITHDRAWALS, FILLS, REVERSALS), (TRANSACTIONS,), (BALANCES,),
)  # fmt: skip
"""Kinds whose rows of one owner are written in one transaction, in this order: a withdrawal whose reversals came later
than its row could be compensated twice in between."""
