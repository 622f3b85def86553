"""The law of splits: together they have the packets and problems of one reader."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from kafkawire.capture import read_capture
from kafkawire.capture.files import pcap, pcapng, source
from kafkawire.capture.files.blocks import PacketBlock
from kafkawire.errors import CaptureError
from kafkawire.spark.splitting import (
    InputFile,
    Proof,
    Split,
    Stitched,
    frames,
    inputs,
    plan,
    probe,
    prove,
    read,
    reading,
    sources,
    stitch,
)


class LocatedItem(NamedTuple):
    """number, offset in the file, bytes, time, length on the wire, link type of every packet; the
    problems in the order of the file.
    """

    packets: list[tuple[int, int, bytes, int, int, int]]
    problems: list[tuple[str, int, str]]


def packet_tuples(blocks: Iterable[PacketBlock]) -> list[tuple[int, int, bytes, int, int, int]]:
    found = []
    for block in blocks:
        columns = (block.start, block.captured, block.ts, block.original, block.link)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (start, size, ts, original, link) in enumerate(rows, block.first):
            data = block.data[start : start + size]
            found.append((number, block.position + start, data, ts, original, link))
    return found


def in_order(problems: Iterable[CaptureError]) -> list[tuple[str, int, str]]:
    """Write problems down; those of one packet block come in no particular order."""
    return sorted((type(each).__name__, each.offset, each.reason) for each in problems)


def serially(path: Path) -> LocatedItem:
    """Read a file with the serial reader."""
    capture = read_capture(path)
    try:
        packets = packet_tuples(capture)
    except CaptureError as problem:
        return LocatedItem([], in_order([problem]))
    return LocatedItem(packets, in_order(capture.problems))


def probed(splits: Sequence[Split]) -> Iterator[Proof]:
    """Probe splits as other machines would: pickled, in another order."""
    for split in reversed(splits):
        proof: Proof = pickle.loads(pickle.dumps(probe(pickle.loads(pickle.dumps(split)))))
        yield proof


def split_up(
    file: InputFile, split_bytes: int, walk: bool | None = None
) -> tuple[LocatedItem, Stitched]:
    """Read a file in proven splits."""
    stitched = prove(plan(file, split_bytes, walk=walk), probed)
    packets = [packet for split in stitched.splits for packet in packet_tuples(read(split))]
    return LocatedItem(packets, in_order(stitched.problems.get(file, []))), stitched


def obeys(path: Path, split_bytes: int, walk: bool | None = None) -> Stitched:
    """Hold the law against a file."""
    (file,) = inputs([path])
    found, stitched = split_up(file, split_bytes, walk)
    expected = serially(path)
    assert found.packets == expected.packets
    assert found.problems == expected.problems
    return stitched


def obeys_in_one_pass(path: Path, split_bytes: int) -> None:
    """Hold the law in the form that reads first and proves afterwards."""
    (file,) = inputs([path])
    made: dict[tuple[int, object], list[PacketBlock]] = {}
    proofs: list[Proof] = []
    todo: Sequence[Split] = plan(file, split_bytes, walk=False)
    while todo:
        for split in todo:
            reading = read(split)
            blocks = list(reading)
            made[split.ordinal, reading.proof.start] = blocks
            proofs.append(reading.proof)
        todo = (stitched := stitch(proofs)).redo
    packets, first = [], 1
    for proof in stitched.proven:
        assert proof.split.first == first
        blocks = made[proof.split.ordinal, proof.start]
        packets += [(first + i, *row[1:]) for i, row in enumerate(packet_tuples(blocks))]
        first += proof.packets
    assert packets == serially(path).packets


@contextmanager
def small(
    chunk: int = source.CHUNK,
    search: int = pcapng.SEARCH_BYTES,
    step: int = source.STEP,
    window: int = reading.WINDOW,
    beyond: int = sources.BEYOND,
    piece: int = sources.PIECE,
) -> Iterator[None]:
    """Make the reader's sizes small, so that small files show what depends on them."""
    with ExitStack() as changes:
        for module in (source, sources, frames):
            changes.enter_context(patch.object(module, "CHUNK", chunk))
        for decoder in (pcap, pcapng):
            changes.enter_context(patch.object(decoder, "SEARCH_BYTES", search))
        changes.enter_context(patch.object(source, "STEP", step))
        changes.enter_context(patch.object(reading, "WINDOW", window))
        changes.enter_context(patch.object(sources, "BEYOND", beyond))
        changes.enter_context(patch.object(sources, "PIECE", piece))
        yield
