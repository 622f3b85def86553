"""Measures splits of large captures, planned, proven and read, beside `read_capture`.

    python -m benchmarks.spark.splits MB FILE ...

Every form finds the same packets; MB are 10^6 bytes of the uncompressed capture, times those
of one core at work, the median of the rounds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time

from kafkawire.capture import read_capture
from kafkawire.spark.splitting import InputFile, Split, inputs, plan, probe, prove, read

from ..captures import grown, recorded

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FRAME: int = 4 << 20


def _serially(path: Path) -> int:
    return sum(map(len, read_capture(path)))


def _proven(splits: list[Split]) -> int:
    return sum(proof.packets for proof in prove(splits, lambda todo: map(probe, todo)).proven)


def _read(splits: list[Split]) -> int:
    return sum(len(block) for split in splits for block in read(split))


def _forms(
    path: Path, file: InputFile, split_bytes: int
) -> Iterator[tuple[str, Callable[[], int]]]:
    walked = plan(file, split_bytes)
    guessed = plan(file, split_bytes, walk=False)
    yield "read_capture", lambda: _serially(path)
    yield "read the splits", lambda: _read(walked)
    yield "prove guesses", lambda: _proven(guessed)


def _plans(file: InputFile, split_bytes: int) -> Iterator[tuple[str, Callable[[], int]]]:
    if not file.name.endswith(".zst"):
        yield "plan, walked", lambda: len(plan(file, split_bytes))
    yield "plan, guessed", lambda: len(plan(file, split_bytes, walk=False))


def _taken(call: Callable[[], int], rounds: int) -> tuple[float, int]:
    seconds, result = [], 0
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        result = call()
        seconds.append(process_time() - start)
    return median(seconds), result


def _frames(path: Path) -> Path:
    """Write a capture as zstd in frames of FRAME bytes."""
    packed = path.with_suffix(".pcap.zst")
    with path.open("rb") as plain, packed.open("wb") as out:
        while data := plain.read(FRAME):
            out.write(zstd.compress(data, 1))
    return packed


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark.splits", description=__doc__)
    parser.add_argument("megabytes", type=int)
    parser.add_argument("files", type=Path, nargs="+", help="recordings to copy from")
    parser.add_argument("--split-bytes", type=int, default=64 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grown.pcap"
        with path.open("wb", buffering=1 << 20) as out:
            for piece in grown([recorded(each) for each in chosen.files], chosen.megabytes * 10**6):
                out.write(piece)
        size = path.stat().st_size
        packets = _serially(path)
        print(f"{size / 1e6:.0f} MB, {packets} packets, {size / packets:.0f} bytes each")
        for kind in (path, _frames(path)):
            (file,) = inputs([kind])
            for name, call in [
                *_plans(file, chosen.split_bytes),
                *_forms(kind, file, chosen.split_bytes),
            ]:
                seconds, result = _taken(call, chosen.rounds)
                if "plan" not in name and result != packets:
                    raise AssertionError(f"{name}: {result} packets, not {packets}")
                rate = size / 1e6 / seconds
                print(f"{kind.suffix:6} {name:16} {seconds * 1e3:8.0f} ms {rate:8.0f} MB/s")


if __name__ == "__main__":
    main()
