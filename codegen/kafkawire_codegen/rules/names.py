"""Rules for the names of fields, structs and messages.

A name that passes is valid in every generated module, unchanged.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

from .. import naming

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
TAKEN: Final = frozenset(
    {
        "Deviations",
        "ClassVar",
        "EMPTY",
        "FieldRow",
        "Final",
        "Limits",
        "Message",
        "Reader",
        "Structure",
    }
    | {"LinkedMessage", "Tags", "Writer"}  # imported
    | {"FIRST", "LAST", "NAME"}  # constants
    | {"IndexError", "TypeError", "ValueError"}  # of Python
)
"""Names that a generated module uses: a class of that name would shadow them."""
TAKEN_IN_PACKAGE: Final = frozenset({"Any", "AttributeError", "Final", "MessageIndex", "REGISTRY"})
"""Names that the `__init__` of a generated package uses: a message of that name would be shadowed
there.
"""
API_KEYS_MODULE: Final = "api_key"
"""The only module of a generated package without a message."""
LONGEST_MESSAGE_NAME: Final = 128
"""The longest name: it is also a file name, which most file systems limit to 255 bytes."""
SHOWN: Final = 40
"""Characters of an invalid value in an error."""


def wrong_field_name(name: str) -> str | None:
    """Return the error of a field's name, or None."""
    if is_plain_name(name):
        return None
    return f"{brief(name)} is not a valid field name: a letter, then letters and digits"


def is_plain_name(name: str) -> bool:
    """Whether a name is a letter, then letters and digits."""
    return _FIELD.match(name) is not None


def wrong_class_name(name: str, kind: str) -> str | None:
    """Return the error of the name of a struct or message (`kind`), or None."""
    if name in TAKEN or keyword.iskeyword(name):
        return f"{name} is not a valid {kind} name: generated code uses it itself"
    if _CLASS.match(name):
        return None
    return f"{brief(name)} is not a valid {kind} name: a capital letter, then letters and digits"


def wrong_message_name(name: str) -> str | None:
    """Return the error of a message's name, which names a class and a module, or None."""
    if name in TAKEN_IN_PACKAGE or naming.snake(name) == API_KEYS_MODULE:
        return f"{name} is not a valid message name: generated code uses it itself"
    if len(name) > LONGEST_MESSAGE_NAME:
        return f"{brief(name)} is too long: {LONGEST_MESSAGE_NAME} characters at most"
    return wrong_class_name(name, "message")


def brief(text: str) -> str:
    """Quote a value; of a long one only the beginning."""
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}... ({len(text)} characters)"
