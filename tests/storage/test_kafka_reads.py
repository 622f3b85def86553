"""Apache Kafka reads what storage writes: its dump tool reads every file without a complaint.

Batches, entries of indexes and producers are those that `kafkawire log` reads from the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from kafkawire.log import Finding, Row, read, read_batches, recognise
from kafkawire.records import Compression
from kafkawire.storage.cleanup.cleaner import clean
from kafkawire.storage.cleanup.retention import delete_old_segments
from kafkawire.storage.config import MAX_INT64, LogConfig
from kafkawire.storage.disks.files import FileDisk
from kafkawire.storage.log_manager import LogManager
from kafkawire.storage.unified_log import UnifiedLog
from tests.real.compiler import compiled
from tests.real.dump import TOOL, dump
from tests.real.java import Installation

from .logs import ORDERS, TIME, batch
from .managers import started
from .test_unified_log import end

SOURCE: Final = Path(__file__).with_name("CompactLog.java")
RETENTION: Final = Path(__file__).with_name("RetainLog.java")
COMPLAINTS: Final = ("Mismatches", "Non-consecutive", "not found", "mismatch", "corrupt", "rror")


def traffic(log: UnifiedLog, codecs: Sequence[Compression] = tuple(Compression)) -> None:
    """Append plain, compressed, transactional batches and markers, with tombstones."""
    for n in range(120):
        rows = [
            (b"key %d" % (key % 7), None if n % 11 == 0 else b"v" * 20) for key in range(n % 5 + 1)
        ]
        producer_id = n % 4 - 1
        known = log.producers.producers.get(producer_id)
        sequence = known.batches[-1].last_sequence + 1 if known and known.batches else 0
        idempotent = producer_id >= 0
        log.append(
            batch(
                log.log_end_offset,
                *rows,
                epoch=n // 50,
                timestamp=TIME + n * 10,
                producer_id=producer_id,
                producer_epoch=0 if idempotent else -1,
                base_sequence=sequence if idempotent else -1,
                transactional=idempotent,
                compression=codecs[n % len(codecs)],
            ),
            TIME,
        )
        if idempotent and n % 3 == 0:
            end(log, producer_id, committed=n % 2 == 0)
    log.update_high_watermark(MAX_INT64)


def directory(root: Path, *, compact: bool) -> LogManager:
    policy = frozenset({"compact" if compact else "delete"})
    config = LogConfig(
        segment_bytes=4000,
        index_interval_bytes=200,
        cleanup_policy=policy,
        min_cleanable_dirty_ratio=0.1,
        retention_ms=-1,
        file_delete_delay_ms=0,
    )
    logs = started({"a": FileDisk(root)}, config)
    traffic(logs.get_or_create(ORDERS, TIME, topic_id=bytes(range(16))))
    logs.advance(TIME + 20_000)
    logs.shutdown(TIME + 20_000)
    return logs


def rows(path: Path) -> list[Row]:
    file = recognise(path)
    assert file is not None, path
    found = list(read(file, file.log))
    problems = [str(each) for each in found if isinstance(each, Finding) and each.is_error]
    assert problems == []
    return [each for each in found if not isinstance(each, Finding)]


@pytest.mark.parametrize("compact", [False, True], ids=["delete", "compact"])
def test_every_file_is_read(compact: bool, tmp_path: Path, installation: Installation) -> None:
    directory(tmp_path, compact=compact)
    folder = tmp_path / "orders-0"
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    paths = sorted(path for path in folder.iterdir() if path.suffix in kinds)
    assert {path.suffix for path in paths} == set(kinds)
    for path, file in dump(installation, paths).items():
        if path.suffix == ".log":
            known = recognise(path)
            assert known is not None
            batches = [each for each in read_batches(known) if not isinstance(each, Finding)]
            assert [int(each.values["baseOffset"]) for each in file.batches] == [
                each.base_offset for each in batches
            ]
            assert {each.values["isvalid"] for each in file.batches} <= {"true"}
            continue
        entries = [each for each in file.entries if "offset" in each or "producerId" in each]
        assert len(entries) >= len(rows(path)), path
    said = installation.run(TOOL, f"--files={','.join(map(str, paths))}")
    assert not [line for line in said.splitlines() if any(each in line for each in COMPLAINTS)]
    indexes = [str(path) for path in paths if path.suffix in (".index", ".timeindex")]
    said = installation.run(TOOL, "--index-sanity-check", f"--files={','.join(indexes)}")
    assert said.count("passed sanity check") == len(indexes)


def files(folder: Path, *suffixes: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.suffix in suffixes and path.stat().st_size
    }


def test_kafka_compacts_the_same(tmp_path: Path, installation: Installation) -> None:
    """The same log, compacted by Kafka's cleaner and by ours: the same bytes, round by round."""
    config = LogConfig(
        segment_bytes=4000,
        index_interval_bytes=200,
        cleanup_policy=frozenset({"compact"}),
        retention_ms=-1,
        delete_retention_ms=1000,
        file_delete_delay_ms=0,
    )
    times = [TIME + 5000, TIME + 5500, TIME + 6100, TIME + 9000]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    logs = started({"a": FileDisk(ours)}, config)
    log = logs.get_or_create(ORDERS, TIME)
    traffic(log, codecs=(Compression.NONE,))
    log.roll(TIME)
    logs.shutdown(TIME)
    shutil.copytree(ours / "orders-0", theirs / "orders-0")
    log.update_high_watermark(MAX_INT64)
    for rounds in range(1, len(times) + 1):
        clean(log, 0, log.segments.active.base_offset, times[rounds - 1])
        if rounds not in (1, len(times)):
            continue
        copy = tmp_path / f"theirs-{rounds}" / "orders-0"
        shutil.copytree(theirs / "orders-0", copy)
        given = (str(copy), "4000", "1000", *map(str, times[:rounds]))
        said = compiled(installation, SOURCE).run(SOURCE.stem, *given)
        assert [int(line) for line in said.split()] == [log.segments.active.base_offset] * rounds
        expected = files(copy, ".log", ".txnindex")
        assert files(ours / "orders-0", ".log", ".txnindex") == expected
    assert 0 < sum(map(len, expected.values())) < log.log_end_offset * 20


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "after_ms"),
    [(500, -1, 1000), (-1, 9000, 0), (600, 12_000, 1300), (1, -1, 60_000)],
    ids=["time", "size", "both", "all"],
)
def test_kafka_retains_the_same(
    retention_ms: int,
    retention_bytes: int,
    after_ms: int,
    tmp_path: Path,
    installation: Installation,
) -> None:
    """The same log, by the same clock: the same start, and the same segments."""
    config = LogConfig(
        segment_bytes=4000,
        index_interval_bytes=200,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        file_delete_delay_ms=0,
    )
    logs = started({"a": FileDisk(tmp_path / "ours")}, config)
    log = logs.get_or_create(ORDERS, TIME)
    traffic(log, codecs=(Compression.NONE,))
    logs.shutdown(TIME)
    copy = tmp_path / "theirs" / "orders-0"
    shutil.copytree(tmp_path / "ours" / "orders-0", copy)
    now_ms, segments = TIME + after_ms, len(log.segments)
    given = map(str, (4000, retention_ms, retention_bytes, now_ms))
    said = compiled(installation, RETENTION).run(RETENTION.stem, str(copy), *given)
    start, *bases = map(int, said.split())
    log.update_high_watermark(MAX_INT64)
    delete_old_segments(log, now_ms)
    assert (log.log_start_offset, [each.base_offset for each in log.segments]) == (start, bases)
    assert start > 0
    assert len(bases) < segments
