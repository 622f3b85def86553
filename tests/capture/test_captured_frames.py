"""The lower layers against truth: frames of every recording by packet, stream, side, length."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkawire.capture.events import Gap, Run
from kafkawire.capture.framing import Framer, StreamFrame
from kafkawire.capture.packets import PacketParser
from kafkawire.capture.reassembly import Reassembler
from kafkawire.capture.source import Capture
from tests.conftest import SHARED, shared

from . import truth

MAX_FRAME_BYTES = 100 << 20
CAPTURES = SHARED / "captures"


LATER = "--rot", "--tinymid", "--tinyloss"
"""Sets of files; and losses that hide where a frame begins, which only its content tells."""


def manifest() -> list[dict[str, Any]]:
    path = CAPTURES / "manifest.jsonl"
    rows = truth.lines(path) if path.exists() else []
    return [row for row in rows if not any(kind in row["file"] for kind in LATER)]


class Seen(NamedTuple):
    known: int
    frame: int
    stream: int
    dir: str
    len: int


def frames(paths: list[Path], ports: list[int], step: int = 1 << 23) -> list[Seen]:
    """Take the frames of captures that are one, in order of completion."""
    parser, reassembler = PacketParser(), Reassembler()
    framers: dict[tuple[int, int], Framer] = {}
    seen: list[Seen] = []

    def take(events: list[Any]) -> None:
        batch = []
        for event in events:
            if not isinstance(event, Run | Gap):
                continue
            connection, side = event.connection, event.side
            to_broker = connection.endpoints[1 - side].port in ports
            framer = framers.setdefault(
                (connection.id, side), Framer(max_frame_bytes=MAX_FRAME_BYTES)
            )
            found = framer.feed(event) if isinstance(event, Run) else framer.gap(event)
            batch += [
                Seen(
                    frame.known,
                    frame.packet,
                    connection.id,
                    "req" if to_broker else "resp",
                    len(frame.data) - 4,
                )
                for frame in found
                if isinstance(frame, StreamFrame)
            ]
        seen.extend(sorted(batch, key=lambda one: one.known))

    for path in paths:
        data = path.read_bytes()
        for block in Capture(data[at : at + step] for at in range(0, len(data), step)):
            take(reassembler.feed(parser.parse(block)))
    take(reassembler.finish())
    return seen


@pytest.mark.parametrize("step", [1 << 23, 2000], ids=["whole", "in pieces"])
@pytest.mark.parametrize("row", manifest(), ids=lambda row: row["file"])
def test_frames_are_the_truth(row: dict[str, Any], step: int) -> None:
    wanted = truth.lines(shared(f"captures/{row['truth']}"))
    found = frames([shared(f"captures/{row['file']}")], row["broker_ports"], step)
    if "captured" not in wanted[0]:
        assert [one[1:] for one in found] == [
            (one["frame"], one["stream"], one["dir"], one["len"]) for one in wanted
        ]
        return
    full = Counter((one["dir"], one["len"]) for one in wanted if one["captured"] == "full")
    seen = Counter((one.dir, one.len) for one in found)
    assert seen == full


@pytest.mark.parametrize("name", ["kcat-kf", "mixed-a"])
def test_rotated_files_are_one_capture(name: str) -> None:
    wanted = truth.lines(shared(f"captures/variants/{name}--rot.truth.jsonl"))
    paths = sorted(shared("captures/variants").glob(f"{name}--rot*.pcap"))
    ports = [19092] if name == "kcat-kf" else [9092, 9093, 9094]
    assert len(paths) > 1
    assert [one[1:] for one in frames(paths, ports)] == [
        (one["frame"], one["stream"], one["dir"], one["len"]) for one in wanted
    ]
