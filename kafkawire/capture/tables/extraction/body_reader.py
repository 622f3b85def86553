"""Extracts facts from the bytes of a body, without decoding the message.

Law: the facts equal those that `body_facts_of` extracts from the decoded message, or there are
none: what is not simple (tagged fields, a null that the decoder has not accepted before, any error)
is left to the decoder.

    bytes, Layout --> BodyFacts; and names of topic ids, for TopicNames
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from ...exchanges.fetch_sessions import FINAL_EPOCH
from ...exchanges.topic_ids import ZERO, Topic, TopicKey, TopicNames
from .body_facts import NO_FIELDS, NONE, OK, BodyFacts, Session
from .body_values import BodyValues, NeedsDecoder
from .layouts import (
    BLOBS,
    BYTES,
    ERROR,
    FETCH_ERROR,
    FIXED_ITEMS,
    GROUP,
    INT16,
    INT32,
    INT32_ITEMS,
    NO_ROLE,
    NUMBER,
    RECORDS,
    SESSION_EPOCH,
    SESSION_ID,
    SKIP,
    STRUCTS,
    TEXT,
    THROTTLE,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONAL_ID,
    UUID,
    Layout,
    Step,
)
from .record_batches import RecordsField


@final
class Reader(BodyValues):
    """Reads bodies one after the other. records: whether to include records fields."""

    def __init__(self, names: TopicNames, records: bool) -> None:
        super().__init__()
        self.names: TopicNames = names
        self.records: bool = records
        self.number: i64 = 0
        self.numbers: list[int] | None = None
        self.topics: dict[Topic, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.error_codes: dict[int, None] = {}
        self.throttle_time_ms: i64 = NONE
        self.partitions: dict[TopicKey, tuple[Topic, list[int]]] = {}
        self.session_id: i64 = 0
        self.session_epoch: i64 = FINAL_EPOCH
        self.fetch_error: i64 = 0
        self.fields: list[RecordsField] = NO_FIELDS
        self.topics_by_name: dict[str, Topic] = {}
        self.topic_ids: list[tuple[str, bytes]] = []
        self.is_request: bool = False
        self.is_fetch: bool = False

    def read(
        self,
        layout: Layout,
        data: bytes,
        start: int,
        elements: int,
        is_request: bool,
        is_fetch: bool,
    ) -> BodyFacts | None:
        """Extract the facts of the body at `start`; None if it is left to the decoder.

        is_request: whether to collect partitions. is_fetch: whether there is a fetch session.
        """
        self.is_request, self.is_fetch = is_request, is_fetch
        self.start(data, start, elements, layout.flexible)
        self.throttle_time_ms = NONE
        self.session_id = 0
        self.session_epoch = FINAL_EPOCH
        self.fetch_error = 0
        try:
            self.struct(layout, None)
            simple = self.pos == self.end and not self.unproven_nulls
        except (IndexError, ValueError):
            simple = False
        if self.pos != self.end:
            self.unproven_nulls = []
        facts: BodyFacts | None = self.collected() if simple else None
        self.clear()
        return facts

    def collected(self) -> BodyFacts:
        made = BodyFacts(OK)
        if self.topics:
            made.topics = list(self.topics)
        if self.groups:
            made.groups = list(self.groups)
        if self.transactional_ids:
            made.transactional_ids = list(self.transactional_ids)
        if self.error_codes:
            made.error_codes = list(self.error_codes)
        made.throttle_time_ms = self.throttle_time_ms
        if self.partitions:
            made.partitions = list(self.partitions.values())
        made.fields = self.fields
        for name, id in self.topic_ids:
            self.names.add(name, id)
        if self.is_fetch:
            session = made.session = Session(self.session_id, self.session_epoch, self.fetch_error)
            for key, (topic, numbers) in self.partitions.items():
                for number in numbers:
                    session.listed[key, number] = topic, number
        return made

    def clear(self) -> None:
        if self.topics:
            self.topics = {}
        if self.groups:
            self.groups = {}
        if self.transactional_ids:
            self.transactional_ids = {}
        if self.error_codes:
            self.error_codes = {}
        if self.partitions:
            self.partitions = {}
        if self.topic_ids:
            self.topic_ids = []
        self.fields = NO_FIELDS
        self.numbers = None

    # -- structs

    def struct(  # noqa: C901, PLR0912, PLR0915 - hot: one loop over the fields, without calls
        self, layout: Layout, topic: Topic | None
    ) -> None:
        """Read a struct; topic: the one that the struct is in."""
        name: str | None = None
        id: bytes | None = None
        for step in layout.steps:
            op = step.op
            if op == SKIP:
                self.pos += step.size
            elif op == TEXT:
                if step.role == NO_ROLE and not step.is_name:
                    self.skip_text(step)
                else:
                    value = self.text(step)
                    if step.is_name:
                        name = value
                    if value:
                        self.add_text(step.role, value)
            elif op == INT16:
                self.code(step.role)
            elif op == INT32:
                self.int32_of(step.role)
            elif op == STRUCTS:
                if step.is_partitions:
                    self.partitions_of(name, id, step)
                else:
                    self.structs(step, topic)
            elif op == RECORDS:
                self.records_field(step, topic)
            elif op == BYTES:
                self.skip_bytes(step)
            elif op == UUID:
                found = self.uuid()
                if step.is_id:
                    id = found
                if step.role == TOPIC_ID and found != ZERO:
                    self.topics[self.names.topic(None, found)] = None
            elif op == INT32_ITEMS:
                self.numbers_of(step, name, id)
            else:
                self.items(step)
        if layout.maps_topic_id and name and id is not None and id != ZERO:
            self.topic_ids.append((name, id))
        if self.flexible:
            p = self.pos
            if self.data[p] != 0:
                raise NeedsDecoder
            self.pos = p + 1

    def structs(self, step: Step, topic: Topic | None) -> None:
        n = self.count(step)
        if n > 0 and step.role != NO_ROLE:
            raise NeedsDecoder  # partitions that a fetch session is to remove
        inner = step.inner
        assert inner is not None
        while n > 0:
            self.struct(inner, topic)
            n -= 1

    def partitions_of(self, name: str | None, id: bytes | None, step: Step) -> None:
        """Read the partitions of a topic."""
        n = self.count(step)
        if n <= 0:
            return
        topic = self.topic(name, id)
        self.begin_topic(topic)
        inner = step.inner
        assert inner is not None
        while n > 0:
            self.struct(inner, topic)
            n -= 1

    def numbers_of(self, step: Step, name: str | None, id: bytes | None) -> None:
        """Read the partitions of a topic as an array of numbers."""
        n = self.count(step)
        if n <= 0:
            return
        self.begin_topic(self.topic(name, id))
        while n > 0:
            self.int32_of(NUMBER)
            n -= 1

    def begin_topic(self, topic: Topic) -> None:
        if not self.is_request:
            return
        key = topic.key
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = topic, []
        elif self.is_fetch:
            raise NeedsDecoder  # a session keeps its partitions in the order of the request
        self.numbers = found[1]

    def topic(self, name: str | None, id: bytes | None) -> Topic:
        if id is None or id == ZERO:
            return self.named(name or "")
        return self.names.topic(name, id)

    def named(self, name: str) -> Topic:
        found = self.topics_by_name.get(name)
        if found is None:
            found = self.topics_by_name[name] = self.names.topic(name)
        return found

    def items(self, step: Step) -> None:
        """Read an array of primitive values."""
        n = self.count(step)
        if step.op == FIXED_ITEMS:
            if n > 0:
                self.pos += n * step.size
            return
        while n > 0:
            n -= 1
            if step.op == BLOBS:
                self.skip_bytes(None)
            elif step.role == NO_ROLE:
                self.skip_text(None)
            else:
                value = self.text(None)
                if value:
                    self.add_text(step.role, value)

    # -- facts

    def add_text(self, role: i64, value: str) -> None:
        if role == TOPIC:
            self.topics[self.named(value)] = None
        elif role == GROUP:
            self.groups[value] = None
        elif role == TRANSACTIONAL_ID:
            self.transactional_ids[value] = None

    def code(self, role: i64) -> None:
        code = self.int16()
        if code != 0 and role in (ERROR, FETCH_ERROR):
            self.error_codes[code] = None
            if role == FETCH_ERROR:
                self.fetch_error = code

    def int32_of(self, role: i64) -> None:
        value = self.int32()
        if role == NUMBER:
            self.number = value
            if self.numbers is not None:
                self.numbers.append(value)
        elif role == THROTTLE:
            self.throttle_time_ms = value
        elif role == SESSION_ID:
            self.session_id = value
        elif role == SESSION_EPOCH:
            self.session_epoch = value

    def records_field(self, step: Step, topic: Topic | None) -> None:
        """Read a records field."""
        n = self.bytes_size(step)
        if n > 0 and self.records and topic is not None:
            if not self.fields:
                self.fields = []
            held = self.data[self.pos - n : self.pos]
            self.fields.append(RecordsField(topic, self.number, held))
