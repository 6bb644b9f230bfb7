"""The OpenAPI file tells what the running door does: generated requests, each answer held to the file."""

import contextlib
import time
from collections import Counter
from typing import Any

import pytest
import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import missing_required_header, positive_data_acceptance

from schemas import openapi
from schemas.door import PROBLEMS
from schemas.openapi import FILE, document, file_text
from tallyhook.settings import IngressSettings
from tests.hostile.doors import DoorUnderTest

EXAMPLES = 25


def test_the_file_is_up_to_date() -> None:
    """`python -m schemas.openapi` would write the same, and YAML's readers find the same in it."""
    assert FILE.read_text(encoding="utf-8") == file_text(), "run `python -m schemas.openapi`"
    assert yaml.safe_load(file_text()) == document()


def test_every_answer_of_the_table_is_described() -> None:
    """No status of the door is missing, and none is described that it never gives."""
    posted = yaml.safe_load(file_text())["paths"]["/webhooks"]["post"]["responses"]
    assert {int(status) for status in posted} == {problem.status for problem in PROBLEMS.values()} | {200}


def test_the_limits_are_the_defaults() -> None:
    """What the description says of the limits is what an installation has that sets none."""
    defaults = {name: field.default for name, field in IngressSettings.model_fields.items()}
    fixed = {"head_timeout_seconds", "max_signature_header_bytes"}
    told = {name: value for name, value in openapi._LIMITS.items() if name not in fixed}
    assert told == {name: defaults[name] for name in told}


SCHEMA = schemathesis.openapi.from_path(str(FILE))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)]
DESCRIBED = {operation.label: operation for operation in OPERATIONS}
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", DESCRIBED)
def test_the_door_answers_as_described(door: DoorUnderTest, label: str, mode: GenerationMode) -> None:
    """Statuses, types of content, headers and bodies, for requests that keep the description and that break it."""
    statuses = Counter[int]()

    @bounded
    @given(case=DESCRIBED[label].as_strategy(mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        response = case.call(base_url=f"http://127.0.0.1:{door.port}")
        statuses[response.status_code] += 1
        # Nobody signed these, so that not even the soundest of them is taken.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    with contextlib.suppress(Unsatisfiable):  # a page takes nothing that could be broken
        ask()
    if label.startswith("POST"):
        assert statuses[200] == 0
        assert statuses[404 if "{" in label else 401] > 0


def test_what_keeps_the_description_and_is_signed_is_taken(door: DoorUnderTest) -> None:
    """The same requests are answered 200 once somebody signs them, whatever their body says."""
    operation = DESCRIBED["POST /webhooks"]

    @bounded
    @given(case=operation.as_strategy(GenerationMode.POSITIVE))
    def ask(case: schemathesis.Case[Any]) -> None:
        made = case.as_transport_kwargs(base_url=f"http://127.0.0.1:{door.port}")
        request = requests.Request(
            made["method"], made["url"], json=made.get("json"), data=made.get("data"), cookies=made.get("cookies")
        ).prepare()
        body = request.body or b""
        raw = body.encode() if isinstance(body, str) else body
        request.headers.update(door.key.sign("msg_1", int(time.time()), raw))
        with requests.Session() as session:
            response = session.send(request, timeout=30)
        assert response.status_code == 200
        case.validate_response(response, excluded_checks=[missing_required_header])

    ask()
    assert door.process.metric("tallyhook_ingress_accepted_total") > 0
