"""Resolves topic ids to names, for messages that have ids only.

These are Fetch v13+, Produce v13+, OffsetCommit v10+, share and KIP-848 messages.

A name is learned only from a structure with both id and name, in any message of either
direction. It is valid for the whole capture, because a topic id is never reused. That of
`__cluster_metadata`, which Kafka has defined, needs no message.

    {topic_id, name} anywhere --> learn --> Topic(id, name); the first name wins
    {topic_id} anywhere ---------> topic --> the same Topic, whose name may be learned later
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from ...primitives import Message, Structure
from ...protocol.fields import Field, Step, fields_at, steps_to
from ...protocol.json_form import uuid_text

ZERO: Final = bytes(16)
"""The topic id that means: not set."""

OWN_NAMES: Final = {bytes(15) + b"\x01": "__cluster_metadata"}
"""The ids that Kafka itself has defined (`Uuid.METADATA_TOPIC_ID`), which no message names."""

TOPIC_NAME: Final = "topicName"
"""The entity type of topic name fields; one beside a topic id names the same topic."""


TopicKey: TypeAlias = str | bytes | None
"""The identity of a topic: its id, or its name; None if neither is known."""


def topic_key(name: str | None, id: bytes | None) -> TopicKey:
    """Return the `key` of the topic of a name and id, without the topic."""
    return name or None if id is None or id == ZERO else id


@final
class Topic:
    """A topic that messages refer to by name, by id, or both; `name` is None until it is known.

    There is one object per id, so a name learned later shows in all rows with it. shared: that
    object, for a topic whose message states a name besides: a name learned for the id replaces it.
    """

    __slots__ = ("_name", "_shared", "id")

    def __init__(self, name: str | None, id: bytes | None, shared: Topic | None = None) -> None:
        self._name: str | None = name
        self._shared: Topic | None = shared
        self.id: bytes | None = id

    @property
    def name(self) -> str | None:
        """The name, if it is known."""
        shared = self._shared
        return self._name if shared is None else shared.name or self._name

    @property
    def id_text(self) -> str | None:
        """The id as Kafka writes it, 22 characters; None if not set."""
        return None if self.id is None else uuid_text(self.id)

    @property
    def key(self) -> TopicKey:
        """The identity of the topic: its id if set, else its name."""
        return self._name if self.id is None else self.id

    def learn(self, name: str) -> None:
        """Set the name."""
        self._name = name

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id_text!r})"


class TopicNames:
    """The topic names of a capture so far.

    Memory grows with the topics of the cluster, not with the capture. named: ids in the order in
    which their names were learned. learned: the ids whose names need not be added again.
    """

    def __init__(self) -> None:
        self.named: list[bytes] = []
        self.learned: set[bytes] = set()
        self._by_id: dict[bytes, Topic] = {}
        self._by_name: dict[str, Topic] = {}

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:
        """Return the topic of a name and id; "" and the zero id mean not set."""
        if id is None or id == ZERO:
            topic = self._by_name.get(name or "")
            if topic is None:
                topic = self._by_name[name or ""] = Topic(name or None, None)
            return topic
        topic = self._by_id.get(id) or self._new(id)
        return Topic(name, id, topic) if name and topic.name is None else topic

    def add(self, name: str, id: bytes) -> None:
        """Learn the name of an id; the first name wins."""
        topic = self._by_id.get(id) or self._new(id)
        if topic.name is None:
            topic.learn(name)
            self.named.append(id)

    def _new(self, id: bytes) -> Topic:
        topic = self._by_id[id] = Topic(OWN_NAMES.get(id), id)
        if id in OWN_NAMES:
            self.named.append(id)
        return topic

    def learn(self, message: Message, version: int) -> None:
        """Learn the names of topic ids from a message."""
        steps = _steps(type(message), version)
        if steps:
            self._walk(message, steps)

    def _walk(self, struct: Structure, steps: Steps) -> None:
        for step in steps:
            value = getattr(struct, step.attribute)
            if step.use is not None:
                for name in step.use:
                    topic_name = getattr(struct, name)
                    if topic_name and value != ZERO:
                        self.add(topic_name, value)
            elif isinstance(value, list):
                for one in value:
                    self._walk(one, step.inner)
            elif value is not None:
                self._walk(value, step.inner)

    @property
    def has_unknown(self) -> bool:
        """Whether there are ids without a known name."""
        return len(self.named) < len(self._by_id)

    @property
    def unknown(self) -> list[bytes]:
        """The ids without a known name."""
        return [id for id, topic in self._by_id.items() if topic.name is None]


Steps = tuple[Step[list[str]], ...]
"""The way to fields of ids, each with the fields that name the same topic."""

_known: Final[dict[tuple[type[Structure], int], Steps]] = {}


def _steps(cls: type[Structure], version: int) -> Steps:
    """Find the fields of ids with names in a message of that version; () for most."""
    steps = _known.get((cls, version))
    if steps is None:

        def names_of(owner: type[Structure], field: Field) -> list[str] | None:
            named = topic_name_fields(owner, version) if field.attribute == "topic_id" else []
            return named or None

        steps = _known[cls, version] = steps_to(cls, version, names_of)
    return steps


def topic_name_fields(cls: type[Structure], version: int) -> list[str]:
    """List the fields of a structure, at that version, that are a topic name."""
    return [
        field.attribute
        for field in fields_at(cls, version)
        if field.entity_type == TOPIC_NAME and field.is_a("string")
    ]


def may_name(cls: type[Structure], version: int) -> bool:
    """Whether a message of that version may have names of topic ids."""
    return bool(_steps(cls, version))
