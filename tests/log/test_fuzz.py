"""Log files of every kind, mutated: rows and findings come out, and every row can be written.

No content of a file raises, neither where it is read nor where JSON lines, the table and
Arrow take its rows; what is read is bounded by the file's size.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from kafkawire.log import FileKind, Finding, InternalLog, LogFile, Row, Rule, arrow, read
from kafkawire.log.reading import ROWS
from kafkawire.log.resync import SUMMED, Resynchronisation
from kafkawire.records import BatchBuilder, Compression
from kafkawire_cli.render.log.rows import JsonLines, Table
from tests.fuzzing import mutate, replayable, seeds

from . import written
from .test_hostile import KINDS, valid_files, write_files
from .written import BASE, both, known

LARGEST: Final = 2**63 - 1
GARBAGE: Final = b"garbage between batches " * 4

LOGS: Final = (None, *InternalLog)


def write_all_formats(file: LogFile, rows: list[Row]) -> None:
    """Write rows in all formats of `kafkawire log`."""
    lines, table = io.StringIO(), io.StringIO()
    for sink in (JsonLines(lines), Table(table)):
        for row in rows:
            sink.add(file, row)
    assert lines.getvalue().count("\n") == len(rows)
    lines.getvalue().encode("utf-8")
    table.getvalue().encode("utf-8")
    made = arrow.record_batch(ROWS[file.kind], [(str(file.path), row) for row in rows])
    made.validate(full=True)
    assert made.num_rows == len(rows)


def read_all(path: Path, log: InternalLog | None, verify: bool) -> list[Row]:
    file = known(path)
    found = list(read(file, log, verify=verify))
    for each in found:
        if isinstance(each, Finding):
            assert str(each)
    rows: list[Row] = [each for each in found if not isinstance(each, Finding)]
    write_all_formats(file, rows)
    return rows


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("name", KINDS)
def test_mutated_files(name: str, seed: int, tmp_path: Path) -> None:
    with replayable(seed):
        rng = random.Random(f"{name} {seed}")
        write_files(tmp_path)
        for _ in range(12):
            data = mutate(valid_files()[name], rng)
            (tmp_path / name).write_bytes(data)
            rows = read_all(tmp_path / name, rng.choice(LOGS), rng.random() < 0.7)
            assert len(rows) <= len(data)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(12))
def test_mutated_segments_of_every_format(seed: int, tmp_path: Path) -> None:
    """Old formats and codecs, offsets at both ends of int64, mutated headers."""
    path = tmp_path / f"{BASE:020}.log"
    with replayable(seed):
        rng = random.Random(seed)
        for _ in range(12):
            path.write_bytes(b"".join(chain.from_iterable(segment(rng) for _ in range(4))))
            read_all(path, rng.choice(LOGS), rng.random() < 0.7)


def segment(rng: random.Random) -> Iterator[bytes]:
    """Write a batch, possibly mutated, possibly followed by garbage."""
    offset = rng.choice([BASE, 0, -1, -5, LARGEST - 2**31, -(2**62), 2**62, rng.getrandbits(40)])
    builder = BatchBuilder(base_offset=offset, compression=rng.choice(list(Compression)))
    for number in range(rng.randint(0, 3)):
        time = rng.choice([0, -1, -5, 1 << 40, 1 << 60, number])
        builder.append(b"key", b"value %d" % number, time, (("name", None),))
    data = builder.build()
    yield data if rng.random() < 0.3 else mutate(data, rng)
    if rng.random() < 0.5:
        yield GARBAGE


@pytest.mark.parametrize("offset", [-1, -5, -(2**31), -(2**32), -(2**62), -(2**63) + 2**31 + 1])
def test_a_negative_offset_before_garbage(offset: int, tmp_path: Path) -> None:
    """The next batch is found, whatever the sign of the offset before it."""
    path = tmp_path / f"{BASE:020}.log"
    bad, good = written.batch(offset, 1), written.batch(offset + 7, 2)
    path.write_bytes(bad + GARBAGE + good)
    rows, findings = both(path)
    assert len(rows) == 3
    assert [found.rule for found in findings if found.position == len(bad)] == [Rule.BATCH_LENGTH]
    assert f"next batch at {len(bad) + len(GARBAGE)}" in str(findings)


def test_the_search_covers_int64_offsets() -> None:
    builder = BatchBuilder(base_offset=LARGEST - 2**31)
    builder.append(None, b"value")
    data = GARBAGE + builder.build()
    search = Resynchronisation(io.BytesIO(data), len(data))
    assert search.next_batch(0, LARGEST - 2**31) == len(GARBAGE)
    assert search.next_batch(0, LARGEST - 2**32 + 1) == len(GARBAGE)
    for first in (LARGEST - 2**32, LARGEST + 1, LARGEST + 2**31, 10**20):
        assert search.next_batch(0, first) is None


class CountedFile(io.BytesIO):
    """A file that counts the bytes read from it."""

    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.bytes_read += len(data)
        return data


def bytes_read(count: int, between: bytes) -> tuple[int, int]:
    """Search from gap to gap of a file with `count` batches: (bytes read, bytes of the file)."""
    batch = written.batch(BASE, 1)
    stream = CountedFile((batch + between) * count + batch)
    size = len(stream.getvalue())
    search = Resynchronisation(stream, size)
    at, found = 0, 0
    while (next_at := search.next_batch(at + 1, BASE)) is not None:
        at = next_at
        found += 1
    assert found == count
    return stream.bytes_read, size


FALSE_START: Final = BASE.to_bytes(8, "big") + (100_000).to_bytes(4, "big") + b"\0\0\0\0\x02"
"""Looks like a batch of 100 kB until its checksum is computed."""


@pytest.mark.parametrize("between", [GARBAGE, bytes(20), FALSE_START])
def test_searches_read_in_proportion_to_the_file(between: bytes) -> None:
    for count in (200, 2000):
        read, size = bytes_read(count, between)
        assert read <= 100 * size + (SUMMED if between == FALSE_START else 0)


@pytest.mark.parametrize("base", ["99999999999999999999", "09223372036854775807"])
@pytest.mark.parametrize("suffix", ["log", "index", "timeindex"])
def test_offsets_beyond_int64(base: str, suffix: str, tmp_path: Path) -> None:
    """A number that is too large is not a base offset; an entry beyond int64 is a finding."""
    path = tmp_path / f"{base}.{suffix}"
    data = {
        "log": written.batch(BASE, 1) + GARBAGE,
        "index": written.INDEX_ENTRY.pack(5, 0),
        "timeindex": written.TIME_ENTRY.pack(7, 5),
    }
    path.write_bytes(data[suffix])
    rows = read_all(path, None, True)
    beyond = suffix != "log" and base.startswith("0")
    assert len(rows) == (not beyond)
    assert known(path).base_offset == (None if base.startswith("9") else LARGEST)
    found = [each for each in read(known(path)) if isinstance(each, Finding)]
    assert any("exceeds an int64" in each.text for each in found) == beyond


@pytest.mark.parametrize("text", ['{"a":"\\ud800"}', '{"\\ud800":1}', '{"a":NaN}', '{"a":1e999}'])
def test_json_with_lone_surrogates(text: str, tmp_path: Path) -> None:
    path = tmp_path / "quorum-state"
    path.write_text(text)
    assert known(path).kind is FileKind.QUORUM_STATE
    read_all(path, None, True)
