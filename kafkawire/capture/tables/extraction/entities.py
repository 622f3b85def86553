"""Finds the entities in a message: topics, groups, transactional ids, error codes, throttling.

Law: a field identifies an entity by the entity type in its schema; a field without one identifies
nothing, whatever its name. Topic ids, which have no entity type, and error codes go by name.

    topic       entity type topicName, and uuid fields named topic_id
    group       entity type groupId
    error       int16 fields whose names end in error_code
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ....messages.api_key import ApiKey
from ....primitives import Message, Structure
from ....protocol.fields import Field, Step, steps_to
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row


class Entities:
    """The distinct entities of an exchange, in order of first occurrence."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self.topics: dict[object, Topic] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.error_codes: dict[int, None] = {}
        self.throttle_time_ms: int | None = None

    def add(self, row: Row | None) -> None:
        """Add the entities of a row's message, if it was decoded."""
        if row is None or row.message is None or row.body_version is None:
            return
        self.add_message(row.message, row.body_version, row.api_key, row.direction)

    def add_message(
        self, message: Message, version: int, api_key: int | None, direction: str
    ) -> None:
        """Add the entities of a message of that version."""
        self._walk(message, _steps(type(message), version))
        special = SPECIAL.get((api_key, direction))
        if special is not None:
            special(self, message)

    def topic(self, name: str | None, id: bytes | None = None) -> None:
        """Add a topic."""
        found = self._names.topic(name, id)
        if found.name or found.id:
            self.topics[found.key] = found

    def group(self, name: str) -> None:
        """Add a group."""
        if name:
            self.groups[name] = None

    def transactional_id(self, name: str) -> None:
        """Add a transactional id."""
        if name:
            self.transactional_ids[name] = None

    def _walk(self, struct: Structure, steps: Steps) -> None:
        for step in steps:
            value = getattr(struct, step.attribute)
            if not value and value != 0:
                continue
            if step.use is not None:
                step.use(self, value)
            elif isinstance(value, list):
                for one in value:
                    self._walk(one, step.inner)
            else:
                self._walk(value, step.inner)

    def _error(self, code: int) -> None:
        if code:
            self.error_codes[code] = None

    def _throttled(self, time_ms: int) -> None:
        self.throttle_time_ms = time_ms

    def _topic_id(self, id: bytes) -> None:
        self.topic(None, id)


Add = Callable[[Entities, Any], None]
Steps = tuple[Step[Add], ...]

_known: Final[dict[tuple[type[Structure], int], Steps]] = {}


def _steps(cls: type[Structure], version: int) -> Steps:
    """Find the fields of a message that identify entities at a version, and the way to them."""
    found = _known.get((cls, version))
    if found is None:
        found = _known[cls, version] = steps_to(cls, version, _adder)
    return found


def _adder(owner: type[Structure], field: Field) -> Add | None:
    add = recorder_of(owner.__name__, field)
    return _each(add) if add is not None and field.is_array else add


def _each(add: Add) -> Add:
    def add_all(self: Entities, values: list[Any]) -> None:
        for value in values:
            add(self, value)

    return add_all


ENTITIES: Final[dict[str, Add]] = {
    "topicName": Entities.topic,
    "groupId": Entities.group,
    "transactionalId": Entities.transactional_id,
}
"""Entity type of a field -> what adds its value."""

UNMARKED_GROUPS: Final = frozenset(
    {
        "InitializeShareGroupStateRequest",
        "ReadShareGroupStateRequest",
        "WriteShareGroupStateRequest",
        "DeleteShareGroupStateRequest",
        "ReadShareGroupStateSummaryRequest",
    }
)
"""Structs whose `group_id` has no entity type in Kafka's schemas: the state of share groups."""


def recorder_of(owner: str, field: Field) -> Add | None:
    """Return what adds the value of a field of the struct `owner`, or an element of it.

    Returns None for a field that identifies no entity.
    """
    add = ENTITIES.get(field.entity_type)
    if add is not None:
        return add
    name, kind = field.attribute, field.element
    if kind == "string":
        return Entities.group if name == "group_id" and owner in UNMARKED_GROUPS else None
    if kind == "uuid":
        return Entities._topic_id if name == "topic_id" else None
    if kind == "int16" and name.endswith("error_code"):
        return Entities._error
    return Entities._throttled if name == "throttle_time_ms" else None


# -- fields whose meaning depends on another field

COORDINATOR_OF: Final = {0: Entities.group, 1: Entities.transactional_id}
"""key_type of a FindCoordinator -> what adds the key; 2 is a group with topic id and partition."""

TOPIC_RESOURCE: Final = 2
"""The resource type of topics, in messages about configurations."""


def _coordinator(entities: Entities, message: Message) -> None:
    add = COORDINATOR_OF.get(getattr(message, "key_type", 0))
    if add is not None:
        for key in [getattr(message, "key", ""), *getattr(message, "coordinator_keys", [])]:
            add(entities, key)


def _resources(attribute: str) -> Callable[[Entities, Message], None]:
    def add(entities: Entities, message: Message) -> None:
        for resource in getattr(message, attribute) or ():
            if resource.resource_type == TOPIC_RESOURCE:
                entities.topic(resource.resource_name)

    return add


SPECIAL: Final[dict[tuple[int | None, str], Callable[[Entities, Message], None]]] = {
    (ApiKey.FIND_COORDINATOR, "request"): _coordinator,
    (ApiKey.DESCRIBE_CONFIGS, "request"): _resources("resources"),
    (ApiKey.DESCRIBE_CONFIGS, "response"): _resources("results"),
    (ApiKey.ALTER_CONFIGS, "request"): _resources("resources"),
    (ApiKey.ALTER_CONFIGS, "response"): _resources("responses"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "request"): _resources("resources"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "response"): _resources("responses"),
}
"""Messages in which a field's meaning depends on another."""
