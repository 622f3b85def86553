"""Decodes half of a capture, saves the state of the engine, and decodes the other half, each in any
process; see `test_snapshot`.

python engine_halves.py begin|end CAPTURE STATE ROWS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kafkawire.capture.engine import Engine
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames.decoding import located
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segments import Segments
from kafkawire.capture.tcp import flow as flows

BLOCK = 100
"""Packets of a block."""


def new_engine(ended: list[object]) -> Engine:
    return Engine(on_end=lambda *end: ended.append(end), by_packet=True)


def blocks(capture: str) -> list[Segments]:
    parser = PacketParser()
    return [
        parser.parse(block[at : at + BLOCK])
        for block in read_capture(capture)
        for at in range(0, len(block), BLOCK)
    ]


def begin(capture: str) -> tuple[bytes, list[str]]:
    """Read the first half: the state, and the rows of the other half without interruption."""
    engine = new_engine([])
    every = blocks(capture)
    half = len(every) // 2
    for block in every[:half]:
        list(engine.handle(block))
    state = engine.snapshot()
    return state, rest(engine, every[half:])


def end(capture: str, state: bytes) -> list[str]:
    """Continue from the state."""
    ended: list[object] = []
    engine = new_engine(ended)
    engine.restore(state)
    every = blocks(capture)
    rows = rest(engine, every[len(every) // 2 :])
    assert ended
    return rows


def rest(engine: Engine, every: list[Segments]) -> list[str]:
    return [
        repr(located(item))
        for block in [*every, None]
        for batch in engine.handle(block)
        for item in batch
    ]


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
