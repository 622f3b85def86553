"""Turns a failure of the fast codec into an error that names field and byte.

A success costs nothing. After a failure the message is walked over again, with the path. The
package's `__init__` installs what does that (`install`): this layer does not import it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..errors import (
    DecodeError,
    EncodeError,
    FieldNotInVersion,
    InvalidText,
    InvalidValue,
    NullNotAllowed,
    OutOfRange,
    TrailingBytes,
    Truncated,
    UnsupportedVersion,
    WireError,
)
from .limits import Limits


class Locators(NamedTuple):
    """What finds where a message fails; None if it finds no error.

    encode: gets the fast codec's error first.
    """

    decode: Callable[[str, str, bytes, int, bool, Limits], DecodeError | None]
    encode: Callable[[Exception, str, Any, int, bool], EncodeError | None]


_installed: Final[list[Locators]] = []


def install(locators: Locators) -> None:
    """Set what finds the place of a failure, for the whole process."""
    _installed[:] = [locators]


def unsupported(name: str, first: int, last: int, version: int) -> UnsupportedVersion:
    """Make the error for a version that a message does not have."""
    return UnsupportedVersion(f"{name} has versions {first}-{last}, not {version}")


def not_in_version(path: str) -> FieldNotInVersion:
    """Make the error for a field that is set in a version without it."""
    return FieldNotInVersion("is set, and the version has no such field", path)


def null_not_allowed(path: str) -> NullNotAllowed:
    """Make the error for a None in a field that is not nullable in the version."""
    return NullNotAllowed("is None, and not nullable in that version", path)


def decode_failure(
    error: Exception,
    package: str,
    name: str,
    data: bytes,
    version: int,
    lenient: bool,
    limits: Limits,
    position: int,
) -> WireError:
    """Turn what stopped a decode at about `position` into the error to raise."""
    if isinstance(error, UnsupportedVersion):
        return error
    if isinstance(error, TrailingBytes):  # after all fields, so there is no field to find
        return TrailingBytes(error.reason, name, position)
    for locators in _installed:
        located = locators.decode(package, name, data, version, lenient, limits)
        if located is not None:
            return located
    if isinstance(error, DecodeError):
        return type(error)(error.reason, error.path or name, min(position, len(data)))
    if isinstance(error, UnicodeDecodeError):
        return InvalidText("a string is not UTF-8", name, position)
    return Truncated("the data ends inside the message", name, len(data))


def encode_failure(
    error: Exception, package: str, message: Any, version: int, lenient: bool
) -> WireError:
    """Turn what stopped an encode into the error to raise."""
    if isinstance(error, UnsupportedVersion):
        return error
    name = type(message).__name__
    for locators in _installed:
        located = locators.encode(error, package, message, version, lenient)
        if located is not None:
            return located
    if isinstance(error, EncodeError):
        return type(error)(error.reason, error.path or name)
    if _is_out_of_range(error):
        return OutOfRange(str(error), name)
    return InvalidValue(f"{type(error).__name__}: {error}", name)


def _is_out_of_range(error: Exception) -> bool:
    """Return whether an error means a number too large: compiled and interpreted code differ."""
    if isinstance(error, TypeError):
        text = str(error)
        return text.startswith(("i16 ", "i32 ", "i64 ")) and text.endswith("got int")
    return isinstance(error, OverflowError) or type(error) is ValueError
