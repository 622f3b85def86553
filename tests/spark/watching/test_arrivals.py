"""Unfinished files are not taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkawire.spark.watch.arrivals import Arrivals, Finished


def put(folder: Path, name: str, modified: int, content: bytes = b"x") -> None:
    (folder / name).write_bytes(content)
    os.utime(folder / name, (modified, modified))


def names(arrivals: Arrivals, *, all: bool = False) -> list[str]:
    return [Path(file.name).name for file in arrivals.finished(all=all)]


def test_next(tmp_path: Path) -> None:
    arrivals = Arrivals(tmp_path, Finished.NEXT, 0, lambda: 0)
    assert names(arrivals) == []
    put(tmp_path, "tap.pcap", 100)
    assert names(arrivals) == []
    put(tmp_path, "tap.pcap1", 200)
    put(tmp_path, "eth0_20261121T10.pcapng", 900)
    assert names(arrivals) == ["tap.pcap"]
    put(tmp_path, "tap.pcap2", 200)  # numbers tell where times do not
    put(tmp_path, "tap.pcap10", 200)
    assert names(arrivals) == ["tap.pcap", "tap.pcap1", "tap.pcap2"]
    put(tmp_path, "tap.pcap2", 300)  # it was that one that is being written
    assert names(arrivals) == ["tap.pcap", "tap.pcap1", "tap.pcap10"]
    assert names(arrivals, all=True) == [
        "eth0_20261121T10.pcapng",
        "tap.pcap",
        "tap.pcap1",
        "tap.pcap10",
        "tap.pcap2",
    ]


def test_still(tmp_path: Path) -> None:
    now = [0.0]
    arrivals = Arrivals(tmp_path, Finished.STILL, 60, lambda: now[0])
    put(tmp_path, "a.pcap", 100)
    put(tmp_path, "b.pcap", 100)
    assert names(arrivals) == []
    now[0] = 59
    put(tmp_path, "b.pcap", 100, b"more")
    assert names(arrivals) == []
    now[0] = 60
    assert names(arrivals) == ["a.pcap"]
    put(tmp_path, "a.pcap", 101)
    assert names(arrivals) == []
    now[0] = 119
    assert names(arrivals) == ["b.pcap"]


def test_renamed_ignores_unfinished_names(tmp_path: Path) -> None:
    arrivals = Arrivals(tmp_path, Finished.RENAMED, 0, lambda: 0)
    for name in (".a.pcap.X8", "_b.pcap", "c.pcap.part", "d.pcap.tmp"):
        put(tmp_path, name, 100)
    assert names(arrivals) == []
    put(tmp_path, "e.pcap", 100)
    assert names(arrivals) == ["e.pcap"]
    assert names(arrivals, all=True) == ["e.pcap"]


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Arrivals(tmp_path / "none", Finished.NEXT, 0, lambda: 0).finished()
