"""Error codes against the facts."""

from __future__ import annotations

import json

from kafkawire import ErrorCode
from tests.conftest import FIXTURES


def test_error_codes_are_those_of_the_facts() -> None:
    facts = json.loads((FIXTURES / "reference" / "error_codes.json").read_text())
    ours = [(e.value, e.name, e.retriable, e.invalid_metadata) for e in ErrorCode]
    assert ours == [(f["code"], f["name"], f["retriable"], f["invalid_metadata"]) for f in facts]


def test_unknown_codes_have_a_name_to_print() -> None:
    assert ErrorCode.name_of(35) == "UNSUPPORTED_VERSION"
    assert ErrorCode.name_of(9999) == "ERROR_9999"
