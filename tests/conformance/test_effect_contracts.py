"""The effects' contracts: files equal the types, examples are valid, and what leaves the pipeline keeps to them."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from schemas.contracts import EXAMPLES, FOLDER, PAYLOAD_TYPES, file_text, schema_of


def _checked(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_files_are_those_of_the_types() -> None:
    """Each payload has its file and no file is left over; `python -m schemas.contracts` writes them anew."""
    assert {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == {
        name: file_text(name) for name in PAYLOAD_TYPES
    }


@pytest.mark.parametrize("name", PAYLOAD_TYPES)
def test_examples_are_valid(name: str) -> None:
    """Every example keeps to its schema and is read back by its type."""
    validator = _checked(name)
    for example in EXAMPLES[name]:
        payload = json.loads(msgspec.json.encode(example))
        validator.validate(payload)
        assert msgspec.json.decode(msgspec.json.encode(payload), type=PAYLOAD_TYPES[name]) == example


@pytest.mark.parametrize("name", PAYLOAD_TYPES)
def test_a_member_that_is_missing_or_of_another_type_is_refused(name: str) -> None:
    """The schema can fail: no member may be left out, and amounts are whole numbers."""
    validator = _checked(name)
    whole: dict[str, Any] = msgspec.to_builtins(EXAMPLES[name][0])
    for member in whole:
        assert not validator.is_valid({key: value for key, value in whole.items() if key != member})
        assert not validator.is_valid(whole | {member: 1.5})


@pytest.mark.parametrize("name", PAYLOAD_TYPES)
def test_a_new_member_is_allowed(name: str) -> None:
    """Consumers must survive members that are added later, so the schema does too."""
    assert _checked(name).is_valid(msgspec.to_builtins(EXAMPLES[name][0]) | {"added_later": None})
    assert schema_of(name)["$id"] == f"/schemas/effects/{name}.json"
