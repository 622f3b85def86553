"""Summarises a message briefly (groups, topics, errors) for tables of text and for filters.

Law: entities are extracted by the same rules as for the tables (`tables.extraction.entities`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kafkawire.primitives import Message

MAX_TOPICS: Final = 4


class Facts(NamedTuple):
    """The main facts of a message: topics, other entities as (name, value), error code names."""

    topics: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.names]
        if self.topics:
            more = f",+{len(self.topics) - MAX_TOPICS}" if len(self.topics) > MAX_TOPICS else ""
            parts.append("topics=" + ",".join(self.topics[:MAX_TOPICS]) + more)
        parts += self.errors
        return " ".join(parts)


def facts(message: Message, version: int) -> Facts:
    """Collect the facts of a request or response, without duplicates, in wire order."""
    from kafkawire.capture.exchanges.topic_ids import TopicNames
    from kafkawire.capture.tables.extraction.entities import Entities
    from kafkawire.messages import REGISTRY
    from kafkawire.protocol.error_code import ErrorCode

    info = REGISTRY.get(type(message).__name__)
    entities = Entities(TopicNames())
    entities.add_message(message, version, info.api_key, info.type)
    names = [("group_id", group) for group in entities.groups]
    names += [("transactional_id", id) for id in entities.transactional_ids]
    if not names:
        names = [("key", key) for key in _coordinator_keys(message)]
    return Facts(
        tuple(topic.name for topic in entities.topics.values() if topic.name),
        tuple(names),
        tuple(ErrorCode.name_of(code) for code in entities.error_codes),
    )


def _coordinator_keys(message: Any) -> list[str]:
    """List the keys in a FindCoordinator message that does not state their type."""
    match type(message).__name__:
        case "FindCoordinatorRequest":
            return [key for key in (message.key, *message.coordinator_keys) if key]
        case "FindCoordinatorResponse":
            return [one.key for one in message.coordinators if one.key]
        case _:
            return []
