"""Reads one split; guesses where its packets begin if that is unknown, and reports what it proved.

A split has the packets whose header lies in it, however far they reach, and the damage that
begins before its end; it ends where the next packet begins.

    low         start                                high      end
    |-- guess --| packet | packet | ... | damage | packet that crosses |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np

from ...capture.files.blocks import Block, PacketBlock
from ...capture.files.pcapng_blocks import find_block
from ...capture.files.resynchronisation import find_packet
from ...capture.files.source import Capture
from ...errors import CaptureError, UnsupportedLinkType
from .decoders import Resumed, ResumedPcap, ResumedPcapng
from .sources import Packed, Piece, Plain, Source, chunks
from .splits import END, Edge, Proof, Split
from .stores import Reader, opened

WINDOW: Final = 1 << 20
"""Bytes searched for the first packet of a split; then eight times as many."""


class Reading:
    """The packets of a split. It can be iterated once; then `proof` is complete.

    The iteration raises OSError if the file cannot be read; problems of its content are in the
    proof. key_logs: none; tasks get the key log of the options, since a key log in a file would
    also have to reach the tasks that read other parts of it.
    """

    def __init__(self, split: Split) -> None:
        self.split = split
        self.key_logs: list[bytes] = []
        self.problems: list[CaptureError] = []
        self._start = split.start
        self._end = Edge(END)
        self._packets = 0

    def __iter__(self) -> Iterator[PacketBlock]:
        return (block.columns() for block in self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Read the packets, as `Capture.blocks` does: headers of a pcap are not decoded."""
        with opened(self.split.file) as reader:
            for block in self._whole(reader) if self.split.whole else self._cut(reader):
                self._packets += len(block)
                yield block

    @property
    def proof(self) -> Proof:
        """The proof; complete after the iteration."""
        problems = tuple(self.problems)
        return Proof(self.split, self._start, self._end, self._packets, problems)

    # -- a whole file

    def _whole(self, reader: Reader) -> Iterator[Block]:
        capture = Capture(chunks(reader, 0, self.split.file.size))
        try:
            yield from capture.blocks()
        except CaptureError as problem:
            self.problems = [problem]
        else:
            self.problems = capture.problems

    # -- a range of it

    def _cut(self, reader: Reader) -> Iterator[Block]:
        split, size = self.split, self.split.file.size
        source = Plain(reader, size) if split.marks is None else Packed(reader, size, split.marks)
        begin = split.start
        pieces = source.pieces(split.low if begin is None else begin.position, split.high)
        if begin is None:
            begin, pieces = self._guess(pieces)
        if begin is None:
            return
        decoder: Resumed
        if split.header is None:
            decoder = ResumedPcapng(begin, split.first or 1)
        else:
            decoder = ResumedPcap(split.header, begin, split.first or 1)
        yield from self._decode(decoder, begin, pieces, source)
        self._settle(decoder, source)

    def _decode(
        self, decoder: Resumed, begin: Edge, pieces: Iterator[Piece], source: Source
    ) -> Iterator[Block]:
        """Yield the packets before `high`, and record the first one after it."""
        last = begin
        for block in _blocks(decoder, pieces, source):
            if not len(block):
                continue
            places = decoder.places(block)
            high = END if source.astray else self.split.high
            if self._start is None:
                if int(places[0]) >= high:
                    return
                self._start = decoder.edge(block, 0, begin)
            taken = int(np.searchsorted(places, high))
            if taken:
                yield block[:taken]
            if taken < len(block):
                self._end = decoder.edge(block, taken, last)
                return
            if self.split.header is not None:
                last = decoder.edge(block, taken, last)
                if last.position >= high and source.confirmed:
                    self._end = last
                    return

    def _settle(self, decoder: Resumed, source: Source) -> None:
        """Keep the problems between start and end."""
        begin = 0 if self._start is None else self._start.position
        self.problems = [
            problem
            for problem in decoder.problems
            if problem.offset >= begin and not self._is_later(problem)
        ]
        if source.problem is not None and self._end.position == END:
            self.problems.append(source.problem)

    def _is_later(self, problem: CaptureError) -> bool:
        """Whether a problem is about a packet of the next split; blocks are decoded as a whole."""
        return isinstance(problem, UnsupportedLinkType) and problem.offset >= self._end.position

    def _guess(self, pieces: Iterator[Piece]) -> tuple[Edge | None, Iterator[Piece]]:
        """Find the first packet or block; the returned pieces start there."""
        low, guess, looked = self.split.low, self.split.guess, WINDOW
        window: list[Piece] = []
        held = 0
        while True:
            piece = next(pieces, None)
            if piece is not None:
                window.append(piece)
                held += len(piece.data)
                if held < looked:
                    continue
            offset = self._search(b"".join(piece.data for piece in window), ended=piece is None)
            if offset is not None and low + offset < self.split.high:
                return replace(guess, position=low + offset), chain(_behind(window, offset), pieces)
            if piece is None or low + held >= self.split.high + WINDOW:
                return None, iter(())
            looked *= 8

    def _search(self, data: bytes, *, ended: bool) -> int | None:
        header, near = self.split.header, self.split.guess.seconds
        if header is None:
            return find_block(data, 0, self.split.guess.order)
        offset = find_packet(data, 0, header.shape, near=near, ended=ended)
        if offset is None and near is not None:
            # The capture may be longer than the time range searched around its first packet.
            offset = find_packet(data, 0, header.shape, ended=ended)
        return offset


def read(split: Split) -> Reading:
    """Read the packets of a split: iterate the result, then take its `proof`."""
    return Reading(split)


def probe(split: Split) -> Proof:
    """Read a split only for its proof."""
    reading = Reading(split)
    for _ in reading.blocks():
        pass
    return reading.proof


def _blocks(decoder: Resumed, pieces: Iterator[Piece], source: Source) -> Iterator[Block]:
    for data, is_last_read in pieces:
        yield from decoder.feed(data)
        if is_last_read:
            source.unread(decoder.give_back())
    yield from decoder.finish()


def _behind(pieces: list[Piece], skipped: int) -> Iterator[Piece]:
    for data, _ in pieces:
        if skipped < len(data):
            yield Piece(data[skipped:])
        skipped = max(0, skipped - len(data))
