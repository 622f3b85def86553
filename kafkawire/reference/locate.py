"""Where a message fails: the field and the byte, for the fast codec, which only knows that it does.

Law: called only after a failure. What it cannot find within its budget, or sees nothing wrong with,
is None: then what the fast codec knows (the error's class, the byte it had reached) stands.
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
"""Elements a search may take: about a second. Hostile data must not buy more by failing late."""


def locate_decode(
    package: str, name: str, data: bytes, version: int, lenient: bool, limits: Limits
) -> DecodeError | None:
    """Find what is wrong with a body that the class `name` in module `package` could not decode."""
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
    """Find the first field in wire order that keeps a message from being encoded."""
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
    """Whether a module is one of our own messages: the schemas of other packages are not here."""
    return package == OUR_MESSAGES or package.startswith(f"{OUR_MESSAGES}.")


LOCATORS: Final = Locators(decode=locate_decode, encode=locate_encode)
