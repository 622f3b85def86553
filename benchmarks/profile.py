"""`python -m benchmarks.profile CASE`: profiles a case.

The case runs as in the suites, once to warm up and once profiled.

    native modules       Linux `perf`, where it is installed and allowed: functions of C, by name
                         if the build kept them (KAFKAWIRE_COMPILE_SYMBOLS=1)
    otherwise            cProfile: Python's functions; what is compiled is counted in its caller
"""

from __future__ import annotations

if not __package__:  # by its path: its folder would shadow Python's own `profile`
    import os
    import sys

    root = os.path.dirname(sys.path[0])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.profile", *sys.argv[1:]])

import argparse
import cProfile
import pstats
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafkawire.capture import decode_capture
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.jsonl.rows import Lines
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.reassembly import Reassembler
from kafkawire.records import Compression, RecordBatches

from .captures import grown, recorded
from .codec.bodies import bodies
from .pipeline import recordings
from .records import encode_own

MEGABYTES: Final = 10


def packets(capture: Path) -> None:
    """Packets to segments."""
    parser = PacketParser()
    for block in read_capture(capture):
        parser.parse(block)


def runs(capture: Path) -> None:
    """Packets to runs of bytes."""
    parser, reassembler = PacketParser(), Reassembler()
    for block in read_capture(capture):
        reassembler.handle(parser.parse(block))
    reassembler.handle(None)


def frames(capture: Path) -> None:
    """Packets to frames with their headers, paired."""
    for _ in Traffic([capture]).raw_frames():
        pass


def rows(capture: Path) -> None:
    """Packets to decoded rows."""
    for _ in decode_capture(capture):
        pass


def jsonl(capture: Path) -> None:
    """Packets to lines of JSON, records included."""
    lines = Lines(str(capture), records=True)
    for batch in Traffic([capture]).item_batches():
        lines.text(batch)


def table(name: str) -> Callable[[Path], None]:
    """Packets to a table."""

    def run(capture: Path) -> None:
        from kafkawire.capture import tables

        for _ in tables.read(capture, name):
            pass

    return run


def decode_bodies(part: float) -> None:
    """The codec suite's eight messages, decoded."""
    taken = [(type(each.message), each.data, each.version) for each in bodies()]
    for _turn in range(round(CODEC_TURNS * part)):
        for cls, data, version in taken:
            cls.decode(data, version)  # type: ignore[attr-defined]  # every generated message has it


def encode_bodies(part: float) -> None:
    """The codec suite's eight messages, encoded."""
    taken = [(each.message, each.version) for each in bodies()]
    for _turn in range(round(CODEC_TURNS * part)):
        for message, version in taken:
            message.encode(version)


def record_objects(part: float) -> None:
    """Batches of 16 KiB and 1 MiB, as objects."""
    for size, turns in RECORD_TURNS.items():
        data = encode_own(Compression.NONE, size)()
        for _turn in range(round(turns * part / 4)):
            list(RecordBatches(data).records())


def record_columns(part: float) -> None:
    """Batches of 16 KiB and 1 MiB, as columns."""
    for size, turns in RECORD_TURNS.items():
        data = encode_own(Compression.NONE, size)()
        for _turn in range(round(turns * part)):
            RecordBatches(data).columns()


def record_batches(part: float) -> None:
    """Batches of 16 KiB and 1 MiB, written."""
    for size, turns in RECORD_TURNS.items():
        encode = encode_own(Compression.NONE, size)
        for _turn in range(round(turns * part / 4)):
            encode()


CODEC_TURNS: Final = 20_000
"""Repetitions of the eight messages."""

RECORD_TURNS: Final = {16 << 10: 200_000, 1 << 20: 6_000}
"""Bytes of a batch, and repetitions of the fastest case: about the same time for each."""

CAPTURE_CASES: Final[dict[str, Callable[[Path], None]]] = {
    "packets": packets,
    "runs": runs,
    "frames": frames,
    "rows": rows,
    "jsonl": jsonl,
    **{name: table(name) for name in ("exchanges", "messages", "partitions", "records")},
}
CODEC_CASES: Final[dict[str, Callable[[float], None]]] = {
    "decode": decode_bodies,
    "encode": encode_bodies,
    "record-objects": record_objects,
    "record-columns": record_columns,
    "record-batches": record_batches,
}


def run_case(case: str, folder: Path, part: float) -> None:
    """Run a part of a case; its input is made in the folder on first use."""
    if case in CODEC_CASES:
        CODEC_CASES[case](part)
        return
    size = round(MEGABYTES * 10**6 * part)
    capture = folder / "capture.pcap"
    if not capture.exists():
        with capture.open("wb", buffering=1 << 20) as out:
            for piece in grown([recorded(path) for path, _ in recordings()], size):
                out.write(piece)
    CAPTURE_CASES[case](capture)


def with_perf(case: str, folder: Path, part: float, lines: int) -> bool:
    """Show the hottest libraries and C functions; False if perf cannot be used."""
    if shutil.which("perf") is None:
        return False
    data = folder / "perf.data"
    again = [sys.executable, "-m", "benchmarks.profile", case, "--part", str(part)]
    again += ["--once", str(folder)]
    record = ["perf", "record", "--quiet", "--freq", "2000", "--output", str(data), *again]
    if subprocess.run(record, stderr=subprocess.DEVNULL, check=False).returncode:
        return False
    for keys, count in (("dso", 8), ("dso,symbol", lines)):
        show = ["perf", "report", "--stdio", "--no-children", "--sort", keys, "--input", str(data)]
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        symbols = [line for line in shown.splitlines() if line and not line.startswith("#")]
        print("\n".join(symbols[:count]), end="\n\n")
    return True


def with_cprofile(case: str, folder: Path, part: float, lines: int) -> None:
    """Show the Python functions with the most own time."""
    profile = cProfile.Profile()
    profile.runcall(run_case, case, folder, part)
    pstats.Stats(profile).sort_stats("tottime").print_stats(lines)


def main() -> None:
    """Profile a case."""
    parser = argparse.ArgumentParser(prog="benchmarks.profile", description=__doc__)
    parser.add_argument("case", choices=[*CAPTURE_CASES, *CODEC_CASES])
    parser.add_argument("--part", type=float, default=1, help="how much of it: 0.1 for a tenth")
    parser.add_argument("--lines", type=int, default=40, help="how many functions are shown")
    parser.add_argument("--once", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.once:
        run_case(chosen.case, Path(chosen.once), chosen.part)
        return
    with tempfile.TemporaryDirectory(prefix="kafkawire-profile-") as folder:
        run_case(chosen.case, Path(folder), chosen.part)
        if not with_perf(chosen.case, Path(folder), chosen.part, chosen.lines):
            print("perf cannot be used here")
        with_cprofile(chosen.case, Path(folder), chosen.part, chosen.lines)


if __name__ == "__main__":
    main()
