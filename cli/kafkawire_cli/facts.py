"""A message in a few words: groups, topics, errors; what a table has room for and a filter asks
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kafkawire.primitives import Structure

_TOPIC: Final = frozenset({"topic", "topic_name"})
_NAMED: Final = frozenset({"group_id", "transactional_id", "key", "group", "coordinator_keys"})
MOST: Final = 4


class Facts(NamedTuple):
    """What stands out in a message: topic names, (name, value) pairs of identities, names of error
    codes.
    """

    topics: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self.names]
        if self.topics:
            more = f",+{len(self.topics) - MOST}" if len(self.topics) > MOST else ""
            said.append("topics=" + ",".join(self.topics[:MOST]) + more)
        said += self.errors
        return " ".join(said)


def facts(message: Structure, version: int) -> Facts:
    """Walk a message once and collect its facts, each once, in wire order."""
    from kafkawire.protocol.error_code import ErrorCode

    topics: dict[str, None] = {}
    names: dict[tuple[str, str], None] = {}
    errors: dict[str, None] = {}
    for owner, attribute, value in _walk(message, version):
        if attribute in _TOPIC or (attribute == "name" and "Topic" in owner):
            if isinstance(value, str) and value:
                topics[value] = None
        elif attribute in _NAMED:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and one:
                    names[attribute, one] = None
        elif attribute.endswith("error_code") and isinstance(value, int) and value:
            errors[ErrorCode.name_of(value)] = None
    return Facts(tuple(topics), tuple(names), tuple(errors))


def _walk(message: Structure, version: int) -> Iterator[tuple[str, str, object]]:
    owner = type(message).__name__
    for row in message.__fields__:
        if not row.first <= version <= row.last:
            continue
        value = getattr(message, row.attribute)
        yield owner, row.attribute, value
        if value is None or not row.type.removeprefix("[]")[0].isupper():
            continue
        for child in value if row.type.startswith("[]") else [value]:
            yield from _walk(child, version)
