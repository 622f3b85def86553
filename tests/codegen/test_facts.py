"""The facts of schemas in packages of others: what `explain` knows is what the schemas say."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kafkawire.reference import encode, parse
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import facts, schemas_dir
from kafkawire_codegen.model import EMPTY_STRUCT, Field, Message, load
from tests.generated import generated

LEFT_OUT = {"about", "deprecated", "latest_unstable", "listeners", "headers"}


def same(one: Any, other: Any) -> bool:
    """Compare models by their values; structs by their names, once."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and one == other


def values(thing: Any) -> dict[str, Any]:
    return {f.name: getattr(thing, f.name) for f in fields(thing) if f.name not in LEFT_OUT}


def compare_fields(one: Field, other: Field) -> None:
    a, b = values(one), values(other)
    first, second = a.pop("struct"), b.pop("struct")
    assert (first and first.name) == (second and second.name)
    assert all(same(a[name], b[name]) for name in a), (a, b)


def compare(one: Message, other: Message) -> None:
    a, b = values(one), values(other)
    for first, second in zip(a.pop("structs"), b.pop("structs"), strict=True):
        for f, g in zip(first.fields, second.fields, strict=True):
            compare_fields(f, g)
        assert values(first) | {"fields": 0} == values(second) | {"fields": 0}
    assert a == b


@pytest.fixture(scope="module")
def models() -> list[Message]:
    return load(schemas_dir())


def test_what_is_read_is_what_was_written(models: list[Message]) -> None:
    assert len(models) > 250
    for model in models:
        text = facts.write(model)
        assert text.isascii()
        assert "\n" not in text
        compare(model, facts.read(text))


def test_facts_of_another_generator_are_refused(models: list[Message]) -> None:
    text = facts.write(models[0]).replace('"form":1', '"form":99')
    with pytest.raises(ValueError, match="facts of form 99, not 1: generate it again"):
        facts.read(text)


DEFAULTS = [
    ("string", 'it\'s "quoted"\\ \u2028 \U0001f600'),
    ("float64", "NaN"),
    ("float64", "-Infinity"),
    ("int64", "-9223372036854775808"),
    ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ"),
    ("bool", "true"),
    ("bytes", None),
]
ODD = {
    "apiKey": 7, "type": "request", "name": "OddRequest", "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        *[
            {"name": f"F{i}", "type": type, "versions": "0+"}
            | ({} if text is None else {"default": text})
            for i, (type, text) in enumerate(DEFAULTS)
        ],
        {"name": "Tagged", "type": "Inner", "versions": "1+", "taggedVersions": "1+", "tag": 0,
         "fields": [{"name": "X", "type": "[]int8", "versions": "1+"}]},
    ],
}  # fmt: skip


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[str]:
    with generated(tmp_path, "odd_facts", ODD, ODD | {"name": "OddResponse", "type": "response"}):
        yield "odd_facts"


def test_defaults_of_any_kind_come_back(odd: str) -> None:
    model = message_model("OddRequest", odd)
    defaults = {f.attribute: f.default for f in model.root.fields}
    assert defaults.pop("tagged") is EMPTY_STRUCT
    message = importlib.import_module(odd).OddRequest()
    for name, value in defaults.items():
        assert same(value, getattr(message, name)), name


def test_the_reference_codec_agrees_with_the_package(odd: str) -> None:
    module = importlib.import_module(f"{odd}.odd_request")
    message = module.OddRequest(f0="x", tagged=module.Inner(x=[1, 2]))
    data = message.encode(1)
    assert encode("OddRequest", 1, message, package=odd) == data
    found = parse("OddRequest", 1, data, package=odd)
    assert found.error is None
    assert found.values is not None
    assert found.values["tagged"]["x"] == [1, 2]


def test_kafkas_own_messages_bring_no_facts() -> None:
    assert importlib.util.find_spec("kafkawire.messages._facts") is None


def test_they_are_small(models: list[Message]) -> None:
    """They are read when something fails, or is explained."""
    size = sum(len(facts.write(model)) for model in models)
    number = sum(len(struct.fields) for model in models for struct in model.structs)
    assert size < 150 * number
    assert json.loads(facts.write(models[0]))["form"] == facts.VERSION
