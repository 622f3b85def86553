"""Random requests: valid ones with nulls, empty and extreme values wherever these may stand."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kafkawire import Message
from kafkawire.messages import REGISTRY
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import model

INTEGERS: Final[Mapping[str, int]] = {
    "int8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
}
TEXTS: Final = (
    "",
    "t",
    "surface",
    "no such",
    "\x00",
    "é" * 50,
    ".",
    "x" * 300,
    "1",
    "-1",
    "classic-group",
)
BYTES: Final = (b"", b"\x00", b"\xff" * 40, bytes(16), b"\x00\x03\x00\x00\x00\x00")
WORK: Final = frozenset({"count", "num_partitions"})
"""Fields whose extreme values cause work, limited elsewhere (tests of limits)."""


def varied(message: Message, version: int, rng: random.Random, chance: float = 0.15) -> Message:
    """Return the message with some of its fields changed, each with that chance, in place."""
    name = type(message).__name__
    module = sys.modules[REGISTRY.load(name).__module__]
    _vary(message, message_model(name).root, version, rng, chance, module)
    return message


def _vary(
    one: Any, struct: model.Struct, version: int, rng: random.Random, chance: float, module: Any
) -> None:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if rng.random() < chance:
            setattr(one, field.attribute, _value(field, version, rng, module))
        value = getattr(one, field.attribute)
        if field.struct is not None and value is not None:
            for each in value if field.is_array else [value]:
                _vary(each, field.struct, version, rng, chance, module)


def _value(field: model.Field, version: int, rng: random.Random, module: Any) -> object:
    if version in field.nullable and rng.random() < 0.5:
        return None
    if field.is_array:
        return [_element(field, rng, module) for _ in range(rng.choice((0, 0, 1, 2, 5)))]
    return _element(field, rng, module)


def _element(field: model.Field, rng: random.Random, module: Any) -> object:
    if field.struct is not None:
        return getattr(module, field.struct.name)()
    kind = field.element
    if kind in INTEGERS:
        return _integer(field, INTEGERS[kind], kind.startswith("u"), rng)
    return OTHERS[kind](rng)


def _integer(field: model.Field, bits: int, unsigned: bool, rng: random.Random) -> int:
    if field.attribute in WORK:
        return rng.choice((-2, -1, 0, 1, 3))
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return rng.choice((low, low + 1, max(low, -1), 0, 1, 2, rng.randint(low, high), high - 1, high))


def _uuid(rng: random.Random) -> bytes:
    return rng.choice((bytes(16), b"\xff" * 16, rng.randbytes(16)))


def _bytes(rng: random.Random) -> bytes:
    return rng.choice((*BYTES, rng.randbytes(rng.randint(1, 60))))


OTHERS: Final[Mapping[str, Callable[[random.Random], object]]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "string": lambda rng: rng.choice(TEXTS),
    "uuid": _uuid,
    "bytes": _bytes,
    "records": _bytes,
    "float64": lambda rng: rng.choice((0.0, -0.0, float("inf"), float("nan"), 1e308)),
}


def chosen(cases: Sequence[tuple[str, int]], rng: random.Random) -> tuple[str, int]:
    """Choose an API with the same chance for each, then a version of it."""
    name = rng.choice(sorted({each for each, _ in cases}))
    return name, rng.choice([version for each, version in cases if each == name])


def variations(message: Message, version: int) -> Iterator[Callable[[Message], None]]:
    """Walk changes of one field each: null, empty, lowest, highest; a change is made in place."""
    yield from _variations(message_model(type(message).__name__).root, version, lambda one: [one])


Reach = Callable[[Any], list[Any]]


def _variations(
    struct: model.Struct, version: int, reach: Reach
) -> Iterator[Callable[[Message], None]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        for value in _ends(field, version):
            yield partial(_set, reach, field.attribute, value)
        if field.struct is not None:
            yield from _variations(field.struct, version, partial(_inside, reach, field))


def _inside(reach: Reach, field: model.Field, message: Any) -> list[Any]:
    """Reach what lies inside a field of structs."""
    found: list[Any] = []
    for each in reach(message):
        value = getattr(each, field.attribute)
        if value is None and not field.is_array and field.struct is not None:
            value = getattr(sys.modules[type(each).__module__], field.struct.name)()
            setattr(each, field.attribute, value)
        found += (value or []) if field.is_array else [value]
    return found


def _set(reach: Reach, attribute: str, value: object, message: Message) -> None:
    for each in reach(message):
        setattr(each, attribute, value)


def _ends(field: model.Field, version: int) -> list[object]:
    nulls: list[object] = [None] if version in field.nullable else []
    if field.is_array:
        return [*nulls, []]
    if field.struct is not None:
        return nulls
    kind = field.element
    if kind in INTEGERS:
        if field.attribute in WORK:
            return [-2, -1, 0]
        bits = INTEGERS[kind]
        if kind.startswith("u"):
            return [0, (1 << bits) - 1]
        return [-(1 << bits - 1), -1, 0, (1 << bits - 1) - 1]
    return [*nulls, *ENDS[kind]]


ENDS: Final[Mapping[str, Sequence[object]]] = {
    "bool": (False, True),
    "string": ("", "x" * 300, "no such"),
    "uuid": (bytes(16), b"\xff" * 16),
    "bytes": (b"", b"\xff" * 40),
    "records": (b"", b"\xff" * 40),
    "float64": (float("nan"), float("-inf")),
}
