"""The door's HTTP interface as OpenAPI 3.1, made from the constants that the door itself works by.

`python -m schemas.openapi` writes `schemas/openapi.yaml` anew; a test holds the file to this, and the running door to
the file.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas import door
from schemas.door import PROBLEM_TYPE, PROBLEMS, Problem, problem_body
from schemas.yaml_text import Node, yaml_text

FILE = Path(__file__).with_name("openapi.yaml")

Described = Mapping[str, Node]

_PROBLEM_NAMES = {
    400: "Unreadable",
    401: "NotAuthentic",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "TooLarge",
    415: "Encoded",
    503: "NotNow",
}
_WHEN = {
    400: "The request cannot be read, is cut off, has too many headers, or comes too slowly. The connection ends.",
    401: "Signature, timestamp or id is missing, malformed, repeated, not ours or out of tolerance. One body for all.",
    404: "There is no such endpoint.",
    405: "Another method on this path.",
    413: "The body is larger than the limit. The connection ends.",
    415: "A Content-Encoding is given: the signature is over the plain bytes.",
    503: "Not stored: Kafka did not confirm in time, too much is under way, or the process is ending. Send it again.",
}
_LIMITS: dict[str, int | float] = {
    "tolerance_seconds": door.TOLERANCE_SECONDS,
    "max_body_bytes": door.MAX_BODY_BYTES,
    "max_headers": door.MAX_HEADERS,
    "max_header_bytes": door.MAX_HEADER_BYTES,
    "max_signatures": door.MAX_SIGNATURES,
    "max_signature_header_bytes": door.MAX_PROOF_BYTES,
    "max_id_bytes": door.MAX_ID_BYTES,
    "head_timeout_seconds": door.HEAD_TIMEOUT_SECONDS,
    "body_timeout_seconds": door.BODY_TIMEOUT_SECONDS,
    "delivery_timeout_seconds": door.DELIVERY_TIMEOUT_SECONDS,
    "max_in_flight": door.MAX_IN_FLIGHT,
    "max_held_bytes": door.MAX_HELD_BYTES,
}


def document() -> dict[str, Node]:
    """The whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallyhook's door",
            "version": "1",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Takes webhooks and answers 200 once every in-sync replica has their bytes. HTTP/1.1, "
            "chunked bodies and any Content-Type too. The limits are those of an installation that sets no others.",
            "x-limits": _LIMITS,
        },
        "paths": {
            "/webhooks": {
                "post": _webhook("postWebhook", "A webhook for the endpoint `default`", required=True),
            },
            "/webhooks/{endpoint}": {
                "parameters": [_endpoint()],
                "post": _webhook("postWebhookTo", "A webhook for a named endpoint", required=False),
            },
            "/livez": _page("Livez", "Whether the process turns", _health_answers()),
            "/readyz": _page("Readyz", "Whether it can do its work", _health_answers()),
            "/metrics": _page("Metrics", "Prometheus text", _metrics_answers()),
        },
        "components": {
            "schemas": {
                "Accepted": _object({"status": {"const": json.loads(door.ACCEPTED_BODY)["status"]}}),
                "Ok": _object({"status": {"const": "ok"}, "pid": {"type": "integer", "minimum": 1}}),
                "Unavailable": _object(
                    {
                        "status": {"const": "unavailable"},
                        "pid": {"type": "integer", "minimum": 1},
                        "reasons": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    }
                ),
                "Event": _event(),
                **{f"{name}Problem": _problem_schema(status) for status, name in _PROBLEM_NAMES.items()},
            },
            "responses": {name: _problem_answer(status) for status, name in _PROBLEM_NAMES.items()},
        },
    }


def _webhook(operation: str, summary: str, *, required: bool) -> Described:
    """Posting; the three headers are those of `standard-webhooks`, which a named endpoint need not have."""
    return {
        "operationId": operation,
        "summary": summary,
        "description": "Authentic bytes are kept whatever they hold: as an event, or as a dead letter where their "
        "envelope cannot be used."
        + ("" if required else " An endpoint of the scheme `raw-body` has one header of its own instead."),
        "parameters": [
            _header("webhook-id", required, f"^{door.WEBHOOK_ID}$", door.MAX_ID_BYTES, "The message's id."),
            _header(
                "webhook-timestamp", required, f"^{door.WEBHOOK_TIMESTAMP}$", 12, "Seconds since 1970 of this attempt."
            ),
            _header(
                "webhook-signature",
                required,
                f"^{door.WEBHOOK_SIGNATURE}$",
                door.MAX_PROOF_BYTES,
                "Entries separated by spaces; `v1a,` and the base64 of an Ed25519 signature over "
                "`{webhook-id}.{webhook-timestamp}.{body}`.",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref("schemas", "Event")}}},
        "responses": {
            "200": {
                "description": "Durable in Kafka.",
                "content": {"application/json": {"schema": _ref("schemas", "Accepted")}},
            },
            **{str(status): _ref("responses", name) for status, name in _PROBLEM_NAMES.items()},
        },
    }


def _page(name: str, summary: str, answers: Mapping[str, Node]) -> Described:
    problems = {str(status): _ref("responses", _PROBLEM_NAMES[status]) for status in (400, 405)}
    without_body = {status: {"description": "As to GET, without a body."} for status in (*answers, *problems)}
    return {
        "get": {"operationId": f"get{name}", "summary": summary, "responses": {**answers, **problems}},
        "head": {"operationId": f"head{name}", "summary": summary, "responses": without_body},
    }


def _health_answers() -> Mapping[str, Node]:
    return {
        "200": {"description": "Yes.", "content": {"application/json": {"schema": _ref("schemas", "Ok")}}},
        "503": {
            "description": "No, with reasons; or too many connections.",
            "content": {
                "application/json": {"schema": _ref("schemas", "Unavailable")},
                PROBLEM_TYPE: {"schema": _ref("schemas", "NotNowProblem")},
            },
        },
    }


def _metrics_answers() -> Mapping[str, Node]:
    return {
        "200": {"description": "The samples.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        "503": _ref("responses", "NotNow"),
    }


def _problem_answer(status: int) -> Described:
    headers: dict[str, Node] = {"Cache-Control": {"required": True, "schema": {"const": "no-store"}}}
    if status == 405:
        headers["Allow"] = {"required": True, "schema": {"enum": ["POST", "GET, HEAD"]}}
    if status == 503:
        description = "Seconds."
        headers["Retry-After"] = {
            "required": True,
            "description": description,
            "schema": {"type": "integer", "const": door.RETRY_AFTER_SECONDS},
        }
    return {
        "description": _WHEN[status],
        "headers": headers,
        "content": {PROBLEM_TYPE: {"schema": _ref("schemas", f"{_PROBLEM_NAMES[status]}Problem")}},
    }


def _problem_schema(status: int) -> Described:
    found: list[Problem] = [problem for problem in dict.fromkeys(PROBLEMS.values()) if problem.status == status]
    bodies = [problem_body(problem) for problem in found]
    members: dict[str, Node] = {}
    for name in bodies[0]:
        values = list(dict.fromkeys(body[name] for body in bodies))
        members[name] = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return _object(members)


def _event() -> Described:
    """The envelope; its other members pass untouched."""
    text: Node = {"type": "string", "minLength": 1, "maxLength": door.MAX_ID_BYTES}
    number: Node = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
    entity = {"id": text, "object": text, "version": number, "status": text}
    members = {
        "id": text,
        "type": text,
        "livemode": {"type": "boolean"},
        "created_at": text,
        "sequence": number,
        "account": _open({"merchant_id": text}, ["merchant_id"]),
        "data": _open({"object": _open(entity, ["id", "object"])}, ["object"]),
    }
    return _open(members, list(members)) | {
        "description": "What the door reads of an event; orders need version and status. Texts are bounded in bytes "
        "of UTF-8 and hold no control characters."
    }


def _open(members: Mapping[str, Node], required: Sequence[str]) -> dict[str, Node]:
    return {"type": "object", "required": required, "properties": members}


def _object(members: Mapping[str, Node]) -> dict[str, Node]:
    return {"type": "object", "required": list(members), "properties": members, "additionalProperties": False}


def _endpoint() -> Described:
    schema: Node = {"type": "string", "pattern": f"^{door.ENDPOINT_NAME}$"}
    return {"name": "endpoint", "in": "path", "required": True, "schema": schema}


def _header(name: str, required: bool, pattern: str, longest: int, description: str) -> Described:
    schema: Node = {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": longest}
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _ref(kind: str, name: str) -> Described:
    return {"$ref": f"#/components/{kind}/{name}"}


def file_text() -> str:
    """The description as its file holds it."""
    return "# Made by `python -m schemas.openapi`; edit that.\n" + yaml_text(document())


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).write_text(file_text(), encoding="utf-8")
