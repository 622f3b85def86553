"""Recordings whose packets are wrapped in random tunnels, tags, fragments and link types.

What is wrapped has the rows of the plain recording; what is damaged, inside or outside of the
tunnels, has none that are not among them, other than those that say what is wrong.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.rows import MESSAGES, Row, Status
from kafkawire.errors import BadMagic, TruncatedCapture
from tests.capture.encapsulations import (
    IP,
    LINKS,
    WRAPPERS,
    as_form,
    form,
    fragmented,
    ip_packets,
    random_wrappers,
)
from tests.capture.wire import Packet, packets_of, pcap, pcapng, read
from tests.conftest import FIXTURES
from tests.fuzzing import mutate, replayable, seeds

CAPTURES = FIXTURES / "captures"
NAMES: Final = ("kcat-kf", "ck-txn", "ck-group-range", "kjs-all", "kp22-old-0.9")
MOST: Final = 120
"""Packets of a recording that are wrapped."""

CAPTURES_OF_A_SEED: Final = 100
"""With SOAK=50, `make soak` reads 100,000 damaged captures."""


class Content(NamedTuple):
    """A message without its place."""

    direction: str
    api: str | None
    version: int | None
    correlation_id: int | None
    length: int
    body: str


@cache
def recorded(name: str) -> tuple[Packet, ...]:
    """The first IP packets of a recording."""
    blocks, _ = read((CAPTURES / f"{name}.pcap").read_bytes())
    times = [time_ns for block in blocks for time_ns in block.ts.tolist()]
    return tuple(ip_packets(map(Packet, packets_of(blocks), times))[:MOST])


@cache
def plain(name: str) -> Counter[Content]:
    """The messages of a recording."""
    return messages(rows(pcap(recorded(name), link=101, magic=0xA1B23C4D)))


def rows(data: bytes) -> list[Row]:
    """Read a capture to its end; what is refused as a whole has no rows."""
    try:
        return [found.row for found in decode_capture(io.BytesIO(data))]
    except (BadMagic, TruncatedCapture):
        return []


def messages(found: Iterable[Row]) -> Counter[Content]:
    return Counter(
        Content(
            row.direction,
            row.api_name,
            row.api_version,
            row.correlation_id,
            row.length,
            str(row.message),
        )
        for row in found
        if row.status in MESSAGES
    )


class Wrapping:
    """How the packets of a capture are wrapped: in a few ways.

    link: of the capture. damage: how likely a header is damaged. outside: only headers around the
    packets are, which leaves all bytes of messages as they were.
    """

    def __init__(self, rng: random.Random, damage: float = 0.0, *, outside: bool = False) -> None:
        self.link = rng.choice(list(LINKS))
        self._rng = rng
        self._damage = damage
        self._outside = outside
        self._ways = [random_wrappers(rng) for _ in range(3)]
        self._number = 0

    def packets(self, plain_packets: Iterable[Packet]) -> Iterator[Packet]:
        """Wrap packets."""
        wrap = LINKS[self.link].wrap
        for packet in plain_packets:
            for data in self._wrapped(packet.data):
                yield packet._replace(data=self._damaged(wrap(data), packet.data))

    def _wrapped(self, ip: bytes) -> list[bytes]:
        rng, way = self._rng, self._rng.choice(self._ways)
        cut = rng.randint(0, len(way)) if rng.random() < 0.2 and not self._outside else -1
        pieces, gives = [ip], IP
        for at, name in enumerate(way):
            if at == cut and gives == IP:
                pieces = [part for piece in pieces for part in self._fragments(piece)]
            wrapped = [form(self._damaged(piece, ip), [name], gives) for piece in pieces]
            pieces, gives = [piece for piece, _ in wrapped], WRAPPERS[name].gives
        return [as_form(piece, gives, LINKS[self.link].takes) for piece in pieces]

    def _fragments(self, packet: bytes) -> list[bytes]:
        if packet[:1] != b"\x45" or len(packet) < 60 or packet[6] & 0x3F or packet[7]:
            return [packet]
        self._number = self._number % 0xFFFF + 1
        pieces = fragmented(packet, self._rng, self._number)
        self._rng.shuffle(pieces)
        return pieces

    def _damaged(self, data: bytes, ip: bytes) -> bytes:
        """Damage the headers in front of a packet, or the first bytes with the packet's."""
        rng = self._rng
        if rng.random() >= self._damage:
            return data
        end = max(len(data) - len(ip), 0) if self._outside else 80
        return (mutate(data[:end], rng, 2) + data[end:]) or b"\0"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(20))
def test_wrapped_packets_have_the_rows_of_the_plain_ones(seed: int) -> None:
    rng = random.Random(seed)
    with replayable(seed):
        name = rng.choice(NAMES)
        wrapping = Wrapping(rng)
        link = LINKS[wrapping.link].number
        found = rows(pcap(wrapping.packets(recorded(name)), link=link, magic=0xA1B23C4D))
        assert messages(found) == plain(name)
        assert not {row.status for row in found} & {Status.SKIPPED, Status.UNREADABLE}


@pytest.mark.fuzz
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(20))
def test_damage(seed: int) -> None:
    """Damaged captures are read to their end; damage around packets invents no message."""
    rng = random.Random(seed)
    with replayable(seed):
        for number in range(CAPTURES_OF_A_SEED):
            try:
                check_damaged(rng, outside=number % 2 == 0)
            except BaseException as error:
                error.add_note(f"capture {number}")
                raise


def check_damaged(rng: random.Random, *, outside: bool) -> None:
    """Damage a part of a recording, and read it."""
    name = rng.choice(NAMES)
    start = rng.randrange(MOST // 2)
    some = recorded(name)[start : start + rng.randint(5, 30)]
    wrapping = Wrapping(rng, rng.choice((0.02, 0.2)), outside=outside)
    packets = list(wrapping.packets(some))
    if rng.random() < 0.3:
        packets = [snapped(packet, rng.randint(20, 200)) for packet in packets]
    link = LINKS[wrapping.link].number
    data = pcap(packets, link=link) if link != 1 or rng.random() < 0.7 else pcapng(packets)
    if not outside and rng.random() < 0.3:
        data = data[:24] + mutate(data[24:], rng)
    found = rows(data)
    if outside:
        decoded = messages(row for row in found if row.status is Status.OK)
        assert not decoded - plain(name)
    for row in found:
        check_row(row, len(data))


def snapped(packet: Packet, snaplen: int) -> Packet:
    return packet._replace(data=packet.data[:snaplen], original=len(packet.data))


def check_row(row: Row, most: int) -> None:
    """A row of decoded bytes has no more than the capture; one of a problem says what it is."""
    if row.status is Status.OK:
        assert 0 <= row.length <= most
    if row.status in (Status.SKIPPED, Status.UNREADABLE):
        assert row.error
