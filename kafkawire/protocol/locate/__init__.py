"""Finds the field and byte where a message cannot be decoded, for the fast codec.

Law: called only after a failure. If it exceeds its budget or finds no error, it returns None: then
the fast codec's error stands (class and byte, no field). A first failure imports this and little
more: neither the generator nor the reference codec.
"""

from __future__ import annotations

from typing import Final

from ...errors import DecodeError, UnknownApiKey
from ...messages import REGISTRY
from ...primitives.limits import Limits
from .plan import plan_of
from .walk import GaveUp, Walk

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
        flexible = REGISTRY.get(name).flexible
        walk.struct(plan_of(REGISTRY.load(name), version, flexible))
    except DecodeError as error:
        return error.with_traceback(None)
    except (GaveUp, UnknownApiKey):
        return None
    return None


def is_ours(package: str) -> bool:
    """Whether a module is one of kafkawire's messages: the registry has no others."""
    return package == OUR_MESSAGES or package.startswith(f"{OUR_MESSAGES}.")
