"""The same two calls for every library: decode bytes, encode the result.

A library is used as its own documentation says, with all preparation done before timing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import kafkawire

KAFKA_PYTHON_MODULES: Final = (
    "kafka.protocol.consumer.fetch",
    "kafka.protocol.consumer.group",
    "kafka.protocol.consumer.metadata",
    "kafka.protocol.consumer.offsets",
    "kafka.protocol.metadata",
)


class Codec(NamedTuple):
    """One library's calls for one body, ready to be timed."""

    decode: Callable[[], object]
    encode: Callable[[], bytes]


def own(name: str, version: int, data: bytes) -> Codec:
    """Bind kafkawire to a body."""
    cls = kafkawire.REGISTRY.load(name)
    message = cls.decode(data, version)
    return Codec(partial(cls.decode, data, version), partial(message.encode, version))


def kio(name: str, version: int, data: bytes) -> Codec:
    """Bind kio: a reader in Rust, a writer in Python."""
    serial = import_module("kio.serial")
    api, kind = re.fullmatch(r"(\w+)(Request|Response)", name).groups()  # type: ignore[union-attr]
    api = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).lower()
    entity = getattr(import_module(f"kio.schema.{api}.v{version}.{kind.lower()}"), name)
    read, write = serial.entity_reader(entity), serial.entity_writer(entity)
    message, size = read(data, 0)
    if size != len(data):
        raise AssertionError(f"kio reads {size} of {len(data)} bytes of {name}")

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, message)
        return buffer.getvalue()

    return Codec(partial(read, data, 0), encode)


def kafka_python(name: str, version: int, data: bytes) -> Codec:
    """Bind kafka-python, which compiles Python functions for a message on first use."""
    modules = map(import_module, KAFKA_PYTHON_MODULES)
    cls: Any = next(getattr(module, name) for module in modules if hasattr(module, name))
    message = cls.decode(data, version=version)
    message._header = None  # encode() needs it, and only the constructor sets it
    return Codec(partial(cls.decode, data, version), partial(message.encode, version))


CONTENDERS: Final[dict[str, Callable[[str, int, bytes], Codec]]] = {
    "kafkawire": own,
    "kio": kio,
    "kafka-python": kafka_python,
}
