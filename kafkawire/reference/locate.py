"""Finds the field where a message cannot be encoded, for the fast codec.

Law: called only after a failure. Where it finds no error it returns None: then the fast codec's
error stands. What cannot be decoded is found without this package (`kafkawire.protocol.locate`).
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import EncodeError, UnknownApiKey
from ..primitives.failure import Locators
from ..protocol.locate import locate_decode
from ..protocol.packages import package_with
from .codec import encode


def locate_encode(module: str, message: Any, version: int, lenient: bool) -> EncodeError | None:
    """Find the first field in wire order that cannot be encoded; module: that of the message."""
    package = package_with(module)
    if package is None:
        return None
    try:
        encode(type(message).__name__, version, message, lenient=lenient, package=package.name)
    except EncodeError as error:
        return error
    except (UnknownApiKey, ImportError, ValueError):  # the package does not have its facts
        return None
    return None


LOCATORS: Final = Locators(decode=locate_decode, encode=locate_encode)
