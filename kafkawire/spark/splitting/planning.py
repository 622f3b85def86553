"""Cuts a file into splits.

A split can be read on its own. For a local, uncompressed file the starts are found by reading
it once, and are certain; otherwise only the first one is.

    local, uncompressed       walked: every start and number known, no split empty
    remote, uncompressed      a cut each `split_bytes`; starts are guessed when they are read
    BGZF, zstd in frames      a cut at members; starts are guessed when they are read
    anything else             one split, also for files that are not captures
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ...capture.files.pcap import FILE_HEADER, read_header
from ...capture.files.source import Unpacked, is_compressed
from ...magic_numbers import is_pcap, is_pcapng
from .frames import marks
from .reading import probe
from .sources import chunks
from .splits import END, Edge, Mark, Split
from .stores import InputFile, Reader, opened

HEAD: Final = 1 << 12
"""Bytes read to detect the format of a file."""


def plan(file: InputFile, split_bytes: int, *, walk: bool | None = None) -> list[Split]:
    """Cut a file into splits of about `split_bytes` (of the file as stored).

    walk: find the starts by reading the file from its start; the default for local files,
    impossible for compressed ones. Splits whose `start` is None must be proven (`prove`). Raises
    OSError if the file cannot be read, ValueError if split_bytes is not positive.
    """
    if split_bytes < 1:
        raise ValueError(f"invalid split_bytes {split_bytes}: expected a positive number")
    with opened(file) as reader:
        head = reader.read(0, HEAD)
        stored = [Mark(0, 0)]
        if packed := is_compressed(head):
            head = _unpacked_head(reader, file.size)
            stored = marks(reader, file.size, split_bytes)
    split = _known(file, head)
    if split is None or (packed and len(stored) == 1):
        return [Split(file, whole=True, start=Edge(0), first=1)]
    if packed:
        split = replace(split, marks=(stored[0], None))
        return _guessed(split, [mark.position for mark in stored], stored)
    lows = list(range(0, max(file.size, 1), split_bytes))
    if file.store.is_local if walk is None else walk:
        return list(_walked(split, lows))
    return _guessed(split, lows, [])


def _unpacked_head(reader: Reader, size: int) -> bytes:
    head = b""
    for data in Unpacked(chunks(reader, 0, size)):
        head += data
        if len(head) >= HEAD:
            break
    return head


def _known(file: InputFile, head: bytes) -> Split | None:
    """Return a split for all of a file; None if the file cannot be cut."""
    if is_pcapng(head):
        return Split(file, start=Edge(0, order="<"), first=1)
    if is_pcap(head) and len(head) >= FILE_HEADER:
        header = read_header(head)
        if len(head) >= header.size:
            return Split(file, header=header, start=Edge(header.size), first=1)
    return None


def _guessed(uncut: Split, lows: list[int], stored: list[Mark]) -> list[Split]:
    """Cut at `lows`; guesses use what is known of the first packet."""
    if len(lows) == 1:
        return [uncut]
    assert uncut.start is not None
    second = probe(replace(uncut, high=uncut.start.position + 1)).end
    guess = uncut.start if second.position == END else second
    proofs = []
    for ordinal, (low, high) in enumerate(pairwise([*lows, END])):
        split = replace(uncut, ordinal=ordinal, low=low, high=high)
        if ordinal:
            split = replace(split, start=None, first=None, guess=guess)
        if stored:
            later = stored[ordinal + 1] if ordinal + 1 < len(stored) else None
            split = replace(split, marks=(stored[ordinal], later))
        proofs.append(split)
    return proofs


def _walked(uncut: Split, lows: list[int]) -> Iterator[Split]:
    """Cut at the first packet after each of `lows`, by reading."""
    edge, first, ordinal = uncut.start, uncut.first, 0
    assert edge is not None
    assert first is not None
    for low, high in pairwise([*lows, END]):
        if edge.position < high:
            split = replace(uncut, ordinal=ordinal, low=low, high=high, start=edge, first=first)
            proof = probe(split)
            yield split
            edge, first, ordinal = proof.end, first + proof.packets, ordinal + 1
