"""What bodies say that tables need, and how notes of it are taken from a decoded message.

Law: notes of a message are what `Entities`, `places` and `topic_ids` find in it, and nothing else:
`body_reader`, which takes them of bytes, is held to these.

    Row, TopicNames --> Notes: topics, groups, transactional ids, error codes, throttling;
                        partitions asked for; records carried; the fetch session
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ....messages.fetch_request import FetchRequest
from ....messages.fetch_response import FetchResponse
from ...exchanges.fetch_sessions import forgotten_by, listed_by
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row, Status
from ..columns import partitions_of
from .entities import Entities
from .partition_fields import requested_partitions
from .record_batches import RecordsField, records_fields

OK: Final = Status.OK.value

NONE: Final = -(1 << 40)
"""A number that is not there, where no real one can be that."""

Groups = list[tuple[Topic, list[int]]]
"""Partitions by topic."""

NO_TOPICS: Final[list[Topic]] = []
NO_TEXTS: Final[list[str]] = []
NO_CODES: Final[list[int]] = []
NO_GROUPS: Final[Groups] = []
NO_FIELDS: Final[list[RecordsField]] = []
"""Nothing, shared by all notes that have none; never added to."""


@final
@mypyc_attr(acyclic=True)
class Session:
    """What a Fetch says of its session: a request its id and epoch, what it lists and forgets, by
    topic and partition; a response its error and id.
    """

    def __init__(self, id: int, epoch: int, error_code: int) -> None:
        self.id: int = id
        self.epoch: int = epoch
        self.error_code: int = error_code
        self.listed: dict[tuple[object, int], tuple[Topic, int]] = {}
        self.forgotten: set[tuple[object, int]] = set()


@final
@mypyc_attr(acyclic=True)
class BodyFacts:
    """What a body says, and how far it was understood (as in Row, the body taken for itself). Never
    changed once made: bodies that are alike share one.
    """

    def __init__(self, status: str) -> None:
        self.status: str = status
        self.topics: list[Topic] = NO_TOPICS
        self.groups: list[str] = NO_TEXTS
        self.transactional_ids: list[str] = NO_TEXTS
        self.error_codes: list[int] = NO_CODES
        self.throttle_time_ms: i64 = NONE
        self.partitions: Groups = NO_GROUPS
        self.session: Session | None = None
        self.fields: list[RecordsField] = NO_FIELDS


def body_facts_of(row: Row, names: TopicNames, records: bool) -> BodyFacts:
    """Take notes of a row's message; records: whether of those that it carries, too."""
    made = BodyFacts(row.status.value)
    message = row.message
    if message is None:
        return made
    entities = Entities(names)
    entities.add(row)
    made.topics = list(entities.topics.values())
    made.groups = list(entities.groups)
    made.transactional_ids = list(entities.transactional_ids)
    made.error_codes = list(entities.error_codes)
    if entities.throttle_time_ms is not None:
        made.throttle_time_ms = entities.throttle_time_ms
    if row.direction == "request":
        made.partitions = partitions_of(requested_partitions(row, names))
    if records:
        made.fields = list(records_fields(row, names))
    if isinstance(message, FetchRequest):
        session = made.session = Session(message.session_id, message.session_epoch, 0)
        for key, wanted in listed_by(message, names).items():
            session.listed[key] = wanted.topic, wanted.partition
        session.forgotten = forgotten_by(message, names)
    elif isinstance(message, FetchResponse):
        made.session = Session(message.session_id, 0, message.error_code)
    return made
