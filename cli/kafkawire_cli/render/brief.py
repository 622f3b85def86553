"""A message in a few words: groups, topics, errors; for tables of text, and for filters.

Law: what a field identifies is what the tables say of it (`tables.mentions`), one rule for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kafkawire.primitives import Message

MOST: Final = 4


class Facts(NamedTuple):
    """What stands out in a message: topic names, (name, value) pairs of identities, names of error
    codes.
    """

    topics: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self.names]
        if self.topics:
            more = f",+{len(self.topics) - MOST}" if len(self.topics) > MOST else ""
            said.append("topics=" + ",".join(self.topics[:MOST]) + more)
        said += self.errors
        return " ".join(said)


def facts(message: Message, version: int) -> Facts:
    """Collect the facts of a request or response, each once, in wire order."""
    from kafkawire.capture.exchanges.topic_ids import TopicNames
    from kafkawire.capture.tables.extraction.entities import Entities
    from kafkawire.messages import REGISTRY
    from kafkawire.protocol.error_code import ErrorCode

    info = REGISTRY.get(type(message).__name__)
    said = Entities(TopicNames())
    said.add_message(message, version, info.api_key, info.type)
    names = [("group_id", group) for group in said.groups]
    names += [("transactional_id", id) for id in said.transactional_ids]
    if not names:
        names = [("key", key) for key in _coordinator_keys(message)]
    return Facts(
        tuple(topic.name for topic in said.topics.values() if topic.name),
        tuple(names),
        tuple(ErrorCode.name_of(code) for code in said.error_codes),
    )


def _coordinator_keys(message: Any) -> list[str]:
    """List the keys in a FindCoordinator message that does not say what they identify."""
    match type(message).__name__:
        case "FindCoordinatorRequest":
            return [key for key in (message.key, *message.coordinator_keys) if key]
        case "FindCoordinatorResponse":
            return [one.key for one in message.coordinators if one.key]
        case _:
            return []
