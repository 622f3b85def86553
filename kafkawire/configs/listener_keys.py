"""The keys of one listener: `listener.name.`, its name in lower case, and a broker's key."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .keys import BROKER_CONFIGS, ConfigKey

PREFIX: Final = "listener.name."
PATTERN: Final = re.compile(re.escape(PREFIX) + r"(?P<listener>[^.]+)\.(?P<name>.+)")
GROUPS: Final = ("ssl.", "sasl.")
"""How the keys begin that a listener may have values of its own for."""
SINGLE: Final = frozenset({"max.connections"})
"""The others."""


class ListenerKey(NamedTuple):
    """A key of a listener. listener: in upper case. name: of the broker's key."""

    listener: str
    name: str
    key: ConfigKey


def prefixed(listener: str, name: str) -> str:
    """Return the key that has the value of a broker's key for a listener."""
    return f"{PREFIX}{listener.lower()}.{name}"


def listener_key(text: str) -> ListenerKey | None:
    """Parse a key of a listener; None for one that is not."""
    match = PATTERN.fullmatch(text)
    if match is None:
        return None
    name = match["name"]
    key = BROKER_CONFIGS.get(name)
    if key is None or not (name in SINGLE or name.startswith(GROUPS)):
        return None
    return ListenerKey(match["listener"].upper(), name, key)
