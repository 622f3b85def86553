"""The output of a watch is checked against its commit log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkawire.spark import check
from kafkawire.spark.watch.commit_log import Commit, CommitLog, CommittedFile
from kafkawire.spark.write.output_directory import OutputRefused
from tests.cli.reports import run

TABLES = ("exchanges", "records")


def watched(output: Path, batches: int = 2, published: bool = True) -> Path:
    """Let a watch commit batches of three exchanges and no record."""
    with CommitLog(output, TABLES) as log:
        for number in range(batches):
            folder = log.stage(number)
            parquet.write_table(pa.table({"n": [1, 2, 3]}), folder / "written" / "part-1.parquet")
            log.ready(folder, {"part-1.parquet": "exchanges"})
            files = (CommittedFile(f"{number}.pcap", 1, 2, 3),)
            rows = {"exchanges": 3, "records": 0}
            token = folder.name
            log.commit(
                Commit(number, False, files, rows, token, token, 0, 4, (3, files[0].name), {})
            )
            if published or number + 1 < batches:
                log.publish()
    return output


def reasons(output: Path) -> dict[str, str]:
    return {each.name: each.reason for each in check(str(output)).differences}


def test_what_a_watch_wrote_is_as_committed(tmp_path: Path) -> None:
    assert check(str(watched(tmp_path))) == (2, 6, [])
    result = run("spark", "--check", "--output", tmp_path)
    assert result.exit_code == 0
    assert "2 files, 6 rows, as in the commit log" in result.stdout


def test_differences_are_named(tmp_path: Path) -> None:
    watched(tmp_path, 4)
    (tmp_path / "exchanges" / "batch=0" / "part-1.parquet").unlink()
    parquet.write_table(pa.table({"n": [1]}), tmp_path / "exchanges" / "batch=1" / "part-1.parquet")
    (tmp_path / "exchanges" / "batch=2" / "part-1.parquet").write_bytes(b"PAR1")
    (tmp_path / "exchanges" / "batch=9").mkdir()
    found = reasons(tmp_path)
    assert found.pop("exchanges/batch=2").startswith("part-1.parquet is not readable: ")
    assert found == {
        "exchanges/batch=0": "missing",
        "exchanges/batch=1": "1 rows, not 3",
        "exchanges/batch=9": "not in the commit log",
    }
    result = run("spark", "--check", "--output", tmp_path)
    assert result.exit_code == 1
    assert "exchanges/batch=0: missing" in result.stdout


def test_a_batch_that_is_not_published_yet_is_named(tmp_path: Path) -> None:
    watched(tmp_path, published=False)
    assert reasons(tmp_path) == {"exchanges/batch=1": "committed, not published yet"}


def test_a_watch_without_commits_or_with_unreadable_ones_is_refused(tmp_path: Path) -> None:
    watched(tmp_path, 0)
    with pytest.raises(OutputRefused, match="committed nothing yet"):
        check(str(tmp_path))
    (tmp_path / "_watch" / "commits" / "00000000.json").write_text('{"files": []}')
    with pytest.raises(OutputRefused, match="not readable"):
        check(str(tmp_path))
    assert run("spark", "--check", "--output", tmp_path).exit_code == 2
