"""`decode --jobs`: several processes print what one process prints."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kafkawire.capture.multifile import Traffic
from kafkawire_cli.input.inputs import InputError
from kafkawire_cli.input.sources import Known
from kafkawire_cli.parallel.jobs import combined, decoded
from kafkawire_cli.parallel.pool import Pool
from kafkawire_cli.parallel.row_batches import Batch, DecodeOptions
from kafkawire_cli.render.messages import Shape, View
from tests.capture import truth
from tests.cli.verbs.test_decode import run
from tests.command_server import python
from tests.conftest import FIXTURES
from tests.recordings import own, recording

CAPTURES: Final = FIXTURES / "captures"
PCAPS: Final = sorted(str(path) for path in CAPTURES.glob("*.pcap*"))

COMMAND: Final = """
import sys
from kafkawire_cli.parallel import jobs, pool, row_batches
from kafkawire_cli import main
row_batches.BATCH_ROWS, jobs.BATCH_ROWS, jobs.BATCHES_AHEAD = 7, 7, 2
submit = pool.Pool.submit
submitted = []
pool.Pool.submit = (
    lambda *task: submitted.append(submit(*task)) or submitted[-1]
)
try:
    main.main()
finally:
    print("submitted", len(submitted) - submitted.count(None), file=sys.stderr)
"""
"""The command, with batches so small that there are many of few rows, and counting them."""


class Ran(NamedTuple):
    """What a command with --jobs printed. submitted: batches, or files, that the workers printed,
    at least as many as may be queued for them.
    """

    exit_code: int
    stdout: str
    stderr: str
    submitted: int


def with_jobs(*arguments: str) -> Ran:
    command = [python(), "-c", COMMAND, "decode", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    stderr, _, submitted = result.stderr.rpartition("submitted ")
    return Ran(result.returncode, result.stdout, stderr, int(submitted))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["jsonl", "tree", "table"])
def test_several_files_come_out_in_order(form: str) -> None:
    given = (*PCAPS, "--format", form, "--records")
    alone, both = run(*given), with_jobs(*given, "--jobs", "2")
    assert both.stdout == alone.stdout
    assert both.exit_code == alone.exit_code == 0
    assert both.submitted >= 2


@pytest.mark.timeout(600)
def test_many_files_come_out_in_order() -> None:
    alone, many = run(*PCAPS, "--records"), with_jobs(*PCAPS, "--records", "--jobs", "5")
    assert many.stdout == alone.stdout
    assert many.submitted == len(PCAPS) > 5


class Started(Exception):
    """Workers would be started."""


@pytest.mark.parametrize(
    ("jobs", "files", "workers"),
    [(2, 1, 1), (3, 1, 2), (16, 1, 2), (16, 3, 2), (2, 9, 1), (4, 9, 4), (16, 5, 5)],
)
def test_as_many_workers_as_have_something_to_do(
    jobs: int, files: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader keeps two others busy; or each has a file."""

    def start(_: object, count: int, *__: object, **___: object) -> None:
        raise Started(count)

    monkeypatch.setattr(Pool, "__init__", start)
    options = DecodeOptions(Shape.JSONL, View(), None, Known([], []))
    with pytest.raises(Started) as started:
        list(decoded([Path("x")] * files, options, jobs))
    assert started.value.args == (workers,)


def test_small_batches_are_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task has TASK_BYTES of messages, or BATCH_ROWS, or what was read before a fault."""
    path = CAPTURES / "kcat-kf.pcap"
    items = [item for batch in Traffic([path]).item_batches() for item in batch][:90]
    given = [Batch(items[at : at + 4], 7, at) for at in range(0, len(items), 4)]

    def faulty() -> Iterator[Batch]:
        yield from given
        raise InputError("fault")

    whole: list[Batch] = []
    with pytest.raises(InputError, match="fault"):
        whole.extend(combined(faulty()))
    assert whole == [Batch(items, 7, 0)]
    monkeypatch.setattr("kafkawire_cli.parallel.jobs.BATCH_ROWS", 8)
    assert [len(batch.items) for batch in combined(given)] == [8] * 11 + [2]
    assert [batch.previous_ns for batch in combined(given)] == list(range(0, 90, 8))
    monkeypatch.setattr("kafkawire_cli.parallel.jobs.TASK_BYTES", 1)
    assert list(combined(given)) == given
    assert list(combined([given[0], given[1]._replace(first_ns=8)])) == [
        given[0],
        given[1]._replace(first_ns=8),
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["fg-max-v0.11.0.pcap", "kcat-kf--loss.pcap", "ck-848.pcap"])
def test_one_file_comes_out_in_order(name: str) -> None:
    given = (str(CAPTURES / name), "--format", "jsonl", "--records", "--strict")
    alone, both = run(*given), with_jobs(*given, "-j", "3")
    assert both.stdout == alone.stdout
    assert both.exit_code == alone.exit_code == int("loss" in name)
    assert both.submitted >= 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize("jobs", ["2", "4"])
def test_filters_hold_in_every_process(jobs: str) -> None:
    given = [*PCAPS, "--filter", "latency > 10ms and topic ~ '*' or error != NONE"]
    alone, both = run(*given), with_jobs(*given, "--jobs", jobs)
    assert alone.stdout.count("\n") > 20
    assert both.stdout == alone.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("jobs", ["2", "4"])
def test_an_invalid_capture_is_reported_as_with_one_process(jobs: str, tmp_path: Path) -> None:
    (tmp_path / "notes.pcap").write_bytes(b"no capture at all")
    given = [PCAPS[0], str(tmp_path / "notes.pcap"), *PCAPS[1:4], "--input-format", "capture"]
    alone, both = run(*given), with_jobs(*given, "--jobs", jobs)
    assert alone.exit_code == both.exit_code == 2
    assert both.stdout == alone.stdout
    assert both.stderr == alone.stderr
    missing = with_jobs(str(tmp_path / "none.pcap"), "--jobs", jobs)
    assert missing.exit_code == 2
    assert "none.pcap: No such file" in missing.stderr


@pytest.mark.timeout(600)
@pytest.mark.parametrize("more", [("--strict",), ("--table", "messages")], ids=" ".join)
@pytest.mark.parametrize("jobs", ["2", "4"])
def test_a_truncated_capture_is_reported_as_with_one_process(
    jobs: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    whole = (CAPTURES / "kcat-kf.pcap").read_bytes()
    for at, cut in enumerate((len(whole) // 2, len(whole) - 5, len(whole) // 3)):
        (tmp_path / f"{at}.pcap").write_bytes(whole[:cut])
    captures = [*map(str, sorted(tmp_path.iterdir())), PCAPS[0], *more]
    alone, both = run(*captures), with_jobs(*captures, "--jobs", jobs)
    assert both.stdout == alone.stdout != ""
    assert (both.exit_code, both.stderr) == (alone.exit_code, alone.stderr) != (0, "")


@pytest.mark.parametrize("jobs", ["2", "4"])
def test_a_closed_pipe_and_a_full_disk(jobs: str) -> None:
    command = f"{sys.executable} -m kafkawire_cli.main decode {CAPTURES}/*.pcap -f jsonl -j {jobs}"
    left = subprocess.run(
        ["sh", "-c", f"{command} | head -n 1"], capture_output=True, check=False, timeout=60
    )
    assert (left.stdout.count(b"\n"), left.stderr) == (1, b"")
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            command.split(), stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert result.returncode == 2
    assert result.stderr == b"kafkawire decode: output: No space left on device\n"


def test_one_process_is_used_if_output_cannot_be_shared() -> None:
    assert run(PCAPS[0], "--jobs", "2").stdout == run(PCAPS[0]).stdout  # into a buffer of its own


@pytest.mark.parametrize("name", ["kcat-kf", "mixed-a"])
def test_rotated_files_are_one_capture(name: str) -> None:
    parts = own(f"{name}--rot?.pcap")
    rows_of_truth = truth.lines(recording(f"{name}--rot.truth.jsonl.gz"))
    result = run("--rotated", *map(str, reversed(parts)), "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    positions = [(row["capture"], row["packet"], row["length"]) for row in rows]
    assert positions == [
        (str(parts[row["file"]]), row["frame"], row["len"]) for row in rows_of_truth
    ]
    bodies = [row["body"] for row in rows]
    whole = run(str(recording(f"{name}.pcap")), "--format", "jsonl")
    assert bodies == [json.loads(line)["body"] for line in whole.stdout.splitlines()]


def test_invalid_uses_of_rotated_are_refused() -> None:
    assert run("--rotated", *PCAPS, "--jobs", "2").exit_code == 2
    assert run("--rotated", "0267000000").exit_code == 2
