"""Where a message fails: answers for the fast codec, which only knows that it does.

Law: asked only after a failure. What it cannot answer within its budget, or sees nothing wrong
with, is None: then what the fast codec knows (the error's class, the byte it had reached) stands.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import DecodeError, EncodeError, UnknownApiKey
from ..primitives.failure import Locators
from ..primitives.limits import Limits
from .codec import encode, parse
from .tree import TooManyNodes

OUR_MESSAGES: Final = "kafkawire.messages"

MAX_NODES: Final = 100_000
"""Nodes a search may take: about a second. Hostile data must not buy more time by failing late."""


def locate_decode(
    package: str, name: str, data: bytes, version: int, lenient: bool, limits: Limits
) -> DecodeError | None:
    """Find what is wrong with a body that the class `name` in module `package` could not decode."""
    if not is_ours(package):
        return None
    try:
        return parse(name, version, data, lenient=lenient, limits=limits, max_nodes=MAX_NODES).error
    except (TooManyNodes, UnknownApiKey):
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
