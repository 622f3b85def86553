"""What `make bench` prints and keeps: a suite run once; figures, with where they are from. Two
commits compared, and a case profiled.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import builds, compare, failover, measure, report, startup
from benchmarks.clients import records as clients
from benchmarks.jobs import run as run_jobs
from benchmarks.measure import figure
from benchmarks.profile import CODEC_TURNS
from benchmarks.tables.columns import run as run_tables
from kafkawire.primitives import writer

from .conftest import ROOT, missing

CODEC_CASES = 8


@pytest.fixture(autouse=True)
def _no_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each measurement it would visit the objects of all tests, which takes a second."""
    monkeypatch.setattr("benchmarks.measure.gc", SimpleNamespace(collect=lambda: 0))


def test_a_suite_prints_its_tables_and_keeps_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.measure.LOOP_SECONDS", 0.001)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "codec", "--rounds", "1"])
    command.main()
    printed = capsys.readouterr().out
    assert printed.count("geometric mean") == 2  # decode, encode
    [path] = tmp_path.iterdir()
    kept = json.loads(path.read_text())
    where = kept["environment"]
    assert {"processor", "cpus", "system", "python", "revision", "taken"} <= set(where)
    assert all(where[package] for package in ("kafkawire", "kio", "kafka-python", "mypy"))
    rows = kept["figures"]
    assert len({row["case"] for row in rows}) == CODEC_CASES
    assert {row["contender"] for row in rows} == {"kafkawire", "kio", "kafka-python"}
    assert all(0 < row["low"] <= row["median"] <= row["high"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nope"], "unknown suite nope"), (["codec", "--rounds", "0"], "without a round")],
)
def test_what_cannot_be_measured(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_a_table_divides_by_the_first() -> None:
    figures = [
        figure("decode", case, contender, "µs", [value])
        for case, contender, value in (
            ("a", "ours", 1.0), ("a", "theirs", 2.0), ("b", "ours", 2.0), ("b", "theirs", 16.0)
        )
    ]  # fmt: skip
    last = report.table(figures).splitlines()[-1]
    assert last.split() == ["geometric", "mean", "4.00"]


def test_a_table_shows_how_far_rounds_lie_apart() -> None:
    figures = [
        figure("decode", "a", contender, "µs", values)
        for contender, values in (("ours", [1.0, 3.0, 2.0]), ("theirs", [4.0, 8.0, 4.5]))
    ]
    _, line = report.table(figures).splitlines()
    assert line.split() == ["a", "2.00", "(1.00-3.00)", "4.50", "(4.00-8.00)", "2.25"]


def test_each_contender_comes_first_as_often_as_the_others() -> None:
    calls: list[str] = []
    contenders = {name: partial(calls.append, name) for name in "abc"}
    measure.interleave("suite", "case", contenders, 3)
    assert calls[-1] == "b"  # the third round begins with c
    orders = [measure.rotated("abc", turn) for turn in range(6)]
    for place in range(3):
        assert Counter(order[place] for order in orders) == {"a": 2, "b": 2, "c": 2}


def test_clients_take_turns_in_all_that_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """In who writes first, who reads first, and whose batches are read."""
    done: list[tuple[str, str, str]] = []

    def contender(kind: str, name: str) -> Callable[[str, str, object, object], None]:
        return lambda _, topic, *__: done.append((kind, name, topic))

    def reader(name: str) -> Callable[[str, str, int], None]:
        return lambda _, topic, __: done.append(("read", name, topic))

    for kind, table in (("send", clients.SENDERS), ("read", clients.READERS)):
        for name in table:
            monkeypatch.setitem(
                table, name, contender(kind, name) if kind == "send" else reader(name)
            )
    topics = map(str, count())
    monkeypatch.setattr(clients, "_topic", lambda _: next(topics))
    monkeypatch.setattr(clients, "_delete", lambda *_: None)
    first: dict[str, Counter[str]] = {"send": Counter(), "read": Counter(), "written by": Counter()}
    for turn in range(len(clients.SENDERS) ** 2):
        done.clear()
        clients._turn("", b"", 1, turn)
        sent = [(name, topic) for kind, name, topic in done if kind == "send"]
        read = [(name, topic) for kind, name, topic in done if kind == "read"]
        assert {name for name, _ in sent} == {name for name, _ in read} == set(clients.SENDERS)
        [topic] = {topic for _, topic in read}
        first["send"][sent[0][0]] += 1
        first["read"][read[0][0]] += 1
        first["written by"][next(name for name, each in sent if each == topic)] += 1
    even = dict.fromkeys(clients.SENDERS, len(clients.SENDERS))
    assert first == {"send": even, "read": even, "written by": even}


def test_tables_cost_what_their_columns_cost_and_more() -> None:
    """Both write the same rows with each codec; ours has the capture to read besides."""
    figures = run_tables(1, megabytes=1, traffic=["calls"])
    assert {(one.case.rpartition(" ")[2], one.contender) for one in figures} == {
        (codec, contender)
        for codec in ("zstd", "snappy", "none")
        for contender in ("pyarrow alone", "kafkawire")
    }
    assert all(one.low > 0 for one in figures)


@pytest.mark.timeout(120)
def test_the_demo_is_timed_in_a_clone_that_has_nothing_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spent(command: list[str], *, cwd: Path, **_: object) -> builds.Spent:
        assert command == ["make", "demo"]
        assert (cwd / "Makefile").is_file()
        assert not (cwd / ".venv").exists()
        return builds.Spent(clock=47.0, processor=15.0)

    monkeypatch.setattr(builds, "spent", spent)
    figures = [(each.case, each.contender, each.median) for each in builds.run([builds.DEMO])]
    assert figures == [("make demo", "clock", 47.0), ("make demo", "processor", 15.0)]


def test_what_is_lost_doubled_or_visible_is_counted() -> None:
    commits = [
        failover.Commit(1.0, (b"a", b"b")),
        failover.Commit(4.0, (b"c", b"d")),
        failover.Commit(7.5, (b"e",)),
    ]
    seen = failover.outcome(0.0, 6.0, commits, [b"a", b"b", b"b", b"d", b"e", b"aborted"])
    assert seen == failover.Outcome(records=4, pause=3.0, lost=1, doubled=1, visible=1)


def test_packages_that_an_extra_adds_are_measured() -> None:
    megabytes = {each.case: each.median for each in builds.run([builds.EXTRAS])}
    assert not {"kafkawire: pyarrow", "kafkawire: pytest"} & megabytes.keys()
    assert megabytes["kafkawire[spark]: pyspark"] > megabytes["kafkawire: numpy"] > 10
    of_spark = [size for case, size in megabytes.items() if case.startswith("kafkawire[spark]: ")]
    assert sum(of_spark) == pytest.approx(megabytes["kafkawire[spark]"])


@pytest.mark.parametrize("failing", [False, True])
def test_what_is_timed_is_a_first_test_that_passes(failing: bool) -> None:
    script = startup.SCRIPTS["pytest, a first test with a broker"]
    if failing:
        with pytest.raises(AssertionError, match="ended with 1"):
            startup.milliseconds(script.replace('== [b"apples"]', "== []"))
    else:
        assert min(startup.milliseconds(script)) > 0


def test_processes_that_share_work_print_the_same_when_they_are_measured() -> None:
    figures = run_jobs(1, megabytes=3, traffic=["calls"])
    # one capture and several, two forms, clock and processor
    assert Counter(one.contender for one in figures) == {
        "--jobs 1": 8,
        "--jobs 2": 8,
        "two commands": 4,
    }


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks.compare", *arguments])
    compare.main()


@pytest.mark.timeout(240)
def test_two_commits_are_built_and_measured_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (ROOT / ".git").exists():
        missing("a checkout with its commits")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setenv("KAFKAWIRE_COMPILE", "off")  # two builds in seconds
    base = "HEAD^{tree}"  # the same files by another name
    call(monkeypatch, base, "--rounds", "1")
    printed = capsys.readouterr().out
    heads = [line.split(maxsplit=1) for line in printed.splitlines() if f"{base} / HEAD" in line]
    assert [suite for suite, _ in heads] == ["decode", "encode"]
    assert printed.count("geometric mean") == 2
    assert f"above 1: HEAD is faster than {base}" in printed
    [path] = tmp_path.iterdir()
    rows = json.loads(path.read_text())["figures"]
    assert len({row["case"] for row in rows}) == CODEC_CASES
    assert len(rows) == 2 * 2 * CODEC_CASES
    assert {row["contender"] for row in rows} == {"HEAD", base}


def test_what_is_measured_is_the_build_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="is not the build in"):
        compare.measure(str(tmp_path))


@pytest.mark.parametrize(
    ("revisions", "said"), [((), "BASE is missing"), (("HEAD",), "both are HEAD")]
)
def test_a_comparison_is_of_two_commits(
    revisions: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        call(monkeypatch, *revisions)
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", [["-m", "benchmarks.profile"], ["benchmarks/profile.py"]])
def test_a_profile_names_functions_with_their_shares(way: list[str]) -> None:
    part = 0.2
    requested = [sys.executable, *way, "encode", "--part", str(part)]
    ran = subprocess.run(
        requested, cwd=ROOT, capture_output=True, text=True, check=True, timeout=200
    )
    by_c, _, by_python = ran.stdout.partition("function calls")
    libraries = re.findall(r"^ +\d+\.\d\d%  (\S+) *$", by_c, re.MULTILINE)
    functions = re.findall(r"^ +\d+\.\d\d%  \S+ +\[[.k]\] \S+", by_c, re.MULTILINE)
    native = Path(writer.__file__).suffix in (".so", ".pyd")
    if "perf cannot be used here" in by_c:
        assert libraries == functions == []
    else:
        assert functions
        assert any(name.startswith("kafkawire__mypyc") for name in libraries) == native
    calls = round(CODEC_TURNS * part) * CODEC_CASES
    encode = re.search(rf"^ +{calls} +\d+\.\d+ .*\bencode\b", by_python, re.MULTILINE)
    assert encode is not None
