"""Finds the field and byte where a message cannot be decoded, for the fast codec.

Called only after a failure. If it exceeds its budget or finds no error, it returns None: then
the fast codec's error stands (class and byte, no field). A first failure imports this and little
more: neither the generator nor the reference codec.
"""

from __future__ import annotations

from typing import Final

from ...errors import DecodeError, UnknownApiKey
from ...primitives.limits import Limits
from ..packages import package_with
from .plan import plan_of
from .walk import GaveUp, Walk

MAX_ELEMENTS: Final = 300_000
"""Elements of one search: about a second. Hostile data must not take longer by failing late."""


def locate_decode(
    module: str, name: str, data: bytes, version: int, lenient: bool, limits: Limits
) -> DecodeError | None:
    """Find the error of a body that the class `name` in a module could not decode."""
    package = package_with(module)
    if package is None:
        return None
    walk = Walk(name, data, lenient, limits, MAX_ELEMENTS)
    try:
        flexible = package.index.get(name).flexible
        walk.struct(plan_of(package.index.load(name), version, flexible))
    except DecodeError as error:
        return error.with_traceback(None)
    except (GaveUp, UnknownApiKey):
        return None
    return None
