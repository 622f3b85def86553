"""Names of topics that messages call by id: Fetch v13+, Produce v13+, OffsetCommit v10+, the share
and KIP-848 messages.

Law: a name is learnt only from a structure that states id and name together, in whichever message,
of either direction; it then holds for the whole capture, before and after, as an id is never used
for a second topic.

    {topic_id, name} anywhere --> learn --> Topic(id, name); the first statement stands
    {topic_id} anywhere ---------> topic --> the same Topic, whose name may come later
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ...primitives import Message, Structure
from ...protocol.json_form import uuid_text

ZERO: Final = bytes(16)
"""What an id is that is not set."""

TOPIC_NAME: Final = "topicName"
"""The entity type of fields that name topics: one beside a topic id names the same topic."""


class Topic:
    """A topic as messages speak of it: by name, by id, or both; `name` is None until it is known.

    There is one object per id: what is learnt later shows in all rows that hold it.
    """

    __slots__ = ("id", "name")

    def __init__(self, name: str | None, id: bytes | None) -> None:
        self.name = name
        self.id = id

    @property
    def id_text(self) -> str | None:
        """The id as Kafka writes it, 22 characters; None where there is none."""
        return None if self.id is None else uuid_text(self.id)

    @property
    def key(self) -> object:
        """What tells one topic from another: the id where there is one."""
        return self.name if self.id is None else self.id

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id_text!r})"


class _Stated(Topic):
    """A topic with a name that is only believed as long as no other was learnt for its id."""

    __slots__ = ("_said", "_shared")

    def __init__(self, said: str, shared: Topic) -> None:
        self._said = said
        self._shared = shared
        self.id = shared.id

    @property
    def name(self) -> str | None:  # type: ignore[override]  # read-only here
        return self._shared.name or self._said


class TopicNames:
    """What a capture has told about topics so far.

    Names grow with the topics of a cluster, not with the capture. named: ids in the order in which
    their names were learnt.
    """

    def __init__(self) -> None:
        self.named: list[bytes] = []
        self._by_id: dict[bytes, Topic] = {}
        self._by_name: dict[str, Topic] = {}

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:
        """Get the topic that a structure speaks of; "" and the zero id count as not set."""
        if id is None or id == ZERO:
            found = self._by_name.get(name or "")
            if found is None:
                found = self._by_name[name or ""] = Topic(name or None, None)
            return found
        found = self._by_id.get(id)
        if found is None:
            found = self._by_id[id] = Topic(None, id)
        return _Stated(name, found) if name and found.name is None else found

    def state(self, name: str, id: bytes) -> None:
        """Learn a name; the one that was learnt first stands."""
        found = self._by_id.setdefault(id, Topic(None, id))
        if found.name is None:
            found.name = name
            self.named.append(id)

    def learn(self, message: Message, version: int) -> None:
        """Take the names that a message states for ids."""
        steps = _steps(type(message), version)
        if steps:
            self._walk(message, steps)

    def _walk(self, struct: Structure, steps: tuple[_Step, ...]) -> None:
        for attribute, inner, name in steps:
            value = getattr(struct, attribute)
            if inner is None:
                said = getattr(struct, name)
                if said and value != ZERO:
                    self.state(said, value)
            elif isinstance(value, list):
                for one in value:
                    self._walk(one, inner)
            elif value is not None:
                self._walk(value, inner)

    @property
    def has_unknown(self) -> bool:
        """Whether an id was spoken of and never named."""
        return len(self.named) < len(self._by_id)

    @property
    def unknown(self) -> list[bytes]:
        """The ids that were spoken of and never named."""
        return [id for id, topic in self._by_id.items() if topic.name is None]


# a step is (attribute, steps inside it, ""), or (the id's attribute, None, the name's attribute)
_Step = tuple[str, Any, str]
_known: Final[dict[tuple[type[Structure], int], tuple[_Step, ...]]] = {}


def _steps(cls: type[Structure], version: int) -> tuple[_Step, ...]:
    """Find where a message of that version states ids with names; () for most."""
    found = _known.get((cls, version))
    if found is None:
        found = _known[cls, version] = tuple(_find(cls, version))
    return found


def _find(cls: type[Structure], version: int) -> list[_Step]:
    steps: list[_Step] = []
    here = {row.attribute for row in cls.__fields__ if row.first <= version <= row.last}
    if "topic_id" in here:
        steps += [("topic_id", None, name) for name in topic_name_fields(cls, version)]
    for row in cls.__fields__:
        kind = row.type.removeprefix("[]")
        if row.attribute in here and kind[0].isupper():
            inner = _steps(getattr(sys.modules[cls.__module__], kind), version)
            if inner:
                steps.append((row.attribute, inner, ""))
    return steps


def topic_name_fields(cls: type[Structure], version: int) -> list[str]:
    """List the fields of a structure, at that version, that name one topic each."""
    return [
        row.attribute
        for row in cls.__fields__
        if row.entity_type == TOPIC_NAME
        and row.type == "string"
        and row.first <= version <= row.last
    ]


def may_name(cls: type[Structure], version: int) -> bool:
    """Whether a message of that version may state names for ids."""
    return bool(_steps(cls, version))
