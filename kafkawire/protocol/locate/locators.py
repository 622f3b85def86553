"""Finds the field where a message cannot be encoded, for the fast codec.

Called only after a failure. If it finds no error, it returns None: then the fast codec's error
stands. A first failure imports this and little more; the reference codec, whose errors it has, is
not imported.
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import EncodeError, FieldNotInVersion, UnknownApiKey
from ...primitives.failure import Locators
from ..packages import package_with
from . import locate_decode
from .layouts import layout_of
from .values import Values


def locate_encode(
    failure: Exception, module: str, message: Any, version: int, lenient: bool
) -> EncodeError | None:
    """Find the first field in wire order that cannot be encoded.

    failure: the fast codec's error. module: that of the message.
    """
    package = package_with(module)
    if package is None:
        return None
    cls = type(message)
    unfit = failure.path if isinstance(failure, FieldNotInVersion) else ""
    values = Values(cls.__name__, cls.__module__, lenient, unfit)
    located: EncodeError | None = None
    try:
        flexible = package.index.get(cls.__name__).flexible
        values.struct(message, layout_of(cls, version, flexible))
    except EncodeError as error:
        located = error.with_traceback(None)
    except UnknownApiKey:
        return None
    of_type = isinstance(failure, AttributeError | TypeError)  # a value of a wrong type
    if of_type and (located is None or isinstance(located, FieldNotInVersion)):
        return values.suspect or located
    return located


LOCATORS: Final = Locators(decode=locate_decode, encode=locate_encode)
