"""Planning many small captures costs as much for each of 10n files as for each of n; no Spark."""

from __future__ import annotations

import gc
import gzip
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.spark.small_captures import capture, make
from kafkawire.spark.options import parse
from kafkawire.spark.plan import opening, planning
from kafkawire.spark.plan.opening import OpenedInput
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.splitting import InputFile
from tests.capture.wire import Packet, ethernet, pcap
from tests.conftest import FIXTURES

from .test_rows import fragmented

FILES = 40


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Directories of n and 10n small captures."""
    root = tmp_path_factory.mktemp("many")
    for count in (FILES, 10 * FILES):
        assert len(list(make(root / str(count), count))) == count
    return {count: root / str(count) for count in (FILES, 10 * FILES)}


def work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what planning a directory does: files opened, bytes read, objects made and kept."""
    counted: Counter[str] = Counter()
    opened, read = os.open, os.pread

    def open_file(*given: object) -> int:
        counted["opened"] += 1
        return opened(*given)  # type: ignore[arg-type]

    def read_file(*given: int) -> bytes:
        data = read(*given)
        counted["bytes"] += len(data)
        return data

    gc.collect()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_file)
        patched.setattr(os, "pread", read_file)
        before = len(gc.get_objects())
        plan = make_plan(None, [str(folder)], parse({}), lenient=True)
        gc.collect()
        counted["objects"] = len(gc.get_objects()) - before
    assert len(plan.parts) == len(plan.files)
    return counted


def test_work_for_each_file_is_constant(
    folders: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One open, one read of its bytes, and at most five objects that the cyclic GC tracks."""
    few, many = (work(folder, monkeypatch) for folder in folders.values())
    sizes = [sum(path.stat().st_size for path in each.iterdir()) for each in folders.values()]
    assert (few["opened"], many["opened"]) == (FILES, 10 * FILES)
    assert [few["bytes"], many["bytes"]] == sizes
    assert many["objects"] - few["objects"] <= 5 * 9 * FILES


def one_by_one(monkeypatch: pytest.MonkeyPatch, files: list[str], **options: str) -> Plan:
    """Plan as if no file was small."""
    with monkeypatch.context() as patched:
        patched.setattr(planning, "batches", lambda *_: [])
        return make_plan(None, files, parse(options), lenient=True)


def comparable(plan: Plan) -> list[object]:
    """What two plans must have in common."""
    regions = [
        (region.parts, None if region.shuffled is None else region.shuffled.tolist())
        for region in plan.regions
    ]
    visits = [(visit.ids.tolist(), visit.parts, visit.cut) for visit in plan.visits]
    return [regions, visits, replace(plan, regions=(), visits=())]


@pytest.fixture(scope="module")
def mixed(folders: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Small captures, plain or not: link types, byte orders, fragments, damage, reused ports."""
    root = tmp_path_factory.mktemp("mixed")
    data = capture(7)
    made = {
        "truncated.pcap": data[:-5],
        "empty.pcap": data[:24],
        "header.pcap": data[:20],
        "nothing.pcap": b"",
        "text.pcap": b"this is not a capture",
        "damaged.pcap": data[:200] + b"\xff" * 64 + data[264:],
        "again.pcap": data,
        "unlinked.pcap": pcap([Packet(bytes(60))], link=9999),
        "packed.pcap.gz": gzip.compress(data),
        "fragments.pcap": pcap(fragmented(3), magic=0xA1B23C4D),
        "big.pcap": pcap([Packet(data[40:96])], order=">"),
        "arp.pcap": pcap([Packet(ethernet(b"", ethertype=0x0806))]),
    }
    for name, content in made.items():
        (root / name).write_bytes(content)
    some = sorted(folders[FILES].iterdir())
    fixtures = sorted((FIXTURES / "captures").glob("*.pcap*"))
    return [str(path) for path in (*root.iterdir(), *some, *fixtures)]


@pytest.mark.parametrize("sets", ["all", "file", "directory"])
def test_the_plan_is_that_of_files_opened_one_by_one(
    mixed: list[str], sets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for split in ("9k", "32m"):
        files = random.sample(mixed, len(mixed))
        options = {"sets": sets, "splitBytes": split}
        want = one_by_one(monkeypatch, files, **options)
        found = make_plan(None, files, parse(options), lenient=True)
        assert comparable(found) == comparable(want)
        assert len(want.skipped) == 2
        assert len({verdict.status for verdict in want.verdicts}) > 2


def test_plain_files_are_not_opened_again(
    mixed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what needs it goes through the readers of one file."""
    seen: list[str] = []

    def open_input(file: InputFile, size: int | None, **more: bool) -> OpenedInput:
        seen.append(Path(file.name).name)
        return opening.open_input(file, size, **more)

    monkeypatch.setattr(planning, "open_input", open_input)
    plan = make_plan(None, mixed, parse({}), lenient=True)
    assert len({*seen}) == len(seen) < len(mixed) == len(plan.files) + len(plan.skipped)
    assert {"truncated.pcap", "empty.pcap", "text.pcap", "damaged.pcap"} < {*seen}
    assert not any(name.startswith("capture-") for name in seen)
