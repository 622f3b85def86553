"""Finds the entities in a message: topics, groups, transactional ids, error codes, numbers.

A field identifies an entity by the entity type in its schema; a field without one identifies
nothing, whatever its name. Topic ids, which have no entity type, and error codes go by name.

    topic       entity type topicName, and uuid fields named topic_id
    group       entity type groupId
    error       int16 fields whose names end in error_code
    number      int32 fields named in BODY_NUMBERS
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from ....messages.api_key import ApiKey
from ....primitives import Message, Structure
from ....protocol.fields import Field, Step, steps_to
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row
from ..columns import BODY_NUMBERS


class Entities:
    """The distinct entities of an exchange, in order of first occurrence. numbers: by field."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self.topics: dict[object, Topic] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.error_codes: dict[int, None] = {}
        self.numbers: dict[str, int] = {}

    def add(self, row: Row | None) -> None:
        """Add the entities of a row's message, if it was decoded."""
        if row is None or row.message is None or row.body_version is None:
            return
        self.add_message(row.message, row.body_version, row.api_key, row.direction)

    def add_message(
        self, message: Message, version: int, api_key: int | None, direction: str
    ) -> None:
        """Add the entities of a message of that version."""
        key = type(message), version
        places = _known.get(key)
        if places is None:
            places = _known[key] = Places(*key, api_key, direction, ALL_KINDS)
        self.add_from(message, places)

    def add_from(self, message: Message, places: Places) -> None:
        """Add the entities in some places of a message."""
        self._walk(message, places.fields)
        if places.special is not None:
            places.special(self, message)

    def topic(self, name: str | None, id: bytes | None = None) -> None:
        """Add a topic."""
        topic = self._names.topic(name, id)
        if topic.name or topic.id:
            self.topics[topic.key] = topic

    def group(self, name: str) -> None:
        """Add a group."""
        if name:
            self.groups[name] = None

    def transactional_id(self, name: str) -> None:
        """Add a transactional id."""
        if name:
            self.transactional_ids[name] = None

    def _walk(self, struct: Structure, fields: list[EntityField]) -> None:
        for field in fields:
            value = getattr(struct, field.attribute)
            if not value and (value is None or not field.is_number):
                continue
            if field.is_error:
                self.error_codes[value] = None
            elif field.add is not None:
                field.add(self, value)
            elif isinstance(value, list):
                for one in value:
                    self._walk(one, field.inner)
            else:
                self._walk(value, field.inner)

    def _error(self, code: int) -> None:
        if code:
            self.error_codes[code] = None

    def _topic_id(self, id: bytes) -> None:
        self.topic(None, id)


Add = Callable[[Entities, Any], None]


@final
class EntityField:
    """A field that identifies an entity, or that has structs with such fields.

    add: what adds its value; None for structs: inner are the fields of each. is_error: whether it
    is an error code, added without a call. is_number: whether its value counts even if zero.
    """

    def __init__(self, step: Step[Add]) -> None:
        self.attribute: str = step.attribute
        self.add: Add | None = step.use
        self.is_error: bool = step.use is Entities._error
        self.is_number: bool = step.use in NUMBER_FIELDS.values()
        self.inner: list[EntityField] = [EntityField(one) for one in step.inner]


@final
class Places:
    """Where a message of that version may have entities of some kinds.

    special: what adds entities whose kind depends on another field.
    """

    def __init__(
        self,
        cls: type[Structure],
        version: int,
        api_key: int | None,
        direction: str,
        kinds: frozenset[str],
    ) -> None:
        def add_of(owner: type[Structure], field: Field) -> Add | None:
            add = recorder_of(owner.__name__, field)
            if add is None or KIND_OF[add] not in kinds:
                return None
            return _each(add) if field.is_array else add

        self.fields: list[EntityField] = [
            EntityField(step) for step in steps_to(cls, version, add_of)
        ]
        self.special: Special | None = (
            SPECIAL.get((api_key, direction)) if kinds & NAMED_KINDS else None
        )

    def __bool__(self) -> bool:
        return bool(self.fields) or self.special is not None


_known: Final[dict[tuple[type[Structure], int], Places]] = {}
"""The places of entities of all kinds, by the class of a message and its version."""


@final
class EntitySearch:
    """Searches exchanges for entities of the kinds that are used.

    kinds_of: those that are used of the exchanges of an API. A message in which there are
    none of these, at its version, is not searched.
    """

    def __init__(self, names: TopicNames, kinds_of: Callable[[int | None], frozenset[str]]) -> None:
        self._names = names
        self._kinds_of = kinds_of
        self._none = Entities(names)  # shared by all exchanges without an entity
        self._known: dict[tuple[type[Structure], int], Places] = {}

    def entities(self, request: Row | None, response: Row | None) -> Entities:
        """Return the entities of an exchange, which may share them with others: not to be changed.

        There may be others of other kinds.
        """
        entities = self._none
        for row in (request, response):
            if row is None or row.message is None or row.body_version is None:
                continue
            places = self.places(row, row.message, row.body_version)
            if places:
                if entities is self._none:
                    entities = Entities(self._names)
                entities.add_from(row.message, places)
        return entities

    def places(self, row: Row, message: Message, version: int) -> Places:
        """Return where a row's message is searched."""
        key = type(message), version
        places = self._known.get(key)
        if places is None:
            kinds = self._kinds_of(row.api_key)
            places = self._known[key] = Places(*key, row.api_key, row.direction, kinds)
        return places


def _each(add: Add) -> Add:
    def add_all(self: Entities, values: list[Any]) -> None:
        for value in values:
            add(self, value)

    return add_all


def _setter(name: str) -> Add:
    def set_number(self: Entities, value: int) -> None:
        self.numbers[name] = value

    return set_number


NUMBER_FIELDS: Final[dict[str, Add]] = {one.name: _setter(one.name) for one in BODY_NUMBERS}
"""A field that is a number -> what sets it."""

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
    """Return what adds a field of the struct `owner`, or an element of it; None for no entity."""
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
    return NUMBER_FIELDS.get(name) if kind == "int32" else None


TOPICS: Final = "topics"
GROUPS: Final = "groups"
TRANSACTIONAL_IDS: Final = "transactional_ids"
ERROR_CODES: Final = "error_codes"
THROTTLING: Final = "throttle_time_ms"
NAMED_KINDS: Final = frozenset({TOPICS, GROUPS, TRANSACTIONAL_IDS})
ALL_KINDS: Final = NAMED_KINDS | {ERROR_CODES, *NUMBER_FIELDS}
"""The attributes of `Entities`, and its numbers."""

KIND_OF: Final[dict[Add, str]] = {
    Entities.topic: TOPICS,
    Entities._topic_id: TOPICS,
    Entities.group: GROUPS,
    Entities.transactional_id: TRANSACTIONAL_IDS,
    Entities._error: ERROR_CODES,
    **{add: name for name, add in NUMBER_FIELDS.items()},
}
"""What adds the entity of a field -> its kind."""

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


Special = Callable[[Entities, Message], None]

SPECIAL: Final[dict[tuple[int | None, str], Special]] = {
    (ApiKey.FIND_COORDINATOR, "request"): _coordinator,
    (ApiKey.DESCRIBE_CONFIGS, "request"): _resources("resources"),
    (ApiKey.DESCRIBE_CONFIGS, "response"): _resources("results"),
    (ApiKey.ALTER_CONFIGS, "request"): _resources("resources"),
    (ApiKey.ALTER_CONFIGS, "response"): _resources("responses"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "request"): _resources("resources"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "response"): _resources("responses"),
}
"""Messages in which a field's meaning depends on another."""
