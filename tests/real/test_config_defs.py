"""The tables of configuration keys are what a real Kafka has."""

from __future__ import annotations

import pytest

from .broker import Broker
from .config_defs import RELEASE, drawn_tables, valid_values
from .java import RELEASE as TESTED

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]


def test_the_tables_are_those_of_kafka(kafka: Broker) -> None:
    if TESTED != RELEASE:
        assert TESTED < RELEASE, "draw the tables again"
        return
    for path, text in drawn_tables(kafka.installation, kafka.port):
        assert path.read_text("utf-8") == text, "python -m tests.real.config_defs --write"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (None, {}),
        ("[1,...]", {"least": 1}),
        ("[0,...,0.5]", {"least": 0, "most": 0.5}),
        ("[1,...,9] or -1", {"least": 1, "most": 9, "also": [-1]}),
        ("[a, b]", {"one_of": ["a", "b"]}),
        ("(case insensitive) [A]", {"one_of": ["A"], "any_case": True}),
        ("non-empty string", {"empty": False}),
    ],
)
def test_validators_are_read(printed: str | None, expected: dict[str, object]) -> None:
    assert valid_values({"valid": printed}) == expected


def test_an_unknown_validator_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown validator 'odd numbers'"):
        valid_values({"valid": "odd numbers"})
