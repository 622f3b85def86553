"""What cannot be written is refused, by the path of the field, in every version of every message.

For each field of the full vector of each version, a value its type cannot hold, a null, and a
value in a version without the field: one error each, naming exactly that field, of the class that
the fast codec itself raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from kafkawire.errors import (
    EncodeError,
    FieldNotInVersion,
    InvalidValue,
    NullNotAllowed,
    OutOfRange,
    UnsupportedVersion,
)
from kafkawire.messages import REGISTRY
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import model
from kafkawire_codegen.wire_types import WIRE_TYPES
from tests import vectors
from tests.vectors import NAMES, encoding_verdict, fast_alone


class Slot(NamedTuple):
    """A field of an instance inside a message, and the path it is known by."""

    owner: Any
    field: model.Field
    path: str


def slots(struct: model.Struct, value: Any, version: int, path: str) -> Iterator[Slot]:
    """Yield every field of a message, those of its structs and of the first element of its arrays.

    Of a struct that the version lacks as a whole, only the field that holds it.
    """
    for f in struct.fields:
        here = f"{path}.{f.attribute}"
        yield Slot(value, f, here)
        held = getattr(value, f.attribute)
        if f.struct is not None and held and version in f.versions:
            if f.is_array:
                yield from slots(f.struct, held[0], version, f"{here}[0]")
            else:
                yield from slots(f.struct, held, version, here)


def full_messages(name: str) -> Iterator[tuple[int, Any]]:
    """Read the full vector of every version: one message each."""
    seen = set()
    for row in vectors.by_message("messages").get(name, []):
        if row["kind"] == "full" and row["version"] not in seen:
            seen.add(row["version"])
            yield row["version"], vectors.instance(row)


Wrong = tuple[Any, type[EncodeError]]

WRONG: Final[dict[str, list[Wrong]]] = {
    t.name: [(t.low - 1, OutOfRange), (t.high + 1, OutOfRange)]
    for t in WIRE_TYPES.values()
    if t.low is not None and t.high is not None
}
WRONG["string"] = [("\ud800", InvalidValue), ("x" * 32768, OutOfRange)]
WRONG["uuid"] = [(b"short", InvalidValue)]
"""Values of the right Python type that a wire type cannot hold."""


def refused(message: Any, version: int, slot: Slot, value: Any, kind: type[EncodeError]) -> None:
    """Set a field, expect the refusal, set it back."""
    before = getattr(slot.owner, slot.field.attribute)
    setattr(slot.owner, slot.field.attribute, value)
    scenario = f"{slot.path} v{version} = {value!r:.40}"
    try:
        with pytest.raises(EncodeError) as caught:
            message.encode(version)
        with fast_alone():
            assert encoding_verdict(message, version) is kind, scenario
    finally:
        setattr(slot.owner, slot.field.attribute, before)
    assert type(caught.value) is kind, scenario
    assert caught.value.path == slot.path, scenario
    assert caught.value.offset is None, scenario


@pytest.mark.parametrize("name", NAMES)
def test_a_value_its_type_cannot_hold_is_refused(name: str) -> None:
    for version, message in full_messages(name):
        for slot in slots(message_model(name).root, message, version, name):
            f = slot.field
            if version not in f.versions or f.wire is None:
                continue
            for value, kind in WRONG.get(f.wire.name, ()):
                if not f.is_array:
                    refused(message, version, slot, value, kind)
                    continue
                inside = slot._replace(path=f"{slot.path}[0]")
                refused(message, version, inside, [value], kind)


@pytest.mark.parametrize("name", NAMES)
def test_null_is_refused_where_the_version_does_not_allow_it(name: str) -> None:
    for version, message in full_messages(name):
        for slot in slots(message_model(name).root, message, version, name):
            f = slot.field
            if version in f.versions and f.may_be_none and version not in f.nullable:
                before = getattr(slot.owner, f.attribute)
                if f.tagged and f.default is None:
                    continue  # left out
                refused(message, version, slot, None, NullNotAllowed)
                assert getattr(slot.owner, f.attribute) is before


def other_than_default(f: model.Field, held: Any) -> Any:
    """Make a value for a field that is not its default; None where there is nothing to do so."""
    if f.is_array:
        return None
    if f.struct is not None:
        return None if held is None else set_somewhere(f.struct, type(held)())
    assert f.wire is not None
    if f.wire.is_integer:
        return 1 if f.default != 1 else 2
    return {"string": "x", "bytes": b"x", "records": b"x", "uuid": b"x" * 16, "float64": 1.5}.get(
        f.wire.name, not f.default
    )


def set_somewhere(struct: model.Struct, made: Any) -> Any:
    """Set the first field of a struct that can be set to something other than its default."""
    for f in struct.fields:
        value = other_than_default(f, getattr(made, f.attribute))
        if value is not None:
            setattr(made, f.attribute, value)
            return made
    return None


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_another_version_is_an_error_or_dropped_if_ignorable(name: str) -> None:
    for version, message in full_messages(name):
        whole = message.encode(version)
        for slot in slots(message_model(name).root, message, version, name):
            f = slot.field
            if version in f.versions:
                continue
            value = other_than_default(f, getattr(slot.owner, f.attribute))
            if value is None:
                continue
            if not f.ignorable:
                refused(message, version, slot, value, FieldNotInVersion)
                continue
            before = getattr(slot.owner, f.attribute)
            setattr(slot.owner, f.attribute, value)
            assert message.encode(version) == whole, f"{slot.path} v{version}"
            setattr(slot.owner, f.attribute, before)


@pytest.mark.parametrize(
    ("tags", "kind", "path"),
    [
        ([(7, b""), (7, b"")], InvalidValue, "[1]"),
        ([(-1, b"")], OutOfRange, "[0]"),
        ([(2**31 - 1, b"")], OutOfRange, "[0]"),
    ],
    ids=["twice", "negative", "reserved"],
)
def test_an_unknown_tag_that_cannot_be_is_refused(
    tags: list[tuple[int, bytes]], kind: type[EncodeError], path: str
) -> None:
    message = REGISTRY.load("HeartbeatRequest")(unknown_tags=tags)
    with pytest.raises(EncodeError) as caught:
        message.encode(4)
    assert type(caught.value) is kind
    assert caught.value.path == f"HeartbeatRequest.unknown_tags{path}"
    with fast_alone():
        assert encoding_verdict(message, 4) is kind


@pytest.mark.parametrize("name", [i.name for i in REGISTRY if i.flexible is not None])
def test_unknown_tags_are_refused_in_versions_without_them(name: str) -> None:
    info = REGISTRY.get(name)
    for version in range(info.first, info.last + 1):
        message = REGISTRY.load(name)(unknown_tags=[(9999, b"x")])
        error = encoding_verdict(message, version)
        if info.is_flexible(version):
            assert error is not FieldNotInVersion, version
        else:
            assert error is FieldNotInVersion, version


@pytest.mark.parametrize("name", NAMES)
def test_a_version_that_is_not_there_is_refused_both_ways(name: str) -> None:
    info, cls = REGISTRY.get(name), REGISTRY.load(name)
    for version in (info.first - 1, info.last + 1, -32768, 32767):
        with pytest.raises(UnsupportedVersion, match=f"{name} has versions"):
            cls.decode(b"", version)
        with pytest.raises(UnsupportedVersion, match=f"{name} has versions"):
            cls().encode(version)
