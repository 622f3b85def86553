"""The names that topics may have."""

from __future__ import annotations

import re
from typing import Final

LONGEST_NAME: Final = 249
LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def normalised(name: str) -> str:
    """Return a topic's name as metrics have it: two topics must not share one."""
    return name.replace(".", "_")


def topic_name_error(name: str) -> str | None:
    """Return why a topic name is invalid, None if it is valid."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"Topic name is invalid: longer than {LONGEST_NAME} characters"
    if LEGAL_NAME.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None
