"""Makes messages that cannot be encoded such that they can, without a change of what they say."""

from __future__ import annotations

from typing import Any, Final

from ...primitives import Message, Structure
from ...protocol.fields import Field, Step, fields_at, steps_to

MAX_STRING_BYTES: Final = 0x7FFF


def shorten_error_messages(message: Message, version: int) -> bool:
    """Cut the error messages of a response to what fits into a string; whether one did not fit.

    They may contain names that nearly fill a string themselves.
    """
    return _shorten(message, steps_to(type(message), version, _is_error_message))


def _is_error_message(_: type[Structure], field: Field) -> bool | None:
    return True if field.attribute == "error_message" and field.is_a("string") else None


def _shorten(value: Any, steps: tuple[Step[bool], ...]) -> bool:
    shortened = False
    for step in steps:
        inner = getattr(value, step.attribute)
        if not step.use:
            for each in inner if isinstance(inner, list) else (inner,):
                shortened |= each is not None and _shorten(each, step.inner)
        elif inner is not None and len(data := inner.encode()) > MAX_STRING_BYTES:
            text = data[:MAX_STRING_BYTES].decode(errors="ignore")
            setattr(value, step.attribute, text)
            shortened = True
    return shortened


def drop_unknown_tags(value: Structure, version: int) -> None:
    """Remove the unknown tagged fields of a message, and of the structs in it."""
    one: Any = value
    if getattr(one, "unknown_tags", None) is not None:
        one.unknown_tags = None
    for field in fields_at(type(value), version):
        if field.struct is not None:
            inner = getattr(value, field.attribute)
            for each in inner if isinstance(inner, list) else (inner,):
                if each is not None:
                    drop_unknown_tags(each, version)
