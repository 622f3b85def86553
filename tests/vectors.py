"""Golden vectors by message, their values as instances, and the fast codec without its locator.

by_message("messages")["FetchRequest"]  -> rows        instance(row)  -> FetchRequest(...)
"""

from __future__ import annotations

import sys
import uuid
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from kafkawire.errors import DecodeError, EncodeError
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Limits, Message, Structure, failure
from kafkawire.protocol.locate.locators import LOCATORS

from . import golden
from .fuzzing import SOAK

NAMES: Final = sorted(info.name for info in REGISTRY)

ELEMENTS: Final[dict[str, Callable[[Any], Any]]] = {
    "uuid": lambda value: uuid.UUID(value).bytes,
    "bytes": bytes.fromhex,
    "records": bytes.fromhex,
    "float64": float,
}


@cache
def by_message(file: str) -> dict[str, list[dict[str, Any]]]:
    """Read one file of vectors, its rows grouped by message."""
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in golden.rows(file):
        grouped[row["message"]].append(row)
    return dict(grouped)


def is_sampled(test: str, name: str, version: int, one_in: int = 3) -> bool:
    """Whether a test takes a version of a message: one in `one_in`, other ones in other tests; all
    in `make soak`.
    """
    return SOAK > 1 or zlib.crc32(f"{test} {name} {version}".encode()) % one_in == 0


def where(row: dict[str, Any]) -> str:
    """Name a row in an assertion."""
    odd = f" {row['where']}" if row.get("where") else ""
    return f"{row['message']} v{row['version']} {row['kind']}{odd}: {row['hex'][:80]}"


def instance(row: dict[str, Any]) -> Message:
    """Build the message that a row's `json` describes."""
    made: Message = build(REGISTRY.load(row["message"]), row["json"])
    return made


def build(cls: type[Structure], values: dict[str, Any]) -> Any:
    rows = {row.json_name: row for row in cls.__fields__}
    made: dict[str, Any] = {}
    for name, value in values.items():
        if name == "_tags":
            made["unknown_tags"] = [(tag, bytes.fromhex(raw)) for tag, raw in value] or None
            continue
        row = rows[name[:1].lower() + name[1:]]
        made[row.attribute] = convert(cls, row.type, value)
    return cls(**made)


def convert(cls: type[Structure], type: str, value: Any) -> Any:
    if value is None:
        return None
    if type.startswith("[]"):
        return [convert(cls, type[2:], item) for item in value]
    if type[0].isupper():
        return build(getattr(sys.modules[cls.__module__], type), value)
    read = ELEMENTS.get(type)
    return value if read is None else read(value)


def same(one: Any, other: Any) -> bool:
    """Compare two messages, NaN being equal to itself."""
    return bool(one == other) or repr(one) == repr(other)


@contextmanager
def fast_alone() -> Iterator[None]:
    """Let the fast codec speak for itself: nothing looks again at what it refuses."""
    failure.install(failure.Locators(lambda *_: None, lambda *_: None))
    try:
        yield
    finally:
        failure.install(LOCATORS)


def verdict(
    name: str, version: int, data: bytes, *, lenient: bool = False, limits: Limits | None = None
) -> type[DecodeError] | None:
    """Say which error the fast codec refuses the bytes with; None where it accepts them."""
    more = {} if limits is None else {"limits": limits}
    try:
        REGISTRY.load(name).decode(data, version, lenient=lenient, **more)
    except DecodeError as error:
        return type(error)
    return None


def encoding_verdict(message: Message, version: int) -> type[EncodeError] | None:
    """Say which error a message cannot be encoded with; None where it can."""
    try:
        message.encode(version)
    except EncodeError as error:
        return type(error)
    return None
