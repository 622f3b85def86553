"""Finds the field and byte where a message fails, for the fast codec.

Law: called only after a failure. If it exceeds its budget or finds no error, it returns None: then
the fast codec's error stands (class and byte, no field).
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import DecodeError, EncodeError, UnknownApiKey
from ..primitives.failure import Locators
from ..primitives.limits import Limits
from .codec import encode
from .schemas import message_model
from .walk import GaveUp, Walk, plan_of

OUR_MESSAGES: Final = "kafkawire.messages"

MAX_ELEMENTS: Final = 300_000
"""Elements of one search: about a second. Hostile data must not take longer by failing late."""


def locate_decode(
    package: str, name: str, data: bytes, version: int, lenient: bool, limits: Limits
) -> DecodeError | None:
    """Find the error of a body that the class `name` in module `package` could not decode."""
    if not is_ours(package):
        return None
    walk = Walk(name, data, lenient, limits, MAX_ELEMENTS)
    try:
        walk.struct(plan_of(message_model(name).root, version))
    except DecodeError as error:
        return error.with_traceback(None)
    except (GaveUp, UnknownApiKey):
        return None
    return None


def locate_encode(package: str, message: Any, version: int, lenient: bool) -> EncodeError | None:
    """Find the first field in wire order that cannot be encoded."""
    if not is_ours(package):
        return None
    try:
        encode(type(message).__name__, version, message, lenient=lenient)
    except EncodeError as error:
        return error
    except UnknownApiKey:
        return None
    return None


def is_ours(package: str) -> bool:
    """Whether a module is one of kafkawire's messages: other packages have no schemas here."""
    return package == OUR_MESSAGES or package.startswith(f"{OUR_MESSAGES}.")


LOCATORS: Final = Locators(decode=locate_decode, encode=locate_encode)
