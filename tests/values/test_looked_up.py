"""Schemas that were looked up before: values are decoded as by the sources themselves."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import ClassVar
from uuid import UUID

import pytest

from kafkawire.errors import UnusableSchema
from kafkawire.values import (
    Bounds,
    Schema,
    SchemaKey,
    SchemaSource,
    SchemaType,
    Subject,
    ValueDecoder,
    ValueFormat,
)
from kafkawire.values.framing import VALUE_HEADER, Headers

LONG = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'
GUID = UUID(int=7)
ORDERS = Subject("orders")


class Remote:
    """A source that has schema 1, a GUID, and one of the topic orders. calls: what was asked."""

    is_local: ClassVar[bool] = False

    def __init__(self) -> None:
        self.calls: list[SchemaKey | Subject] = []

    def by_key(self, key: SchemaKey, subject: Subject | None) -> Schema | None:  # noqa: ARG002
        self.calls.append(key)
        if key == 3:
            raise UnusableSchema("no connection", "schema 3", True)
        schema = Schema("one", SchemaType.AVRO, LONG, key=key)
        return schema if key in (1, GUID) else None

    def by_subject(self, subject: Subject) -> Schema | None:
        self.calls.append(subject)
        return Schema("raw", SchemaType.AVRO, LONG) if subject == ORDERS else None


class Local(Remote):
    """One that `auto` looks subjects up in."""

    is_local: ClassVar[bool] = True


def values() -> Iterator[tuple[bytes, Subject | None, Headers]]:
    """Values that name a schema that is there, missing, out of reach, or none."""
    for subject in (ORDERS, Subject("other"), None):
        for data in (
            *(bytes([0, 0, 0, 0, number, 0x54]) for number in (1, 2, 3)),
            b"\x01" + GUID.bytes + b"\x54",
            b"\x54",
            b'{"a": 1}',
            b"",
        ):
            yield data, subject, ()
        yield b"\x54", subject, [(VALUE_HEADER, b"\x01" + GUID.bytes)]


@pytest.mark.parametrize("source", [Remote, Local])
@pytest.mark.parametrize("format", list(ValueFormat))
def test_values_are_decoded_as_by_the_sources(format: ValueFormat, source: type[Remote]) -> None:
    remote = source()
    decoder = ValueDecoder(format, [remote])
    named = [decoder.named_schema(*each) for each in values()]
    looked_up = decoder.looked_up(one for one in named if one is not None)
    assert source is Local or len(remote.calls) == len(set(remote.calls))
    copy = pickle.loads(pickle.dumps(looked_up))
    asked = len(remote.calls)
    expected = [ValueDecoder(format, [source()]).decode(*each) for each in values()]
    assert [copy.decode(*each) for each in values()] == expected
    assert len(remote.calls) == asked


def test_without_sources_values_say_so() -> None:
    decoder = ValueDecoder(ValueFormat.AUTO)
    assert [decoder.looked_up(()).decode(*each) for each in values()] == [
        decoder.decode(*each) for each in values()
    ]


def test_the_number_of_schemas_is_bounded() -> None:
    sources: list[SchemaSource] = [Remote()]
    decoder = ValueDecoder(ValueFormat.AVRO, sources, Bounds(schemas=2))
    data = [bytes([0, 0, 0, 0, number, 0x54]) for number in (1, 2, 4)]
    named = [decoder.named_schema(each, ORDERS) for each in data]
    copy = decoder.looked_up(one for one in named if one is not None)
    decoded = [copy.decode(each, ORDERS) for each in data]
    values_and_errors = [(each.value, each.error) for each in decoded if each is not None]
    assert values_and_errors[:2] == [({"n": 42}, None), (None, "schema 2: not found")]
    assert "only 2 schemas" in str(values_and_errors[2][1])
