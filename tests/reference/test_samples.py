"""Example messages: a value other than the default in every field of every version."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.reference.defaults import is_set
from kafkawire.reference.samples import example, sample
from kafkawire_codegen import model
from tests.schemas import schemas

MESSAGES = {schema.name: model.build(schema) for schema in schemas()}


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_is_set(name: str) -> None:
    message = MESSAGES[name]
    for version in range(message.versions.low, message.versions.high + 1):
        values = sample(message, version)
        assert values == sample(message, version)
        assert_set(message.root, values, version, name)


def assert_set(struct: model.Struct, values: dict[str, Any], version: int, where: str) -> None:
    for f in struct.fields:
        value, here = values[f.attribute], f"{where}.{f.attribute}"
        assert is_set(f, value) == (version in f.versions), (here, version)
        if f.struct is not None and version in f.versions:
            for inner in value if f.is_array else [value]:
                assert_set(f.struct, inner, version, here)


def test_rows_have_all_bytes_in_order() -> None:
    rows = example(MESSAGES["FetchResponse"], 12)
    end = 0
    for row in rows:
        assert row.offset == end
        end = row.end
    shown = {(row.field, row.value) for row in rows}
    assert ("error_code", "3 UNKNOWN_TOPIC_OR_PARTITION") in shown
    assert ("", '"orders"') in shown


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (2, 1), (3, 1), (4, 2), (18, 2)])
def test_records_are_of_the_format_of_their_time(version: int, magic: int) -> None:
    message = MESSAGES["FetchResponse"]
    topic = sample(message, version)["responses"][0]
    assert topic["partitions"][0]["records"][16] == magic
