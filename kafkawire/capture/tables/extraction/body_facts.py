"""Extracts the facts that tables need from a decoded message body.

Law: the facts of a message are those that `Entities`, `partition_fields` and `topic_ids` find in
it, and nothing else; `body_reader` must find the same facts in undecoded bytes.

    Row, TopicNames --> BodyFacts: topics, groups, transactional ids, error codes, throttling;
                        requested partitions; records fields; the fetch session
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ....messages.fetch_request import FetchRequest
from ....messages.fetch_response import FetchResponse
from ...exchanges.fetch_sessions import Key, forgotten_by, listed_by
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row, Status
from ..columns import partitions_of
from .entities import Entities
from .partition_blocks import Block
from .partition_fields import requested_partitions
from .record_batches import RecordsField, records_fields

OK: Final = Status.OK.value

NONE: Final = -(1 << 40)
"""Stands for a missing number; no valid number has this value."""

Groups = list[tuple[Topic, list[int]]]
"""Partitions by topic."""

NO_TOPICS: Final[list[Topic]] = []
NO_TEXTS: Final[list[str]] = []
NO_CODES: Final[list[int]] = []
NO_GROUPS: Final[Groups] = []
NO_FIELDS: Final[list[RecordsField]] = []
"""Shared empty values; never changed."""


@final
@mypyc_attr(acyclic=True)
class Session:
    """The fetch session in a Fetch.

    Of a request its id and epoch, the partitions it lists and forgets, by topic and partition; of a
    response its error code and id.
    """

    def __init__(self, id: int, epoch: int, error_code: int) -> None:
        self.id: int = id
        self.epoch: int = epoch
        self.error_code: int = error_code
        self.listed: dict[Key, tuple[Topic, int]] = {}
        self.forgotten: set[Key] = set()


@final
@mypyc_attr(acyclic=True)
class BodyFacts:
    """The facts of a body and its decoding status (as in Row, for the body alone).

    block: its partitions, for the table of them. Not changed after creation: equal bodies share
    one.
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
        self.block: Block | None = None


def body_facts_of(row: Row, names: TopicNames, records: bool) -> BodyFacts:
    """Extract the facts of a row's message; records: whether to include its records fields."""
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
