"""What tables need of one message, and rows of partitions; the pure Python version of `blocks.c`.

Both produce the same rows. A body that `blocks.c` reads without the decoder gives the entities
of `body_facts.body_facts_of`, and the partitions of `decoded_partitions.block_of`; this module
declines every body, so reading in C is only an optimisation.

    Block: entities and partitions of one message
    Rows: blocks of an exchange --by partition--> rows
    Bodies: blocks of exchanges --> lists of what they show
"""

# over 300 lines: one module in C, and its classes here

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable
from itertools import accumulate, chain
from struct import pack
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ...exchanges.topic_ids import Topic, TopicKey
    from .record_batches import RecordsField

COLUMNS: Final = 19
"""Columns of a row from `request_offset` on."""

NO_SESSION: Final = 2
"""Of `in_session`: null."""

ENTITIES: Final = 1
PARTITION_VALUES: Final = 2
FIELDS: Final = 4
"""What a `Reader` takes from a body: entities, partitions with their values, records fields."""

MAX_NUMBERS: Final = 8
"""Numbers of a body at most (`entities.NUMBER_FIELDS`)."""

NO_NUMBER: Final = -(1 << 40)
"""As `body_facts.NONE`."""

Indexed = tuple[list[Any], bytearray]
"""The distinct ones of some values, in order of first occurrence, and the index of each: int32."""

NumberColumn = tuple[bytearray, bytearray | None]
"""values, a bit per value: 0 for null; None if no value is null."""

Taken: TypeAlias = (
    "tuple[Indexed, Indexed, bytearray, bytearray, bytearray, bytearray,"
    " list[NumberColumn | list[str | None] | None]]"
)
"""topics, groups, partitions: int32, requested, responded, in_session: bytes, columns: None if null
in all rows."""

TakenBodies = tuple[
    tuple[Indexed, ...], tuple[bytearray, ...], tuple[tuple[bytearray, bytearray], ...]
]
"""The elements of lists: topics, groups, transactional ids, error codes, and the topics of
requested partitions. Then buffers: 0 and the end of each list, by kind; 0 and the end of the
partitions of each topic, the partitions: int32; whether there is a session, whether its partitions
are complete: bytes. Then for each number its values: int32, and whether a message has it: bytes.
"""

Step = tuple[int, int, int, bool, "Program | None", int]
"""How a field is read (see `programs`), its size, its column, whether it may be null, the program
of a struct, and what it identifies."""

Entities: TypeAlias = (
    "tuple[list[Topic], list[str], list[str], list[int], tuple[int, ...], list[RecordsField]]"
)
"""topics, groups, transactional ids, error codes, MAX_NUMBERS numbers, records fields."""


class Program:
    """The fields of a struct at a version, in wire order.

    defaults: of columns that a partition has without a field on the wire: the column, its value,
    and whether it is part of a row. maps_topic_id: whether it has a topic id and the topic's name.
    """

    def __init__(
        self,
        is_flexible: bool,
        steps: tuple[Step, ...],
        defaults: tuple[tuple[int, int | None, bool], ...],
        maps_topic_id: bool,
    ) -> None:
        self.is_flexible = is_flexible
        self.steps = steps
        self.defaults = defaults
        self.maps_topic_id = maps_topic_id


class _Entry:
    """A partition in a message, or a row. present: the columns that it sets."""

    __slots__ = ("flags", "group", "key", "partition", "present", "topic", "values")

    def __init__(self, topic: Topic, partition: int, group: str | None) -> None:
        self.topic = topic
        self.key = topic.key
        self.partition = partition
        self.group = group
        self.present: set[int] = set()
        self.values: list[Any] = [None] * COLUMNS
        self.flags = [0, 0, NO_SESSION]

    def copy(self) -> _Entry:
        """Return an entry with the same values."""
        copied = _Entry(self.topic, self.partition, self.group)
        copied.present = set(self.present)
        copied.values = list(self.values)
        return copied

    def fill(self, other: _Entry) -> None:
        """Take over the columns that another entry sets."""
        for column in other.present:
            self.values[column] = other.values[column]


EntryKey: TypeAlias = "tuple[TopicKey, int, str | None]"


def _by_key(entries: list[_Entry]) -> dict[EntryKey, _Entry]:
    return {(entry.key, entry.partition, entry.group): entry for entry in entries}


class Block:
    """What tables need of one message; not changed once it is complete.

    Its partitions, in wire order; group: of the message, for partitions without one of their own.
    Of a body that was read without the decoder also entities, and session_id, session_epoch and
    error_code of a Fetch.
    """

    session_id = 0
    session_epoch = -1
    error_code = 0

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._group: str | None = None
        self._sets: tuple[list[Any], ...] = [], [], [], []
        self._numbers: tuple[int, ...] = (NO_NUMBER,) * MAX_NUMBERS

    @property
    def entities(self) -> Entities:
        """The entities of the message."""
        topics, groups, transactional_ids, codes = self._sets
        return topics, groups, transactional_ids, codes, self._numbers, []

    @property
    def fields(self) -> list[RecordsField] | None:
        """The records fields of a body that was read; None if it has none."""
        return None

    def identify(
        self,
        topics: list[Topic],
        groups: list[str],
        transactional_ids: list[str],
        error_codes: list[int],
        numbers: tuple[int, ...],
    ) -> None:
        """Set the entities of a decoded message, which are distinct.

        numbers: NO_NUMBER for those that it lacks.
        """
        if len(numbers) > MAX_NUMBERS:
            raise ValueError(f"at most {MAX_NUMBERS} numbers expected")
        self._sets = topics, groups, transactional_ids, error_codes
        self._numbers = numbers + (NO_NUMBER,) * (MAX_NUMBERS - len(numbers))

    @property
    def group(self) -> str | None:
        """The group of the message."""
        return self._group

    @group.setter
    def group(self, group: str | None) -> None:
        self._group = group

    def __len__(self) -> int:
        return len(self._entries)

    def add(
        self,
        topic: Topic,
        partition: int,
        group: str | None,
        columns: tuple[int, ...],
        values: tuple[Any, ...],
        mask: int,
    ) -> None:
        """Add a partition. mask: a bit per column that it sets; others are of other versions."""
        if len(columns) != len(values):
            raise ValueError("as many values as columns expected")
        entry = _Entry(topic, partition, group)
        for column, value in zip(columns, values, strict=True):
            if not 0 <= column < COLUMNS:
                raise ValueError(f"invalid column {column}")
            entry.values[column] = value
            if mask >> column & 1:
                entry.present.add(column)
        self._entries.append(entry)

    def merged(self, listed: Block, forgotten: set[tuple[TopicKey, int]]) -> Block:
        """Return the partitions of a fetch session after a request that lists and forgets some.

        A listed partition takes the place of the earlier one.
        """
        block = Block()
        here = _by_key(listed._entries)
        for key, entry in (_by_key(self._entries) | here).items():
            if key[:2] not in forgotten or key in here:
                block._entries.append(entry)
        return block


class Reader:
    """Reads what tables need of bodies, without the decoder.

    topic_of: finds a topic by its name and its id. learn: learns the name of an id. learned:
    the ids of which it did; others are added. count: the batches and records in a records field; no
    records for a corrupt one. field: the class of records fields.
    """

    def __init__(
        self,
        topic_of: Callable[[str | None, bytes | None], Topic],  # noqa: ARG002
        learn: Callable[[str, bytes], None],  # noqa: ARG002
        learned: set[bytes],  # noqa: ARG002
        count: Callable[[bytes], tuple[int, int | None]],  # noqa: ARG002
        field: type[RecordsField],  # noqa: ARG002
    ) -> None:
        return

    def read(
        self,
        program: Program,  # noqa: ARG002
        data: bytes,  # noqa: ARG002
        position: int,  # noqa: ARG002
        elements: int,  # noqa: ARG002
        wanted: int,  # noqa: ARG002
    ) -> Block | None:
        """Read the body at `position` of at most so many elements; None if it declines."""
        return None


class Rows:
    """Rows of partitions, not returned yet."""

    def __init__(self) -> None:
        self._rows: list[_Entry] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self, request: Block | None, response: Block | None, session: Block | None, mask: int
    ) -> int:
        """Add the rows of an exchange; return how many.

        session: all partitions of a Fetch and its session. mask: a bit for each column that they
        have in the version of the exchange.
        """
        entries: dict[EntryKey, _Entry] = {}
        for entry in () if session is None else session._entries:
            row = entries[entry.key, entry.partition, entry.group] = entry.copy()
            row.values = [
                each if mask >> column & 1 else None for column, each in enumerate(row.values)
            ]
            row.flags[2] = 1
        group = None if request is None else request.group
        for responded, block in enumerate((request, response)):
            for entry in () if block is None else block._entries:
                its_group = entry.group or group
                key = entry.key, entry.partition, its_group
                if key not in entries:
                    entries[key] = _Entry(entry.topic, entry.partition, its_group)
                row = entries[key]
                row.fill(entry)
                row.flags[responded] = 1
                if not responded and row.flags[2] == 1:
                    row.flags[2] = 0
        self._rows += entries.values()
        return len(entries)

    def take(self, widths: bytes) -> Taken:
        """Return the rows as columns.

        widths: bytes of each column's numbers, 2, 4 or 8; 0 for strings.
        """
        if len(widths) != COLUMNS:
            raise ValueError(f"take() expects {COLUMNS} widths")
        for width in widths:
            if width not in (0, 2, 4, 8):
                raise ValueError(f"invalid width {width}")
        rows, self._rows = self._rows, []
        flags = [bytearray(row.flags[index] for row in rows) for index in range(3)]
        return (
            _indexed([row.topic for row in rows]),
            _indexed([row.group for row in rows]),
            bytearray(pack(f"<{len(rows)}i", *[row.partition for row in rows])),
            flags[0],
            flags[1],
            flags[2],
            [
                _column([row.values[index] for row in rows], width)
                for index, width in enumerate(widths)
            ],
        )


def _indexed(values: list[Any]) -> Indexed:
    positions: dict[Hashable, int] = {}
    indexes = [positions.setdefault(value, len(positions)) for value in values]
    return list(positions), _int32s(indexes)


def _int32s(values: Iterable[int]) -> bytearray:
    return bytearray(array("i", values).tobytes())


def _column(values: list[Any], width: int) -> NumberColumn | list[str | None] | None:
    if all(value is None for value in values):
        return None
    if not width:
        return values
    packed = b"".join([int(value or 0).to_bytes(width, "little", signed=True) for value in values])
    bits = bytearray((len(values) + 7) // 8)
    for index, value in enumerate(values):
        bits[index >> 3] |= (value is not None) << (index & 7)
    return bytearray(packed), bits if None in values else None


class _Shown:
    """What the bodies of one exchange show; by_topic: the requested partitions."""

    def __init__(
        self, request: Block | None, response: Block | None, session: Block | None
    ) -> None:
        self.session = session
        self.by_topic: dict[TopicKey, tuple[Topic, list[int]]] = {}
        requested = request if session is None else session
        for entry in () if requested is None else requested._entries:
            self.by_topic.setdefault(entry.key, (entry.topic, []))[1].append(entry.partition)
        blocks = [block for block in (request, response) if block is not None]
        self.sets = [list(chain.from_iterable(b._sets[kind] for b in blocks)) for kind in range(4)]
        if session is not None:
            self.sets[0] += [topic for key, (topic, _) in self.by_topic.items() if key is not None]
        self.numbers = [_last(values) for values in zip(*[b._numbers for b in blocks], strict=True)]
        self.numbers = self.numbers or [None] * MAX_NUMBERS


def _last(numbers: tuple[int, ...]) -> int | None:
    """Return the number of the response, or else of the request."""
    return next((number for number in reversed(numbers) if number != NO_NUMBER), None)


class Bodies:
    """What the bodies of exchanges show, not returned yet. numbers: how many are shown."""

    def __init__(self, numbers: int) -> None:
        if not 0 <= numbers <= MAX_NUMBERS:
            raise ValueError(f"at most {MAX_NUMBERS} numbers expected")
        self._numbers = numbers
        self._shown: list[tuple[_Shown, bool]] = []

    def __len__(self) -> int:
        return len(self._shown)

    def add(
        self, request: Block | None, response: Block | None, session: Block | None, complete: bool
    ) -> None:
        """Add an exchange: distinct entities of both, and the requested partitions.

        session: all partitions of a Fetch and its session. complete: whether all are known.
        """
        self._shown.append((_Shown(request, response, session), complete))

    def take(self) -> TakenBodies:
        """Return the exchanges as lists and columns."""
        taken, self._shown = self._shown, []
        shown = [one for one, _ in taken]
        lists = [[list(dict.fromkeys(one.sets[kind])) for one in shown] for kind in range(4)]
        groups = [list(one.by_topic.values()) for one in shown]
        partitions = [numbers for each in groups for _, numbers in each]
        lists.append([[topic for topic, _ in each] for each in groups])
        items = tuple([_indexed(list(chain.from_iterable(each))) for each in lists])
        buffers = (
            *[_ends(each) for each in lists],
            _ends(partitions),
            _int32s(chain.from_iterable(partitions)),
            bytearray(one.session is not None for one in shown),
            bytearray(complete for _, complete in taken),
        )
        columns = [[one.numbers[index] for one in shown] for index in range(self._numbers)]
        return items, buffers, tuple([_stated(column) for column in columns])


def _stated(column: list[int | None]) -> tuple[bytearray, bytearray]:
    values = _int32s(number or 0 for number in column)
    return values, bytearray(number is not None for number in column)


def _ends(lists: list[list[Any]]) -> bytearray:
    return _int32s(accumulate(map(len, lists), initial=0))
