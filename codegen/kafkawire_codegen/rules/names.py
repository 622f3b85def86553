"""What a field, and what a struct or message, may be called.

Law: a name that passes is a name in every generated module; none of those is bent to fit.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
TAKEN: Final = frozenset(
    {"Bent", "ClassVar", "EMPTY", "FieldRow", "Final", "Limits", "Message", "Reader", "Structure"}
    | {"Tags", "Writer"}
)
"""Names a generated module imports: a class of that name would hide them."""


def wrong_field_name(name: str) -> str | None:
    """Say what is wrong with the name of a field, or None."""
    if _FIELD.match(name):
        return None
    return f"{name!r} is no field name: a letter, then letters and digits"


def wrong_class_name(name: str, kind: str) -> str | None:
    """Say what is wrong with the name of a struct or message (`kind`), or None."""
    if name in TAKEN or keyword.iskeyword(name):
        return f"{name} cannot be a {kind} name: generated code needs it itself"
    if _CLASS.match(name):
        return None
    return f"{name!r} is no {kind} name: a capital letter, then letters and digits"
