"""Reason codes: why an event was refused, set aside or had no effect; each with a sentence and the next step."""

from dataclasses import dataclass
from typing import Literal

from schemas.verdicts import ParkedReason

DeadLetterReason = Literal[
    "envelope_not_json",
    "envelope_not_object",
    "envelope_id",
    "envelope_type",
    "envelope_livemode",
    "envelope_merchant",
    "envelope_sequence",
    "envelope_created_at",
    "envelope_object_id",
    "envelope_object_kind",
    "envelope_version",
    "envelope_status",
    "wrong_livemode",
    "record_headers",
]
"""The envelope cannot be used."""

QuarantineReason = Literal[
    "body_not_json",
    "body_text",
    "body_shape",
    "body_date",
    "money_rule",
    "overpayment_shape",
    "overpayment_collision",
    "fill_shape",
    "fill_collision",
    "reversal_shape",
    "reversal_collision",
    "transaction_collision",
    "event_id_collision",
    "payload_too_large",
    "database_refused",
    "correlation_shape",
    "correlation_collision",
]
"""Deeper: the event itself cannot be applied."""

NoEffectReason = Literal[
    "older_version",
    "seen_before",
    "already_credited",
    "never_credited",
    "already_reversed",
    "late_fact",
    "not_all_filled",
    "already_closed",
    "reversed_after_settlement",
    "already_refunded",
    "already_released",
    "already_compensated",
    "already_recorded",
    "no_handler",
]
"""Why an event has no effect."""

Reason = Literal[DeadLetterReason, QuarantineReason, NoEffectReason, ParkedReason]
"""All of them; the last are those for which an event waits."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a reason means, for a person, and what can be done."""

    en: str
    th: str
    next_step: str


REASONS: dict[Reason, Explanation] = {
    "envelope_not_json": Explanation(
        "The body is authentic but is not JSON.",
        "ข้อความเป็นของจริงแต่ไม่ใช่ JSON",
        "Look at the bytes with `tallyhook quarantine show`; ask the gateway.",
    ),
    "envelope_not_object": Explanation(
        "The body is JSON but not an event object.",
        "ข้อความเป็น JSON แต่ไม่ใช่ event",
        "Look at the bytes with `tallyhook quarantine show`; ask the gateway.",
    ),
    "envelope_id": Explanation(
        "The event's id is missing, empty, too long or not text.",
        "รหัส event ไม่มี ว่าง ยาวเกินไป หรือไม่ใช่ข้อความ",
        "Look at the bytes with `tallyhook quarantine show`; ask the gateway to send the event again.",
    ),
    "envelope_type": Explanation(
        "The event's type is missing or not text.", "ชนิดของ event ไม่มีหรือไม่ใช่ข้อความ", "Ask the gateway."
    ),
    "envelope_livemode": Explanation(
        "livemode is not a boolean, so live and test cannot be told apart.",
        "livemode ไม่ใช่ true/false จึงแยกของจริงกับการทดสอบไม่ได้",
        "Ask the gateway.",
    ),
    "envelope_merchant": Explanation(
        "The event belongs to another merchant than this endpoint's.",
        "event เป็นของร้านค้าอื่น ไม่ใช่ของปลายทางนี้",
        "Check the endpoint's merchant (TALLYHOOK_INGRESS_MERCHANT_ID, or its table) and the URL at the gateway.",
    ),
    "envelope_sequence": Explanation(
        "The sequence is not a whole number of 0 or more.", "sequence ไม่ใช่จำนวนเต็มตั้งแต่ 0 ขึ้นไป", "Ask the gateway."
    ),
    "envelope_created_at": Explanation(
        "created_at is missing or not text.", "created_at ไม่มีหรือไม่ใช่ข้อความ", "Ask the gateway."
    ),
    "envelope_object_id": Explanation(
        "data.object.id is missing, empty, too long or not text.",
        "data.object.id ไม่มี ว่าง ยาวเกินไป หรือไม่ใช่ข้อความ",
        "Ask the gateway.",
    ),
    "envelope_object_kind": Explanation(
        "data.object.object is missing or not text.", "data.object.object ไม่มีหรือไม่ใช่ข้อความ", "Ask the gateway."
    ),
    "envelope_version": Explanation(
        "An order without a version, or a version that is not a whole number of 0 or more.",
        "คำสั่งไม่มี version หรือ version ไม่ใช่จำนวนเต็มตั้งแต่ 0 ขึ้นไป",
        "Ask the gateway.",
    ),
    "envelope_status": Explanation(
        "The object's status is missing or not text.", "สถานะไม่มีหรือไม่ใช่ข้อความ", "Ask the gateway."
    ),
    "wrong_livemode": Explanation(
        "A test event on a live installation, or the other way round.",
        "event ทดสอบมาที่ระบบจริง หรือกลับกัน",
        "Check which installation reads this topic prefix (TALLYHOOK_LIVEMODE).",
    ),
    "record_headers": Explanation(
        "The record lacks the headers that the door writes.",
        "ข้อมูลไม่มี header ที่ระบบรับเข้าเป็นผู้เขียน",
        "Somebody else wrote to the topic: check its access rights.",
    ),
    "body_not_json": Explanation(
        "The bytes cannot be read as JSON.",
        "อ่านข้อความเป็น JSON ไม่ได้",
        "Repair and send it again with `tallyhook redrive`.",
    ),
    "body_text": Explanation(
        "The text has a NUL or a lone surrogate, which PostgreSQL cannot keep.",
        "ข้อความมี NUL หรือ surrogate เดี่ยว ซึ่ง PostgreSQL เก็บไม่ได้",
        "Ask the gateway to resend a clean event, or discard it with `tallyhook quarantine resolve`.",
    ),
    "body_shape": Explanation(
        "A field has another type than the contract says.",
        "ช่องข้อมูลมีชนิดไม่ตรงตามสัญญา",
        "The detail names the field; ask the gateway.",
    ),
    "body_date": Explanation(
        "A date is none, or has no time zone.",
        "วันที่ไม่ถูกต้อง หรือไม่มีเขตเวลา",
        "The detail names the field; ask the gateway.",
    ),
    "money_rule": Explanation(
        "The amounts contradict each other, so nothing may be credited or debited.",
        "ยอดเงินขัดแย้งกัน จึงไม่เพิ่มหรือลดยอดใดๆ",
        "Compare with the gateway's order; ask for a corrected event.",
    ),
    "overpayment_shape": Explanation(
        "The overpayment flag breaks its rules.", "ข้อมูลการโอนเกินไม่ถูกต้อง", "The detail names the field; ask the gateway."
    ),
    "overpayment_collision": Explanation(
        "The same claim was seen with other content.",
        "claim เดียวกันเคยมาพร้อมเนื้อหาอื่น",
        "Compare both events with `tallyhook explain`; ask the gateway which is right.",
    ),
    "fill_shape": Explanation(
        "A withdrawal.filled event has no usable fill, so the chunk cannot be kept.",
        "event withdrawal.filled ไม่มีข้อมูลก้อนเงิน (fill) ที่ใช้ได้",
        "Look at the bytes with `tallyhook quarantine show`; ask the gateway to send the event again.",
    ),
    "fill_collision": Explanation(
        "This chunk (leg_ref) is known with other content; the first one seen stays.",
        "ก้อนเงิน (leg_ref) นี้เคยมาด้วยข้อมูลอื่นแล้ว ระบบคงรายการแรกไว้",
        "Compare both with `tallyhook quarantine show`; ask the gateway which one is right.",
    ),
    "reversal_shape": Explanation(
        "A withdrawal.fill_reversed event lacks its fill or reversal, or these contradict each other.",
        "event withdrawal.fill_reversed ขาดข้อมูล fill หรือ reversal หรือข้อมูลขัดกันเอง",
        "Look at the bytes with `tallyhook quarantine show`; ask the gateway to send the event again.",
    ),
    "reversal_collision": Explanation(
        "The reversal contradicts one that is known, or the chunk that it takes back; the first one seen stays.",
        "การดึงคืนนี้ขัดกับรายการที่บันทึกไว้แล้ว ระบบคงรายการแรกไว้",
        "Compare both with `tallyhook quarantine show`; nothing was compensated twice; ask the gateway.",
    ),
    "transaction_collision": Explanation(
        "This balance transaction is known with other content; the first one seen stays.",
        "รายการเดินบัญชีนี้เคยมาด้วยข้อมูลอื่นแล้ว ระบบคงรายการแรกไว้",
        "Compare both with `tallyhook quarantine show`, then with `tallyhook reconcile`; ask the gateway.",
    ),
    "event_id_collision": Explanation(
        "The same event id was seen for another object or version.",
        "รหัส event นี้เคยมาพร้อมรายการหรือ version อื่น",
        "Compare both events with `tallyhook explain`; ask the gateway which is right.",
    ),
    "payload_too_large": Explanation(
        "The effect's payload is larger than the limit.",
        "ข้อมูลของ effect ใหญ่เกินกำหนด",
        "Raise TALLYHOOK_SINK_MAX_PAYLOAD_BYTES, then `tallyhook redrive`.",
    ),
    "database_refused": Explanation(
        "PostgreSQL refused a value of this event.",
        "PostgreSQL ไม่รับค่าใน event นี้",
        "The detail has the message; report it, then `tallyhook redrive`.",
    ),
    "correlation_shape": Explanation(
        "A record of the correlations topic is not a correlation.",
        "ข้อมูลใน topic การจับคู่เงินฝากไม่ถูกต้อง",
        "The detail names the field; repair the service that writes to deposit-correlations.",
    ),
    "correlation_collision": Explanation(
        "A deposit or a merchant reference was given to another order or user before; the first one stays.",
        "เงินฝากหรือรหัสอ้างอิงนี้เคยจับคู่กับคำสั่งซื้อหรือผู้ใช้อื่นแล้ว ระบบคงรายการแรกไว้",
        "Compare with pg_deposit_correlations; repair the service that writes to deposit-correlations.",
    ),
    "older_version": Explanation(
        "This or a newer version of the object was applied before, so the event changes nothing.",
        "มี version นี้หรือใหม่กว่าแล้ว event นี้จึงไม่เปลี่ยนอะไร",
        "Nothing to do.",
    ),
    "seen_before": Explanation("The same event was delivered before.", "event นี้เคยมาแล้ว", "Nothing to do."),
    "already_credited": Explanation(
        "The deposit was credited before; a deposit is credited once.",
        "เงินฝากนี้เพิ่มยอดไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "never_credited": Explanation(
        "The deposit was reversed before it was credited: there is nothing to take back.",
        "เงินฝากถูกดึงคืนก่อนเพิ่มยอด จึงไม่มีอะไรต้องหักคืน",
        "Nothing to do.",
    ),
    "already_reversed": Explanation(
        "The deposit was debited before; a deposit is debited at most once.",
        "เงินฝากนี้หักคืนไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "late_fact": Explanation(
        "A newer version was applied before, so the totals stay; the chunk or the reversal that it carries was kept.",
        "มี version ใหม่กว่าแล้ว ยอดรวมจึงไม่เปลี่ยน แต่บันทึกก้อนเงินหรือการดึงคืนที่มากับ event นี้ไว้",
        "Nothing to do.",
    ),
    "not_all_filled": Explanation(
        "The withdrawal says settled but has a remainder: it is not closed.",
        "รายการถอนแจ้งว่าสำเร็จแต่ยังมียอดเหลือ จึงยังไม่ปิดรายการ",
        "A later event tells more; compare with the gateway by `tallyhook reconcile`.",
    ),
    "already_closed": Explanation(
        "The withdrawal was closed before; it is closed once.",
        "รายการถอนนี้ปิดไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "reversed_after_settlement": Explanation(
        "A chunk was taken back after the withdrawal had settled: it is not closed again.",
        "มีเงินก้อนหนึ่งถูกดึงคืนหลังถอนสำเร็จ จึงไม่ปิดรายการอีก",
        "Follow the replacement withdrawal, where there is one (`tallyhook timeline`).",
    ),
    "already_refunded": Explanation(
        "What was not paid out was refunded before; this is done once.",
        "คืนส่วนที่ไม่ได้โอนไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "already_released": Explanation(
        "The user's lock was released before; this is done once.",
        "ปลดล็อกยอดของผู้ใช้ไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "already_compensated": Explanation(
        "This chunk's reversal was compensated before; this is done once a chunk.",
        "ชดเชยการดึงคืนของก้อนนี้ไปแล้ว ซึ่งทำได้ครั้งเดียว",
        "Nothing to do.",
    ),
    "already_recorded": Explanation(
        "The same balance transaction was recorded from another event; it counts once.",
        "รายการเดินบัญชีนี้บันทึกไว้แล้วจาก event อื่น นับครั้งเดียว",
        "Nothing to do.",
    ),
    "no_handler": Explanation(
        "This kind of object is recorded in the inbox and has no rules here.",
        "ข้อมูลชนิดนี้บันทึกไว้ แต่ไม่มีกติกาให้ทำอะไร",
        "Nothing to do.",
    ),
    "correlation": Explanation(
        "The deposit's order and user are not known yet.",
        "ยังไม่ทราบว่าเงินฝากนี้เป็นของคำสั่งซื้อและผู้ใช้ใด",
        "The merchant's service writes pg_deposit_correlations; see `tallyhook parked`.",
    ),
    "snapshot": Explanation(
        "The event is too sparse to build the object's row.",
        "ข้อมูลยังไม่พอที่จะสร้างรายการ",
        "A later event brings the missing fields; see `tallyhook parked`.",
    ),
}
