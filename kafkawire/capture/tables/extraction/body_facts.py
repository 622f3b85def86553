"""Extracts the facts that tables need from a decoded message body.

The facts of a message are those that `Entities`, `decoded_partitions` and `topic_ids` find in
it, and nothing else; `blocks.c` must find the same facts in undecoded bytes.

    Row, TopicNames --> BodyFacts: Block of topics, groups, transactional ids, error codes,
                        numbers and partitions; records fields; the fetch session
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from ....messages.fetch_request import FetchRequest
from ....messages.fetch_response import FetchResponse
from ...exchanges.fetch_sessions import Key, forgotten_by
from ...exchanges.topic_ids import TopicNames
from ...rows import Row, Status
from .blocks import ENTITIES, FIELDS, PARTITION_VALUES, Block
from .decoded_partitions import block_of
from .entities import NUMBER_FIELDS, Entities
from .record_batches import RecordsField, records_fields

OK: Final = Status.OK.value

NONE: Final = -(1 << 40)
"""Stands for a missing number; no valid number has this value."""

NO_FIELDS: Final[list[RecordsField]] = []
NO_PARTITIONS: Final = Block()
"""Shared empty values; never changed."""


@final
@mypyc_attr(acyclic=True)
class Session:
    """The fetch session in a Fetch.

    Of a request its id and epoch, the partitions it lists and forgets; of a response its error code
    and id.
    """

    def __init__(self, id: int, epoch: int, error_code: int) -> None:
        self.id: int = id
        self.epoch: int = epoch
        self.error_code: int = error_code
        self.listed: Block = NO_PARTITIONS
        self.forgotten: set[Key] = set()


@final
@mypyc_attr(acyclic=True)
class BodyFacts:
    """The facts of a body and its decoding status (as in Row, for the body alone).

    entities: None if they are not needed; block: its partitions, None if there can be none. Not
    changed after creation: equal bodies share one.
    """

    def __init__(self, status: str) -> None:
        self.status: str = status
        self.entities: Block | None = None
        self.session: Session | None = None
        self.fields: list[RecordsField] = NO_FIELDS
        self.block: Block | None = None


def body_facts_of(row: Row, names: TopicNames, wanted: int) -> BodyFacts:
    """Extract the facts of a row's message; wanted: which (see `blocks`)."""
    facts = BodyFacts(row.status.value)
    message = row.message
    if message is None:
        return facts
    if wanted & PARTITION_VALUES:
        facts.block = block_of(row, names)
    if wanted & ENTITIES:
        facts.entities = identified(facts.block or Block(), row, names)
    if wanted & FIELDS:
        facts.fields = list(records_fields(row, names))
    if isinstance(message, FetchRequest):
        session = facts.session = Session(message.session_id, message.session_epoch, 0)
        session.listed = facts.block or NO_PARTITIONS
        session.forgotten = forgotten_by(message, names)
    elif isinstance(message, FetchResponse):
        facts.session = Session(message.session_id, 0, message.error_code)
    return facts


def identified(block: Block, row: Row, names: TopicNames) -> Block:
    """Set the entities of a block to those of its row's message."""
    entities = Entities(names)
    entities.add(row)
    block.identify(
        list(entities.topics.values()),
        list(entities.groups),
        list(entities.transactional_ids),
        list(entities.error_codes),
        tuple([entities.numbers.get(name, NONE) for name in NUMBER_FIELDS]),
    )
    return block
