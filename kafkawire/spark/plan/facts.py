"""Collects what one partition finds out and all others need.

That is first packets of connections, names of topics, and sums.

Facts can be added in any order, so partitions may be decoded in any order, or several times.

    partition --> rows + Facts --.
    partition --> rows + Facts --+--> sum --> numbers of connections, names --> every row
    partition --> rows + Facts --'
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ...capture.exchanges.endings import Endings, count_frames
from ...capture.exchanges.topic_ids import Topic, TopicNames
from ...capture.files.columns import Ints
from ...capture.frames.decoding import LocatedItem, RawFrame
from ...capture.multifile import file_and_packet
from ...capture.rows import Row, Status
from ...capture.tables.connections import OTHER

END: Final = 1 << 62
"""Added to a packet number: the row was produced by the end of the capture, after all packets."""

SIZE: Final = 4
"""Bytes of the length field in front of a message."""

RUNS: Final = frozenset({Status.GAP, Status.CONFLICT, *OTHER})
"""Statuses of rows that are not messages but account for bytes of a connection."""


@dataclass(slots=True)
class Facts:
    """The facts of a partition.

    endings: the connections, identified by their first packets until all are known. names: set and
    topic id -> names stated for it, each with the packet that stated it first. learned: the topic
    ids of the current set that need not be recorded again. at: sort key of the
    current item among the connections of all tasks: the packet that completed it, plus END at the
    end of the capture. sums: bytes of rows by status, `captured_bytes`, and the number of
    `cut_messages`. fragments: whether there are IP fragments that were not reassembled yet.
    """

    endings: Endings = field(default_factory=Endings)
    names: dict[tuple[int, bytes], dict[str, int]] = field(default_factory=dict)
    learned: set[bytes] = field(default_factory=set)
    sums: Counter[str] = field(default_factory=Counter)
    fragments: bool = False
    at: int = 0
    messages: int = 0
    message_bytes: int = 0

    def items(self, entries: list[LocatedItem]) -> None:
        """Count the bytes of rows, and of frames that will become rows."""
        count, size = count_frames(entries)
        self.messages += count
        self.message_bytes += size + SIZE * count
        if count < len(entries):
            for one in entries:
                if not isinstance(one.item, RawFrame):
                    self.row(one.item)

    def row(self, row: Row) -> None:
        """Count the bytes of a row."""
        if row.is_message:
            self.messages += 1
            self.message_bytes += row.length + SIZE
        elif row.status in RUNS:
            part = truncated(row) if row.status is Status.TRUNCATED else row.length
            self.sums[f"{row.status.value}_bytes"] += part
            self.sums["cut_messages"] += row.status is Status.TRUNCATED

    def add_name(self, set: int, id: bytes, name: str) -> None:
        """Record the name that a message states for a topic id."""
        stated = self.names.setdefault((set, id), {})
        stated[name] = min(self.at, stated.get(name, self.at))

    def pack(self) -> bytes:
        """Serialise the facts."""
        ended = self.endings
        sums = Counter(self.sums)
        sums.update(
            connections=len(ended.firsts),
            repeated_bytes=ended.repeated_bytes,
            messages=self.messages,
            message_bytes=self.message_bytes,
        )
        firsts = np.array(ended.firsts, np.int64).tobytes()
        return pickle.dumps((firsts, self.names, dict(sums), self.fragments))


@dataclass(frozen=True, slots=True)
class AllFacts:
    """The facts of all partitions.

    firsts: sorted; names: set and topic id -> name; ambiguous: whether messages state different
    names for one id.
    """

    firsts: Ints
    names: dict[tuple[int, bytes], str]
    sums: Counter[str]
    fragments: bool
    ambiguous: bool = False


def sum_up(packed: Iterable[bytes]) -> AllFacts:
    """Add facts; the name that was stated first wins."""
    firsts: list[Ints] = [np.empty(0, np.int64)]
    names: dict[tuple[int, bytes], dict[str, int]] = {}
    sums: Counter[str] = Counter()
    fragments = False
    for one in packed:
        first_packets, stated_names, counted, unjoined = pickle.loads(one)
        firsts.append(np.frombuffer(first_packets, np.int64))
        for id, stated in stated_names.items():
            of_id = names.setdefault(id, {})
            for name, packet in stated.items():
                of_id[name] = min(packet, of_id.get(name, packet))
        sums.update(counted)
        fragments |= unjoined
    return AllFacts(
        np.sort(np.concatenate(firsts)),
        {id: min(stated, key=stated.__getitem__) for id, stated in names.items()},
        sums,
        fragments,
        any(len(stated) > 1 for stated in names.values()),
    )


def truncated(row: Row) -> int:
    """Return how many bytes of a truncated message were captured, including its length field."""
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)


class UnresolvedTopics(TopicNames):
    """Topic names while they are collected: stated names are recorded, none is filled in.

    sets: the set of each file.
    """

    def __init__(self, facts: Facts, sets: Sequence[int]) -> None:
        super().__init__()
        self.facts = facts
        self.learned = facts.learned
        self._sets = sets

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:
        """Return a topic as the message states it."""
        if id is None or not any(id):
            return super().topic(name)
        return Topic(name or None, id)

    def add(self, name: str, id: bytes) -> None:
        """Record a name."""
        set = self._sets[file_and_packet(self.facts.at & (END - 1))[0]]
        self.facts.add_name(set, id, name)
