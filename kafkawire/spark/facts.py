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

from ..capture.blocks import Ints
from ..capture.exchanges import Ended
from ..capture.pairing import Item
from ..capture.reading import Sealed
from ..capture.rows import Row, Status
from ..capture.tables.connections import OTHER
from ..capture.tables.traffic import place_of
from ..capture.topic_ids import Topic, TopicNames

SIZE: Final = 4
"""Bytes of the length in front of a message."""

RUNS: Final = frozenset({Status.GAP, Status.CONFLICT, *OTHER})
"""Rows that are no message and speak of bytes of a connection."""


@dataclass(slots=True)
class Facts:
    """See the module.

    firsts: of each connection its first packet, which is what it is called until all are known.
    names: set and topic id -> the packet that stated it first, and the name.
    sums: bytes of rows by what they are, and `captured_bytes`, `repeated_bytes`. fragments: whether
    fragments of IP datagrams were met that are not put together yet.
    """

    firsts: list[int] = field(default_factory=list)
    names: dict[tuple[int, bytes], tuple[int, str]] = field(default_factory=dict)
    sums: Counter[str] = field(default_factory=Counter)
    fragments: bool = False
    messages: int = 0
    message_bytes: int = 0

    def ended(self, ended: Ended) -> None:
        """Take note of a connection."""
        self.firsts.append(ended.connection)
        self.sums["connections"] += 1
        self.sums["repeated_bytes"] += ended.repeated_bytes

    def item(self, item: Item) -> None:
        """Take note of the bytes of a row, or of a frame that will be one."""
        if isinstance(item, Sealed):
            self.messages += 1
            self.message_bytes += len(item.frame) + SIZE
        elif item.is_message:
            self.messages += 1
            self.message_bytes += item.length + SIZE
        elif item.status in RUNS:
            part = truncated(item) if item.status is Status.TRUNCATED else item.length
            self.sums[f"{item.status.value}_bytes"] += part

    def named(self, set: int, id: bytes, packet: int, name: str) -> None:
        """Take note of the name that a message states for a topic id."""
        known = self.names.get((set, id))
        if known is None or packet < known[0]:
            self.names[set, id] = (packet, name)

    def pack(self) -> bytes:
        """Write them."""
        firsts = np.array(self.firsts, np.int64).tobytes()
        counted = {"messages": self.messages, "message_bytes": self.message_bytes}
        return pickle.dumps((firsts, self.names, {**self.sums, **counted}, self.fragments))


@dataclass(frozen=True, slots=True)
class AllFacts:
    """What all partitions together know. firsts: sorted; names: set and topic id -> name."""

    firsts: Ints
    names: dict[tuple[int, bytes], str]
    sums: Counter[str]
    fragments: bool


def sum_up(packed: Iterable[bytes]) -> AllFacts:
    """Add facts up; the name that was stated first stands."""
    firsts: list[Ints] = [np.empty(0, np.int64)]
    names: dict[tuple[int, bytes], tuple[int, str]] = {}
    sums: Counter[str] = Counter()
    fragments = False
    for one in packed:
        mine, named, counted, unjoined = pickle.loads(one)
        firsts.append(np.frombuffer(mine, np.int64))
        for id, stated in named.items():
            names[id] = min(stated, names.get(id, stated))
        sums.update(counted)
        fragments |= unjoined
    return AllFacts(
        np.sort(np.concatenate(firsts)),
        {id: stated[1] for id, stated in names.items()},
        sums,
        fragments,
    )


def truncated(row: Row) -> int:
    """Say how many bytes of a message that was cut are there, with those of its length."""
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)


class Unresolved(TopicNames):
    """Names of topics while they are being gathered: what is stated is noted, nothing is filled in.

    packet: of the message that is being learnt from. sets: of each file.
    """

    def __init__(self, facts: Facts, sets: Sequence[int]) -> None:
        super().__init__()
        self.facts = facts
        self.packet = 0
        self._sets = sets

    def topic(self, name: str | None, id: bytes | None = None) -> Topic:
        """Get a topic as it is stated."""
        if id is None or not any(id):
            return super().topic(name)
        return Topic(name or None, id)

    def state(self, name: str, id: bytes) -> None:
        """Take note of a name."""
        self.facts.named(self._sets[place_of(self.packet)[0]], id, self.packet, name)
