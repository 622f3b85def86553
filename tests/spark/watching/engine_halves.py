"""Decodes half of a capture, saves the state of the engine, and decodes the other half, each in any
process; see `test_snapshot`.

python engine_halves.py begin|end CAPTURE STATE ROWS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kafkawire.capture.files.source import read_capture
from kafkawire.capture.packets.parser import PacketParser, Segments
from kafkawire.capture.tcp import flow as flows
from kafkawire.spark.decode.decoding import FirstPacketEngine
from kafkawire.spark.options import parse
from kafkawire.spark.watch.snapshot import dump, load

BLOCK = 100
"""Packets of a block."""


class External:
    """The object that the engine calls."""

    def __init__(self) -> None:
        self.ended = 0

    def end(self, *_: object) -> None:
        self.ended += 1


def blocks(capture: str) -> list[Segments]:
    parser = PacketParser()
    return [
        parser.parse(block[at : at + BLOCK])
        for block in read_capture(capture)
        for at in range(0, len(block), BLOCK)
    ]


def begin(capture: str) -> tuple[bytes, list[str]]:
    """Read the first half: the state, and the rows of the other half without interruption."""
    external = External()
    engine = FirstPacketEngine(parse({}), external.end)
    every = blocks(capture)
    half = len(every) // 2
    for block in every[:half]:
        list(engine.feed(block))
    state = dump(engine, external=external)
    return state, rest(engine, every[half:])


def end(capture: str, state: bytes) -> list[str]:
    """Continue from the state."""
    external = External()
    every = blocks(capture)
    rows = rest(load(state, external=external), every[len(every) // 2 :])
    assert external.ended
    return rows


def rest(engine: FirstPacketEngine, every: list[Segments]) -> list[str]:
    rows = [repr(row) for block in every for row in engine.feed(block)]
    return rows + [repr(row) for row in engine.finish()]


def main(what: str, capture: str, state: str, rows: str) -> None:
    if what == "begin":
        state_bytes, expected = begin(capture)
        Path(state).write_bytes(state_bytes)
    else:
        expected = end(capture, Path(state).read_bytes())
    Path(rows).write_text(json.dumps(expected))
    print(Path(flows.__file__).suffix)


if __name__ == "__main__":
    main(*sys.argv[1:])
