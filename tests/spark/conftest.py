"""One Spark for all tests, on loopback, and the captures."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES, read
from kafkawire.capture.tables.passes import COLUMNAR
from kafkawire.spark import session
from kafkawire.spark.decode.chunks import CHUNKED
from kafkawire.spark.decode.groups import GroupItem
from kafkawire.spark.decode.outputs import ITEM, deserialise
from kafkawire.spark.decode.work import GROUP_EVENTS_TABLE, Work
from kafkawire.spark.options import Options
from kafkawire.spark.plan.facts import sum_up
from kafkawire.spark.plan.planning import Plan
from kafkawire.spark.reading import Decoded
from kafkawire.spark.splitting.stores import Store
from kafkawire.spark.write.finishing import Finish
from kafkawire.spark.write.shared_directory import SpilledTable
from kafkawire.spark.write.writing import TableDirectory
from tests.conftest import missing
from tests.fuzzing import SOAK
from tests.recordings import ANY_CAPTURE, own, third_party

from .java import options, options_now


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing that talks to a JVM may hang."""
    for item in items:
        if item.nodeid.partition("::")[0].rpartition("/")[0] == "tests/spark":
            item.add_marker(pytest.mark.timeout(600))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let all drivers start quickly, those of programs and commands, too."""
    spark = [item for item in session.items if item.get_closest_marker("spark")]
    if spark and shutil.which("java") is not None:
        many = any(item.get_closest_marker("builds") for item in spark)
        os.environ["SPARK_SUBMIT_OPTS"] = options() if many else options_now()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if shutil.which("java") is None:
        missing("Java")
    started = session(
        "local[2]",
        name="tests",
        settings={
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield started
    started.stop()


def gathered(root: Path, captures: Iterable[Path]) -> dict[str, list[str]]:
    """Put each capture, or each rotated set, into a directory of its own."""
    sets: dict[str, list[str]] = {}
    for path in captures:
        name = re.sub(r"--rot\d+\.pcap", "--rot", path.name)
        folder = root / f"{path.parent.name}-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / path.name
        link.symlink_to(path)
        sets.setdefault(str(folder), []).append(str(link))
    return sets


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """All captures: directory -> files."""
    captures = [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]
    return gathered(tmp_path_factory.mktemp("sets"), captures)


SPANNING: Final = "captures-ck-group-range.pcap"
"""A set with rows of every table, problems too, of connections that span splits of 9 kB."""

LARGE: Final = 4
"""How many sets are large, 0.4 to 2.8 MB: two with the same packets, in one file and in several,
one with large messages, one with large batches. Together they have three quarters of all bytes.
"""


def some(sets: dict[str, list[str]], share: int) -> dict[str, list[str]]:
    """Choose one of the LARGE sets with the most bytes, then SPANNING, and of the others at random
    one of so many; all of them in `make soak`. Over a run, each of the large ones is chosen often.
    """
    if SOAK > 1:
        return sets
    by_size = sorted(sets, key=lambda name: sum(map(os.path.getsize, sets[name])))
    others, large = by_size[:-LARGE], random.choice(by_size[-LARGE:])
    (spanning,) = (name for name in others if Path(name).name == SPANNING)
    others.remove(spanning)
    chosen = (large, spanning, *random.sample(others, len(others) // share))
    return {name: sets[name] for name in chosen}


@pytest.fixture
def some_sets(sets: dict[str, list[str]]) -> dict[str, list[str]]:
    """An eighth of all captures."""
    return some(sets, 8)


def counted(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Rows as a multiset."""
    return Counter(map(repr, rows))


def rows_of(files: list[str], table: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of one process."""
    return [row for batch in read(files, table, **options) for row in batch.to_pylist()]


@cache
def _counted_set(files: tuple[str, ...], table: str) -> Counter[str]:
    return counted(rows_of([*files], table))


def counted_sets(chosen: Iterable[Sequence[str]], table: str) -> Counter[str]:
    """The rows of one process for each of some sets, as a multiset; a set is decoded once."""
    found: Counter[str] = Counter()
    for files in chosen:
        found.update(_counted_set(tuple(files), table))
    return found


def of_frame(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def directory_in(folder: Path, table: str, finish: Finish) -> TableDirectory:
    """Return the directory of a table's files."""
    return TableDirectory(Store(), str(folder / table), False, finish.batch, "tests")


def rows_written(found: SpilledTable | Decoded, folder: TableDirectory) -> Counter[str]:
    """Write a table; return its rows."""
    files = found.write(folder, 2)
    tables = [(pq.ParquetFile(f"{folder.path}/{file}").read(), rows) for file, rows in files]
    assert [len(table) for table, _ in tables] == [rows for _, rows in tables]
    return counted(row for table, _ in tables for row in table.to_pylist())


# -- output rows of steps, without Spark

TOGETHER: Final = (
    *((table,) for table in sorted({*TABLES} - {GROUP_EVENTS_TABLE})),
    tuple(sorted(COLUMNAR)),
    tuple(sorted(CHUNKED)),
    tuple(sorted(TABLES)),
)
"""Tables that are made in one pass."""


def named(tables: Sequence[str]) -> str:
    """Return the id of a test of tables."""
    return "-".join(tables) if len(tables) < len(TABLES) else "all"


def work_of(plan: Plan, tables: Iterable[str], options: Options) -> Work:
    """Return the steps that make all columns of tables."""
    return Work(plan, {table: TABLES[table].schema.names for table in tables}, options)


def finished(work: Work, output: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Make the rows of tables of all output rows; group events are made of their items."""
    facts = sum_up(row["body"] for row in output if row["kind"] == "facts")
    items = [row for row in output if row["kind"] == ITEM]
    found = sorted(GroupItem(row["name"], row["at"], row["n"], row["body"]) for row in items)
    if found:
        output = output + [row for made in work.decode_items(found) for row in made.to_pylist()]
    tables: dict[str, list[dict[str, Any]]] = {}
    for table in work.tables:
        finish = Finish(facts, work.plan.sets, None, TABLES[table].schema)
        bodies = [row["body"] for row in output if (row["kind"], row["name"]) == ("rows", table)]
        made = finish(batch for body in bodies for batch in deserialise(body))
        tables[table] = [row for batch in made for row in batch.to_pylist()]
    return tables
