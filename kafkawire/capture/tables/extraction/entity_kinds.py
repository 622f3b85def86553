"""Finds the messages with entities that collectors use, so that others need not be searched.

Law: a message that is left out has no entity of these kinds, at its version, whatever its content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ....primitives import Structure
from ....protocol.fields import Field, steps_to
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row
from .entities import SPECIAL, Entities, recorder_of

TOPICS: Final = "topics"
GROUPS: Final = "groups"
TRANSACTIONAL_IDS: Final = "transactional_ids"
ERROR_CODES: Final = "error_codes"
THROTTLING: Final = "throttle_time_ms"
ALL_KINDS: Final = frozenset({TOPICS, GROUPS, TRANSACTIONAL_IDS, ERROR_CODES, THROTTLING})
"""The attributes of `Entities`."""

KIND_OF: Final[dict[Callable[[Entities, Any], None], str]] = {
    Entities.topic: TOPICS,
    Entities._topic_id: TOPICS,
    Entities.group: GROUPS,
    Entities.transactional_id: TRANSACTIONAL_IDS,
    Entities._error: ERROR_CODES,
    Entities._throttled: THROTTLING,
}
"""What adds the entity of a field -> its kind."""


class _NoTopics(TopicNames):
    """Names for entities whose topics nobody uses: no topic is looked up, or added to them."""

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:  # noqa: ARG002
        """Return a topic without name and id."""
        return _NO_TOPIC


_NO_TOPIC: Final = Topic(None, None)
NO_TOPICS: Final = _NoTopics()


class Searched:
    """The messages to be searched for entities. kinds_of: the kinds that an API's collectors use.

    Memory grows with the classes and versions of messages.
    """

    def __init__(self, kinds_of: Callable[[int | None], frozenset[str]]) -> None:
        self._kinds_of = kinds_of
        self._known: dict[tuple[type, int | None], bool] = {}

    def has(self, row: Row | None) -> bool:
        """Whether the message of a row is to be searched."""
        if row is None:
            return False
        key = type(row.message), row.body_version
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = has_any(row, self._kinds_of(row.api_key))
        return found


def has_any(row: Row, kinds: frozenset[str]) -> bool:
    """Whether the message of a row may have an entity of some kinds."""
    if row.message is None or row.body_version is None or not kinds:
        return False
    if (row.api_key, row.direction) in SPECIAL:
        return True

    def kind_of(owner: type[Structure], field: Field) -> str | None:
        recorder = recorder_of(owner.__name__, field)
        kind = None if recorder is None else KIND_OF[recorder]
        return kind if kind in kinds else None

    return bool(steps_to(type(row.message), row.body_version, kind_of))
