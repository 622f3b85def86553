"""What one partition learns and all others need: where connections begin, names of topics, sums.

Law: facts add up in any order, so that partitions may be decoded in any order, twice, or anew.

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

from ...capture.exchanges.endings import Endings, weigh
from ...capture.exchanges.topic_ids import Topic, TopicNames
from ...capture.files.blocks import Ints
from ...capture.frames.decoding import RawFrame
from ...capture.frames.serialised import LocatedItem
from ...capture.multifile import place_of
from ...capture.rows import Row, Status
from ...capture.tables.connections import OTHER

END: Final = 1 << 62
"""Stands before the packet that tells what only the end of the capture shows."""

SIZE: Final = 4
"""Bytes of the length in front of a message."""

RUNS: Final = frozenset({Status.GAP, Status.CONFLICT, *OTHER})
"""Rows that are no message and speak of bytes of a connection."""


@dataclass(slots=True)
class Facts:
    """See the module.

    endings: the connections, called by their first packets until all are known. names: set and
    topic id -> names stated for it, and when each was first. at: what sorts that which is being
    told among the connections of all tasks: the packet that made it known, behind END if that was
    the end of the capture. sums: bytes of rows by what they are, and `captured_bytes`. fragments:
    whether fragments of IP datagrams were met that are not put together yet.
    """

    endings: Endings = field(default_factory=Endings)
    names: dict[tuple[int, bytes], dict[str, int]] = field(default_factory=dict)
    sums: Counter[str] = field(default_factory=Counter)
    fragments: bool = False
    at: int = 0
    messages: int = 0
    message_bytes: int = 0

    def items(self, entries: list[LocatedItem]) -> None:
        """Take note of the bytes of rows, and of frames that will be rows."""
        count, size = weigh(entries)
        self.messages += count
        self.message_bytes += size + SIZE * count
        if count < len(entries):
            for one in entries:
                if not isinstance(one.item, RawFrame):
                    self.row(one.item)

    def row(self, row: Row) -> None:
        """Take note of the bytes of a row."""
        if row.is_message:
            self.messages += 1
            self.message_bytes += row.length + SIZE
        elif row.status in RUNS:
            part = truncated(row) if row.status is Status.TRUNCATED else row.length
            self.sums[f"{row.status.value}_bytes"] += part

    def add_name(self, set: int, id: bytes, name: str) -> None:
        """Take note of the name that a message states for a topic id."""
        stated = self.names.setdefault((set, id), {})
        stated[name] = min(self.at, stated.get(name, self.at))

    def pack(self) -> bytes:
        """Write them."""
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
    """What all partitions together know. firsts: sorted; names: set and topic id -> name;
    ambiguous: whether several were stated for one.
    """

    firsts: Ints
    names: dict[tuple[int, bytes], str]
    sums: Counter[str]
    fragments: bool
    ambiguous: bool = False


def sum_up(packed: Iterable[bytes]) -> AllFacts:
    """Add facts up; the name that was stated first stands."""
    firsts: list[Ints] = [np.empty(0, np.int64)]
    names: dict[tuple[int, bytes], dict[str, int]] = {}
    sums: Counter[str] = Counter()
    fragments = False
    for one in packed:
        mine, add_name, counted, unjoined = pickle.loads(one)
        firsts.append(np.frombuffer(mine, np.int64))
        for id, stated in add_name.items():
            known = names.setdefault(id, {})
            for name, at in stated.items():
                known[name] = min(at, known.get(name, at))
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
    """Say how many bytes of a message that was cut are there, with those of its length."""
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)


class UnresolvedTopics(TopicNames):
    """Names of topics while they are being gathered: what is stated is noted, nothing is filled in.

    sets: of each file.
    """

    def __init__(self, facts: Facts, sets: Sequence[int]) -> None:
        super().__init__()
        self.facts = facts
        self._sets = sets

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:
        """Get a topic as it is stated."""
        if id is None or not any(id):
            return super().topic(name)
        return Topic(name or None, id)

    def state(self, name: str, id: bytes) -> None:
        """Take note of a name."""
        set = self._sets[place_of(self.facts.at & (END - 1))[0]]
        self.facts.add_name(set, id, name)
