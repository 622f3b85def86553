"""`decode --table --jobs`: several processes write what one process writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkawire.capture.tables import TABLES
from tests.command_server import python
from tests.conftest import FIXTURES
from tests.recordings import own

CAPTURES: Final = FIXTURES / "captures"
PCAPS: Final = sorted(str(path) for path in CAPTURES.glob("*.pcap*"))

COMMAND: Final = """
import os, sys, time
from kafkawire.capture.tables.tasks import making
from kafkawire.errors import CaptureError
from kafkawire_cli import main
from kafkawire_cli.parallel import forked, pool, table_jobs
table_jobs.TASK_BYTES, parent = 3000, os.getpid()
make, submitted = making.Maker.make, []
class Counted(pool.Pool[pool.Task, pool.Result]):
    def submit(self, task):
        submitted.append(super().submit(task))
        return submitted[-1]
def changed(maker, task):
    if os.getpid() != parent:
        IN_WORKER
    return make(maker, task)
making.Maker.make, table_jobs.Pool = changed, Counted
try:
    main.main()
finally:
    if os.getpid() == parent:
        print("submitted", sum(at is not None for at in submitted), file=sys.stderr)
"""
"""The command, with small tasks, and with something that its workers do before each."""


class Ran(NamedTuple):
    """What a command wrote. submitted: the tasks that workers made."""

    exit_code: int
    stdout: str
    stderr: str
    submitted: int


def command(*arguments: str, in_worker: str = "pass") -> list[str]:
    code = COMMAND.replace("IN_WORKER", in_worker)
    return [python(), "-c", code, "decode", *arguments]


def run(*arguments: str, in_worker: str = "pass") -> Ran:
    result = subprocess.run(
        command(*arguments, in_worker=in_worker),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    stderr, _, submitted = result.stderr.rpartition("submitted ")
    return Ran(result.returncode, result.stdout, stderr, int(submitted))


def every_table(to: Path | str, *more: str) -> list[str]:
    return [*(word for name in TABLES for word in ("--table", name)), "-o", str(to), *more]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("jobs", ["2", "4"])
def test_every_table_of_many_files(jobs: str, tmp_path: Path) -> None:
    one = run(*PCAPS, *every_table(tmp_path / "one"))
    several = run(*PCAPS, *every_table(tmp_path / "several", "--jobs", jobs))
    assert (one.exit_code, one.stdout, one.stderr) == several[:3]
    assert several.submitted > 4
    for name in TABLES:
        expected = parquet.read_table(tmp_path / "one" / f"{name}.parquet")
        assert parquet.read_table(tmp_path / "several" / f"{name}.parquet").equals(expected)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".arrow"])
def test_every_format(ending: str, tmp_path: Path) -> None:
    given = str(CAPTURES / "fg-max-v0.11.0.pcap")
    for jobs in ("1", "3"):
        made = run(given, *every_table(tmp_path / f"{jobs}-{{table}}{ending}", "--jobs", jobs))
        assert made.exit_code == 0
    assert made.submitted > 2
    for name in TABLES:
        one, several = (tmp_path / f"{jobs}-{name}{ending}" for jobs in ("1", "3"))
        if ending == ".arrow":
            assert rows(several).equals(rows(one))
        else:
            assert several.read_bytes() == one.read_bytes()


def rows(file: Path) -> pa.Table:
    with pa.ipc.open_file(file) as opened:
        return opened.read_all()


KEPT: Final = ("--table", "messages")
TLS: Final = FIXTURES / "tls" / "kp-tls13-aes128.pcap"


@pytest.mark.parametrize(
    ("capture", "options"),
    [
        (CAPTURES / "kcat-kf.pcap", KEPT),
        (CAPTURES / "kcat-kf.pcap", (*KEPT, "--redact")),
        (CAPTURES / "kcat-kf.pcap", (*KEPT, "--show-secrets")),
        (CAPTURES / "kcat-kf.pcap", (*KEPT, "--filter", "api == Metadata and time > +0.1s")),
        (CAPTURES / "kcat-kf.pcap", (*KEPT, "--bodies", "FetchResponse")),
        (CAPTURES / "kcat-kf.pcap", (*KEPT, "--bodies", "FetchRequest", "--filter", "size < 90")),
        (CAPTURES / "kcat-kf--z.pcap.gz", KEPT),
        (CAPTURES / "kcat-kf--ng.pcapng", KEPT),
        (CAPTURES / "kjs-all.pcap", ("--table", "problems")),
        (CAPTURES / "fg-max-v0.11.0.pcap", ("--table", "connections", "--filter", "packet > 1")),
        (TLS, (*KEPT, "--keylog", str(TLS.with_suffix(".keys")))),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else " ".join(value),
)
def test_rows_on_standard_output(capture: Path, options: tuple[str, ...]) -> None:
    given = (str(capture), *options)
    one, several = run(*given), run(*given, "-j", "2")
    assert several.stdout == one.stdout != ""
    assert several.stderr == one.stderr
    assert several.submitted > 1


@pytest.mark.parametrize(
    ("table", "ending", "jobs", "is_divided"),
    [
        ("exchanges", "parquet", "4", False),
        ("exchanges", "jsonl", "2", True),
        ("messages", "parquet", "2", True),
        ("problems", "parquet", "2", True),
        ("partitions", "parquet", "4", False),
        ("records", "parquet", "4", False),
        ("records", "jsonl", "2", True),
        ("messages", "jsonl", "2", True),
    ],
)
def test_a_table_is_divided_if_that_is_faster(
    table: str, ending: str, jobs: str, is_divided: bool, tmp_path: Path
) -> None:
    to = str(tmp_path / f"{table}.{ending}")
    made = run(str(CAPTURES / "kcat-kf.pcap"), "--table", table, "-o", to, "-j", jobs)
    assert (made.exit_code, made.submitted > 0) == (0, is_divided)


def test_a_stream_is_read_by_one_process(tmp_path: Path) -> None:
    capture = CAPTURES / "kcat-kf.pcap"
    made = subprocess.run(
        command("-", *every_table(tmp_path, "-j", "2")),
        input=capture.read_bytes(),
        capture_output=True,
        check=True,
        timeout=200,
    )
    assert b"submitted 0" in made.stderr
    assert parquet.read_table(tmp_path / "messages.parquet").num_rows > 0


def test_rotated_files_are_one_capture(tmp_path: Path) -> None:
    files = [str(path) for path in own("mixed-a--rot?.pcap")]
    for jobs in ("1", "3"):
        made = run(*files, *every_table(tmp_path / jobs, "--jobs", jobs))
    assert made.submitted > 0
    for name in TABLES:
        one, more = (parquet.read_table(tmp_path / jobs / f"{name}.parquet") for jobs in ("1", "3"))
        assert more.equals(one)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_that_is_no_capture(jobs: str, tmp_path: Path) -> None:
    (tmp_path / "notes.pcap").write_bytes(b"no capture at all")
    given = [PCAPS[0], str(tmp_path / "notes.pcap"), "--table", "exchanges", "-j", jobs]
    made = run(*given)
    assert made.exit_code == 2
    assert "notes.pcap: not a capture" in made.stderr
    assert made.stdout.count("\n") > 3


CAPTURE: Final = str(CAPTURES / "kcat-kf.pcap")


def test_an_error_of_a_worker_is_that_of_the_command() -> None:
    broken = 'raise CaptureError("vanished", 7)'
    made = run(CAPTURE, "--table", "messages", "-j", "2", in_worker=broken)
    assert made.exit_code == 2
    assert made.stderr == f"kafkawire decode: {CAPTURE}: vanished (at byte 7)\n"


def test_a_worker_that_dies_is_reported() -> None:
    made = run(CAPTURE, "--table", "messages", "-j", "2", in_worker="os._exit(5)")
    assert made.exit_code == 2
    assert made.stderr == (
        "kafkawire decode: --jobs: worker process exited with 5; rows are missing\n"
    )


def test_results_larger_than_the_shared_memory() -> None:
    small = "forked.RECEIVED_BYTES = table_jobs.SHARED_BYTES = 20_000\nmake, submitted"
    code = COMMAND.replace("make, submitted", small, 1).replace("IN_WORKER", "pass")
    arguments = [*PCAPS, "--table", "messages"]
    made = subprocess.run(
        [python(), "-c", code, "decode", *arguments, "-j", "3"],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert made.stdout == run(*arguments).stdout


def test_a_closed_pipe_and_a_full_disk() -> None:
    given = f"{sys.executable} -m kafkawire_cli.main decode {' '.join(PCAPS)} --table messages -j 2"
    left = subprocess.run(
        ["sh", "-c", f"{given} | head -n 1"], capture_output=True, check=False, timeout=100
    )
    assert (left.stdout.count(b"\n"), left.stderr) == (1, b"")
    with open("/dev/full", "wb") as full:
        made = subprocess.run(
            given.split(), stdout=full, stderr=subprocess.PIPE, check=False, timeout=100
        )
    assert made.returncode == 2
    assert made.stderr == b"kafkawire decode: output: No space left on device\n"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_full_disk_of_the_thread_that_writes(ending: str, tmp_path: Path) -> None:
    to = tmp_path / f"exchanges.{ending}"
    to.symlink_to("/dev/full")
    one, two = (run(*PCAPS, "--table", "exchanges", "-o", str(to), "-j", n) for n in ("1", "2"))
    assert two == one
    assert (two.exit_code, two.stdout) == (2, "")
    assert "No space left on device" in two.stderr


INTERRUPTING: Final = """
import os, signal, time
from kafkawire_cli.input.captures import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
opened, read, command = [], interrupts._Blocks.blocks, os.getpid()
def is_first():
    try:
        os.mkdir(NOTED)
    except FileExistsError:
        return False
    return True
def interrupting(blocks):
    opened.append(blocks)
    for block in read(blocks):
        if len(opened) == LAST and is_first():
            os.kill(command, signal.SIGINT)
            time.sleep(0.5)
        yield block
interrupts._Blocks.blocks = interrupting
"""
"""Interrupts the command while one of its processes reads its file of that number: once, as a
second interrupt ends it at once. The first process is the one that makes the directory."""


def interrupting(last: int, folder: Path) -> str:
    """Return INTERRUPTING for the file of that number, with a directory in a folder."""
    noted = repr(str(folder / "noted"))
    return INTERRUPTING.replace("LAST", str(last)).replace("NOTED", noted)


@pytest.mark.parametrize(
    "form",
    [
        ["--table", "messages"],
        ["--table", "messages", "-j", "2"],
        ["-j", "2"],
        ["-j", "5"],
    ],
    ids=" ".join,
)
def test_an_interrupt_ends_the_captures(form: list[str], tmp_path: Path) -> None:
    given = [*PCAPS, *form]
    whole = run(*given).stdout.splitlines()
    last = 1 if "5" in form else 3
    code = interrupting(last, tmp_path) + COMMAND.replace("IN_WORKER", "pass")
    made = subprocess.run(
        [python(), "-c", code, "decode", *given],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    rows = made.stdout.splitlines()
    assert made.returncode == 130
    assert 10 < len(rows) < len(whole)
    assert set(rows) < set(whole)
    assert "Traceback" not in made.stderr
    if "--table" in form:
        assert "interrupted after " in made.stderr


@pytest.mark.timeout(100)
def test_a_second_interrupt_ends_all_processes() -> None:
    arguments = [CAPTURE, "--table", "messages", "-j", "2"]
    sleeps = "print('started', file=sys.stderr, flush=True); time.sleep(100)"
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    interruptible = command(*arguments, in_worker=sleeps)
    interruptible[0] = sys.executable  # in a process group of its own
    interruptible[2] = code + interruptible[2]
    with subprocess.Popen(
        interruptible,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline() == "started\n"
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.5)
        process.stdout.read()  # the end comes when the last process that could write has exited
        assert process.wait() == 130
        assert "Traceback" not in process.stderr.read()
