"""What bodies say that tables need, read from their bytes without the messages.

Law: it notes what `Mentions`, `places` and `topic_ids` find in the decoded message, or nothing:
what is not plain (tagged fields, a null that the decoder has not been seen to take, anything wrong)
is left to the decoder.

    bytes, Layout --> Notes: topics, groups, transactional ids, error codes, throttling; partitions
                      asked for; records carried; and names of topic ids, for TopicNames
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ...primitives.shared import LARGEST, SMALLEST, shared_name
from ..fetch_sessions import FINAL_EPOCH, forgotten_by, listed_by
from ..rows import Row, Status
from ..topic_ids import ZERO, Topic, TopicNames
from .columns import partitions_of
from .layouts import (
    ANSWER,
    BLOBS,
    BYTES,
    ERROR,
    FIXED_ITEMS,
    GROUP,
    INT16,
    INT32,
    INT32_ITEMS,
    NOTHING,
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
from .mentions import Mentions
from .places import asked_partitions
from .record_batches import Carried, carried

OK: Final = Status.OK.value
MAX_STRING: Final = 0x7FFF
SHORT: Final = 48
"""Bytes of text that are looked at one by one."""

NONE: Final = -(1 << 40)
"""A number that is not there, where no real one can be that."""

Groups = list[tuple[Topic, list[int]]]
"""Partitions by topic."""

NO_TOPICS: Final[list[Topic]] = []
NO_TEXTS: Final[list[str]] = []
NO_CODES: Final[list[int]] = []
NO_GROUPS: Final[Groups] = []
NO_FIELDS: Final[list[Carried]] = []
"""Nothing, shared by all notes that have none; never added to."""


class Odd(ValueError):
    """What is left to the decoder."""


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
class Notes:
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
        self.fields: list[Carried] = NO_FIELDS


def notes_of(row: Row, names: TopicNames, records: bool) -> Notes:
    """Take notes of a row's message; records: whether of those that it carries, too."""
    made = Notes(row.status.value)
    message = row.message
    if message is None:
        return made
    said = Mentions(names)
    said.add(row)
    made.topics = list(said.topics.values())
    made.groups = list(said.groups)
    made.transactional_ids = list(said.transactional_ids)
    made.error_codes = list(said.error_codes)
    if said.throttle_time_ms is not None:
        made.throttle_time_ms = said.throttle_time_ms
    if row.direction == "request":
        made.partitions = partitions_of(asked_partitions(row, names))
    if records:
        made.fields = list(carried(row, names))
    if isinstance(message, FetchRequest):
        session = made.session = Session(message.session_id, message.session_epoch, 0)
        for key, wanted in listed_by(message, names).items():
            session.listed[key] = wanted.topic, wanted.partition
        session.forgotten = forgotten_by(message, names)
    elif isinstance(message, FetchResponse):
        made.session = Session(message.session_id, 0, message.error_code)
    return made


@final
class Reader:
    """Takes notes of bodies, one after the other.

    records: whether of records, too. doubts: nulls of the last body that nobody has taken yet.
    """

    def __init__(self, names: TopicNames, records: bool) -> None:
        self.names: TopicNames = names
        self.records: bool = records
        self.data: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.elements: i64 = 0
        self.flexible: bool = False
        self.doubts: list[Step] = []
        self.number: i64 = 0
        self.numbers: list[int] | None = None
        self.topics: dict[Topic, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.error_codes: dict[int, None] = {}
        self.throttle_time_ms: i64 = NONE
        self.partitions: dict[object, tuple[Topic, list[int]]] = {}
        self.session_id: i64 = 0
        self.session_epoch: i64 = FINAL_EPOCH
        self.answer: i64 = 0
        self.fields: list[Carried] = NO_FIELDS
        self.by_name: dict[str, Topic] = {}
        self.stated: list[tuple[str, bytes]] = []
        self.asks: bool = False
        self.is_fetch: bool = False

    def read(
        self, layout: Layout, data: bytes, start: int, elements: int, asks: bool, is_fetch: bool
    ) -> Notes | None:
        """Take notes of the body that begins at `start`; None where it is left to the decoder.

        asks: whether it is a request, so that its partitions are noted. is_fetch: whether it speaks
        of a fetch session.
        """
        self.asks, self.is_fetch = asks, is_fetch
        self.data, self.pos, self.end, self.elements = data, start, len(data), elements
        self.flexible = layout.flexible
        self.doubts = []
        self.throttle_time_ms = NONE
        self.session_id = 0
        self.session_epoch = FINAL_EPOCH
        self.answer = 0
        try:
            self.struct(layout, None)
            plain = self.pos == self.end and not self.doubts
        except (IndexError, ValueError):
            plain = False
        if self.pos != self.end:
            self.doubts = []
        notes: Notes | None = self.noted() if plain else None
        self.clear()
        return notes

    def noted(self) -> Notes:
        made = Notes(OK)
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
        for name, id in self.stated:
            self.names.state(name, id)
        if self.is_fetch:
            session = made.session = Session(self.session_id, self.session_epoch, self.answer)
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
        if self.stated:
            self.stated = []
        self.fields = NO_FIELDS
        self.numbers = None

    # -- structs

    def struct(self, layout: Layout, topic: Topic | None) -> None:
        name: str | None = None
        id: bytes | None = None
        for step in layout.steps:
            op = step.op
            if op == SKIP:
                self.pos += step.size
            elif op == TEXT:
                if step.role == NOTHING and not step.is_name:
                    self.pass_text(step)
                else:
                    said = self.text(step)
                    if step.is_name:
                        name = said
                    if said:
                        self.note_text(step.role, said)
            elif op == INT16:
                self.code(step.role)
            elif op == INT32:
                self.int32_of(step.role)
            elif op == STRUCTS:
                if step.is_partitions:
                    self.about(name, id, step)
                else:
                    self.structs(step, topic)
            elif op == RECORDS:
                self.carry(step, topic)
            elif op == BYTES:
                self.pass_blob(step)
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
        if layout.states and name and id is not None and id != ZERO:
            self.stated.append((name, id))
        if self.flexible:
            p = self.pos
            if self.data[p] != 0:
                raise Odd
            self.pos = p + 1

    def structs(self, step: Step, topic: Topic | None) -> None:
        n = self.count(step)
        if n > 0 and step.role != NOTHING:
            raise Odd  # partitions that a fetch session is to forget
        inner = step.inner
        assert inner is not None
        while n > 0:
            self.struct(inner, topic)
            n -= 1

    def about(self, name: str | None, id: bytes | None, step: Step) -> None:
        """Read the partitions of a topic."""
        n = self.count(step)
        if n <= 0:
            return
        topic = self.topic(name, id)
        self.begin(topic)
        inner = step.inner
        assert inner is not None
        while n > 0:
            self.struct(inner, topic)
            n -= 1

    def numbers_of(self, step: Step, name: str | None, id: bytes | None) -> None:
        """Read the partitions of a topic, which are but numbers."""
        n = self.count(step)
        if n <= 0:
            return
        self.begin(self.topic(name, id))
        while n > 0:
            self.int32_of(NUMBER)
            n -= 1

    def begin(self, topic: Topic) -> None:
        if not self.asks:
            return
        key = topic.key
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = topic, []
        elif self.is_fetch:
            raise Odd  # a session has its partitions in the order in which they are listed
        self.numbers = found[1]

    def topic(self, name: str | None, id: bytes | None) -> Topic:
        if id is None or id == ZERO:
            return self.named(name or "")
        return self.names.topic(name, id)

    def named(self, name: str) -> Topic:
        found = self.by_name.get(name)
        if found is None:
            found = self.by_name[name] = self.names.topic(name)
        return found

    def count(self, step: Step) -> i64:
        """Read the length of an array; below zero for null."""
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return -1
        self.elements -= n
        if n > self.end - self.pos or self.elements < 0:
            raise Odd
        return n

    def items(self, step: Step) -> None:
        """Read an array of values."""
        n = self.count(step)
        if step.op == FIXED_ITEMS:
            if n > 0:
                self.pos += n * step.size
            return
        while n > 0:
            n -= 1
            if step.op == BLOBS:
                self.pass_blob(None)
            elif step.role == NOTHING:
                self.pass_text(None)
            else:
                said = self.text(None)
                if said:
                    self.note_text(step.role, said)

    def null(self, step: Step | None) -> None:
        if step is None:
            raise Odd
        if not step.nulls:
            self.doubts.append(step)

    # -- notes

    def note_text(self, role: i64, said: str) -> None:
        if role == TOPIC:
            self.topics[self.named(said)] = None
        elif role == GROUP:
            self.groups[said] = None
        elif role == TRANSACTIONAL_ID:
            self.transactional_ids[said] = None

    def code(self, role: i64) -> None:
        p = self.pos
        self.pos = p + 2
        code = i64(read_i16_be(self.data, p))
        if code != 0 and role in (ERROR, ANSWER):
            self.error_codes[code] = None
            if role == ANSWER:
                self.answer = code

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

    def carry(self, step: Step, topic: Topic | None) -> None:
        """Read records."""
        n = self.blob_size(step)
        if n > 0 and self.records and topic is not None:
            if not self.fields:
                self.fields = []
            held = self.data[self.pos - n : self.pos]
            self.fields.append(Carried(topic, self.number, held))

    # -- values

    def int32(self) -> i64:
        p = self.pos
        self.pos = p + 4
        return i64(read_i32_be(self.data, p))

    def uvarint(self) -> i64:
        data = self.data
        p = self.pos
        byte: i64 = data[p]
        p += 1
        value = byte & 0x7F
        shift: i64 = 0
        while byte > 127:
            shift += 7
            if shift > 28:
                raise Odd
            byte = data[p]
            p += 1
            value |= (byte & 0x7F) << shift
        self.pos = p
        return value

    def uuid(self) -> bytes:
        p = self.pos
        if p + 16 > self.end:
            raise Odd
        self.pos = p + 16
        return self.data[p : p + 16]

    def text_size(self, step: Step | None) -> i64:
        """Read the length of a string and go behind it; -1 for null."""
        n: i64
        if self.flexible:
            n = self.uvarint() - 1
            if n > MAX_STRING:
                raise Odd
        else:
            p = self.pos
            self.pos = p + 2
            n = i64(read_i16_be(self.data, p))
        if n < 0:
            self.null(step)
            return -1
        if n > self.end - self.pos:
            raise Odd
        self.pos += n
        return n

    def text(self, step: Step | None) -> str | None:
        n = self.text_size(step)
        if n < 0:
            return None
        p = self.pos - n
        if SMALLEST <= n <= LARGEST:
            return shared_name(self.data, p, n)
        return self.data[p : p + n].decode("utf-8")

    def pass_text(self, step: Step | None) -> None:
        """Go behind a string, if it is UTF-8."""
        n = self.text_size(step)
        if n <= 0:
            return
        data = self.data
        p = self.pos - n
        if n <= SHORT:
            stop = p + n
            while p < stop and data[p] < 128:
                p += 1
            if p == stop:
                return
            p = stop - n
        data[p : p + n].decode("utf-8")

    def blob_size(self, step: Step | None) -> i64:
        """Read the length of bytes and go behind them; -1 for null."""
        n = self.uvarint() - 1 if self.flexible else self.int32()
        if n < 0:
            self.null(step)
            return -1
        if n > self.end - self.pos:
            raise Odd
        self.pos += n
        return n

    def pass_blob(self, step: Step | None) -> None:
        self.blob_size(step)
