"""The examples of docs/spark.md and docs/guide/spark.md run, and their results are right."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kafkawire.spark import read, submit
from kafkawire.spark.options import SETTERS
from kafkawire.spark.write.output_directory import MANIFEST
from kafkawire_cli.main import app
from tests.conftest import FIXTURES, ROOT
from tests.pages import Playground, blocks, commands

from .conftest import rows_of

PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
CAPTURES = [
    str(FIXTURES / "captures" / name)
    for name in ("ck-848.pcap", "ck-group-range.pcap", "kp22-old-0.9.pcap")
]


CK_TXN = str(FIXTURES / "captures" / "ck-txn.pcap")
BOTH = ["docs/spark.md", "docs/guide/spark.md"]


@pytest.fixture
def playground(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Playground:
    """The folder of the pages, as the working directory of this process and of the session."""
    del spark
    made = Playground(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("incoming", "var/captures"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for number, capture in enumerate(CAPTURES[:2]):
            (folder / f"trace-{number}.pcap").symlink_to(capture)
    return made


def located(path: str, folder: Path) -> str:
    """Put the directories of the pages into a folder: the session began in another one."""
    return re.sub("^(?=/var/|tables/|incoming/)/?", f"{folder}/", path)


def lines(page: str) -> list[list[str]]:
    return [shlex.split(line) for block in blocks(page, "sh") for line, _ in commands(block)]


def test_the_worked_example(spark: SparkSession) -> None:
    start = PAGE.index("## SQL over the tables")
    section = PAGE[start : PAGE.index("## The job")]
    known = {"spark": spark, "read": read}
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(code, "docs/spark.md", "exec"), known)
    slow, rebalances, old = (
        spark.sql(query).collect() for query in re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    )
    exchanges = [row for row in rows_of(CAPTURES, "exchanges") if row["latency_ns"] is not None]
    assert sum(row["requests"] for row in slow) == sum(len(row["topics"]) for row in exchanges)
    assert max(row["p99_ms"] for row in slow) == slow[0]["p99_ms"]
    events = rows_of(CAPTURES, "group_events")
    ended = [row for row in events if row["event"] == "rebalance_ended"]
    assert sum(row["rebalances"] for row in rebalances) == len(ended) > 0
    versions = {
        (used["api_name"], used["api_version"])
        for row in rows_of(CAPTURES, "connections")
        for used in row["versions"]
    }
    found = {(row["api_name"], row["api_version"]) for row in old}
    assert ("Produce", 1) in found
    assert ("FindCoordinator", 0) in versions - found
    assert found <= versions


def test_every_option_is_documented() -> None:
    table = PAGE[PAGE.index("## Options") : PAGE.index("## What is exact")].lower()
    assert [name for name in SETTERS if f"`{name.lower()}`" not in table] == []


@pytest.mark.parametrize("page", BOTH)
def test_commands_write_tables(page: str, playground: Playground) -> None:
    (words,) = [each for each in lines(page) if each[:3] == ["kafkawire", "spark", "captures/"]]
    ran = CliRunner().invoke(app, words[1:])
    assert ran.exit_code == 0, ran.output
    manifest = json.loads((playground.folder / "tables" / MANIFEST).read_text())
    requested = [words[at + 1] for at, word in enumerate(words) if word == "--table"]
    assert list(manifest["tables"]) == requested


@pytest.mark.parametrize("page", BOTH)
def test_a_watch_runs_until_sigterm(page: str, playground: Playground) -> None:
    (words,) = [each for each in lines(page) if "--watch" in each]
    here = [located(word, playground.folder) for word in words]
    commits = playground.folder / "tables" / "_watch" / "commits"
    stopped = threading.Event()

    def stop_after_a_commit() -> None:
        while not stopped.is_set():
            if any(commits.glob("*.json")):
                os.kill(os.getpid(), signal.SIGTERM)
                return
            time.sleep(0.1)

    thread = threading.Thread(target=stop_after_a_commit)
    thread.start()
    try:
        ran = CliRunner().invoke(app, here[1:])
    finally:
        stopped.set()
        thread.join()
    assert ran.exit_code == 0, ran.output
    assert list((playground.folder / "tables" / "exchanges").glob("batch=*"))


@pytest.mark.usefixtures("playground")
def test_python_reads_captures(spark: SparkSession) -> None:
    """The first example of each page; that of the guide stops the session, which others need."""
    for page in BOTH:
        code = blocks(page, "python")[0].text.removesuffix("spark.stop()\n")
        known: dict[str, Any] = {}
        exec(compile(code, page, "exec"), known)
        assert known["spark"].sparkContext is spark.sparkContext
        frame = known.get("frame") or known["exchanges"]
        assert frame.count() > 0


@pytest.mark.parametrize("page", BOTH)
def test_sql_reads_captures(page: str, spark: SparkSession, playground: Playground) -> None:
    statement = blocks(page, "sql")[0].text
    (name,) = re.findall(r"TEMPORARY VIEW (\w+)", statement)
    (table,) = re.findall(r"table '(\w+)'", statement)
    spark.catalog.dropTempView(name)
    spark.sql(statement.replace("'captures/'", f"'{playground.folder}/captures/'"))
    assert spark.table(name).count() == len(rows_of([CK_TXN], table))
    spark.catalog.dropTempView(name)


def test_a_stream_lists_files(spark: SparkSession, playground: Playground) -> None:
    block = blocks("docs/spark.md", "python")[-1]
    code = re.sub(r'"([\w/]+/\w*)"', lambda it: repr(located(it[1], playground.folder)), block.text)
    known: dict[str, Any] = {"spark": spark}
    exec(compile(code, block.page, "exec"), known)
    (query,) = spark.streams.active
    with known["watcher"]:
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert list((playground.folder / "tables" / "connections").glob("batch=*"))


def test_the_manifest_is_as_shown(playground: Playground) -> None:
    payload, verdict = (json.loads(block.text) for block in blocks("docs/spark.md", "json"))
    capture = playground.folder / "captures" / "cut.pcap"
    capture.write_bytes((FIXTURES / "captures" / "ck-txn.pcap").read_bytes()[:-20])
    ran = CliRunner().invoke(app, ["spark", str(capture), "-o", "tables"])
    assert ran.exit_code == 0, ran.output
    manifest = json.loads((playground.folder / "tables" / MANIFEST).read_text())
    assert payload.keys() == manifest["payload"].keys()
    (entry,) = manifest["inputs"]
    assert verdict.keys() == entry.keys()
    assert (verdict["status"], verdict["problems"]) == (entry["status"], entry["problems"])
    assert re.sub(r"\d+", "N", verdict["reason"]) == re.sub(r"\d+", "N", entry["reason"])


def test_spark_submit_gets_options_that_exist(playground: Playground) -> None:
    """tests/spark/test_archive.py runs these lines on a cluster."""
    script, first, second = (
        line
        for block in blocks("docs/spark.md", "sh")
        for line, _ in commands(block)
        if "script" in line
    )
    ran = playground.run(f'{script} && echo "$script"')
    assert Path(ran.stdout.strip()) == Path(submit.__file__)
    given = shlex.split(first)
    parsed = submit.arguments().parse_args(given[given.index("$script") + 1 :])
    assert parsed.table == ["exchanges"]
    assert "--archives" in shlex.split(second)
