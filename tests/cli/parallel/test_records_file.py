"""`decode --table records --jobs`: a process of its own writes the file that one process writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path
from typing import Final

import pytest
from pyarrow import parquet

from kafkawire.records import BatchBuilder
from tests.capture.written import Scenario
from tests.command_server import python

from .test_table_jobs import CAPTURE, PCAPS, interrupting, rows

TABLES: Final = ("exchanges", "partitions", "records")
TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAKg"

COMMAND: Final = """
import os, sys, time
from kafkawire.capture.tables.arrow import record_columns
from kafkawire.errors import CaptureError
from kafkawire_cli import main
from kafkawire_cli.parallel import records_file
record_columns.FIELD_BYTES, parent = 1000, os.getpid()
batches, write = records_file._batches, records_file._RecordsProcess.write
written = []
def counted(process, fields):
    written.append(len(fields))
    write(process, fields)
def changed(*given):
    IN_PROCESS
    yield from batches(*given)
records_file._batches, records_file._RecordsProcess.write = changed, counted
IN_COMMAND
try:
    main.main()
finally:
    if os.getpid() == parent:
        print("written", len(written), file=sys.stderr)
"""
"""The command, with few fields at a time, and with something that the process does before each."""


def command(*arguments: str, in_process: str = "pass", in_command: str = "pass") -> list[str]:
    code = COMMAND.replace("IN_PROCESS", in_process).replace("IN_COMMAND", in_command)
    return [python(), "-c", code, "decode", *arguments]


def run(
    *arguments: str, in_process: str = "pass", in_command: str = "pass"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, in_process=in_process, in_command=in_command),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def to(folder: Path, *more: str, tables: tuple[str, ...] = TABLES) -> list[str]:
    return [*(word for name in tables for word in ("--table", name)), "-o", str(folder), *more]


@pytest.mark.parametrize("jobs", ["2", "3"])
@pytest.mark.parametrize("tables", [TABLES, ("records",)], ids=" ".join)
def test_the_files_are_those_of_one_process(
    tables: tuple[str, ...], jobs: str, tmp_path: Path
) -> None:
    one = run(*PCAPS, *to(tmp_path / "one", tables=tables))
    two = run(*PCAPS, *to(tmp_path / "two", "--jobs", jobs, tables=tables))
    assert (one.returncode, one.stdout, one.stderr) == (0, "", "written 0\n")
    assert (two.returncode, two.stdout) == (0, "")
    assert int(two.stderr.removeprefix("written ")) > 10
    for name in tables:
        written = [(tmp_path / each / f"{name}.parquet").read_bytes() for each in ("one", "two")]
        assert written[0] == written[1]


def test_an_arrow_file(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        made = run(*PCAPS, "--table", "records", "-o", str(tmp_path / f"{jobs}.arrow"), "-j", jobs)
        assert made.returncode == 0
    assert rows(tmp_path / "2.arrow").equals(rows(tmp_path / "1.arrow"))
    assert rows(tmp_path / "2.arrow").num_rows > 100


@pytest.mark.parametrize("secrets", [[], ["--show-secrets"]])
def test_secrets_of_the_metadata_topic(secrets: list[str], tmp_path: Path) -> None:
    renamed = "record_columns.is_metadata_topic = record_columns.is_metadata = lambda _: True"
    for jobs in ("1", "2"):
        arguments = to(tmp_path / jobs, *secrets, "-j", jobs, tables=("records",))
        assert run(*PCAPS, *arguments, in_command=renamed).returncode == 0
    one, two = (parquet.read_table(tmp_path / jobs / "records.parquet") for jobs in ("1", "2"))
    assert one.equals(two)
    values = one.column("value").to_pylist()
    assert any(value and value.startswith(b"(redacted") for value in values) == (not secrets)


def test_a_topic_named_after_its_records(tmp_path: Path) -> None:
    """Fields are passed on before the capture states the name of their topic."""
    builder = BatchBuilder()
    builder.append(b"key", b"value", 1)
    records = b64encode(builder.build()).decode()
    found = [{"partitionIndex": 0, "highWatermark": 1, "records": records}]
    scenario = Scenario()
    topics = [{"topicId": TOPIC_ID, "partitions": [{"partition": 0}]}]
    scenario.request("Fetch", 13, topics=topics)
    scenario.respond("Fetch", 13, responses=[{"topicId": TOPIC_ID, "partitions": found}])
    scenario.request("Metadata", 12)
    scenario.respond("Metadata", 12, topics=[{"name": "orders", "topicId": TOPIC_ID}])
    capture = str(scenario.save(tmp_path / "late.pcap"))
    one_by_one = "from kafkawire.capture.tables import reading; reading.BATCH_ROWS = 1"
    arguments = to(tmp_path / "two", "-j", "2", tables=("records",))
    made = run(capture, *arguments, in_command=one_by_one)
    assert (made.returncode, made.stderr) == (0, "written 1\n")
    table = parquet.read_table(tmp_path / "two" / "records.parquet")
    assert table.column("topic").to_pylist() == ["orders"]
    assert table.column("value").to_pylist() == [b"value"]


def test_an_interrupt_completes_the_file(tmp_path: Path) -> None:
    """The table has the records until then, and the exit code is 130."""
    assert run(*PCAPS, *to(tmp_path / "whole")).returncode == 0
    code = interrupting(8, tmp_path) + command()[2]
    made = subprocess.run(
        [python(), "-c", code, "decode", *PCAPS, *to(tmp_path / "part", "-j", "2")],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert made.returncode == 130
    assert "interrupted after " in made.stderr
    whole, part = (parquet.read_table(tmp_path / x / "records.parquet") for x in ("whole", "part"))
    assert 0 < part.num_rows < whole.num_rows
    assert whole.slice(0, part.num_rows).equals(part)


def test_fields_larger_than_the_shared_memory(tmp_path: Path) -> None:
    small = "records_file.SHARED_BYTES = 8192"
    for jobs in ("1", "2"):
        arguments = to(tmp_path / jobs, "-j", jobs, tables=("records",))
        assert run(*PCAPS, *arguments, in_command=small).returncode == 0
    one, two = ((tmp_path / jobs / "records.parquet").read_bytes() for jobs in ("1", "2"))
    assert one == two


def test_it_waits_while_the_memory_is_full(tmp_path: Path) -> None:
    slow = "time.sleep(0.05)"
    made = run(
        *PCAPS,
        *to(tmp_path / "slow", "-j", "2", tables=("records",)),
        in_process=slow,
        in_command="records_file.SHARED_BYTES = 1 << 15",
    )
    assert made.returncode == 0
    assert run(*PCAPS, *to(tmp_path / "one", tables=("records",))).returncode == 0
    slowly, one = ((tmp_path / each / "records.parquet").read_bytes() for each in ("slow", "one"))
    assert slowly == one


NOTING: Final = """
record_batches = records_file.record_batches
def noted(*given):
    if os.getpid() == parent:
        print("decoded", file=sys.stderr)
    return record_batches(*given)
records_file.record_batches, records_file.TASKS_AHEAD = noted, AHEAD
"""
"""Notes which fields this process decodes."""


@pytest.mark.parametrize(("ahead", "decodes"), [(2, True), (1000, False)])
def test_what_the_process_cannot_keep_up_with_is_decoded_here(
    ahead: int, decodes: bool, tmp_path: Path
) -> None:
    noting = NOTING.replace("AHEAD\n", f"{ahead}\n")
    arguments = to(tmp_path / "two", "-j", "2", tables=("records",))
    two = run(*PCAPS, *arguments, in_process="time.sleep(0.05)", in_command=noting)
    assert two.returncode == 0
    written = int(two.stderr.split()[-1])
    assert (0 < two.stderr.count("decoded") < written) == decodes
    assert run(*PCAPS, *to(tmp_path / "one", tables=("records",))).returncode == 0
    made = [(tmp_path / each / "records.parquet").read_bytes() for each in ("one", "two")]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("in_process", "error"),
    [
        ('raise CaptureError("vanished", 7)', f"{CAPTURE}: vanished (at byte 7)"),
        ("os._exit(5)", "--jobs: worker process exited with 5; rows are missing"),
    ],
    ids=["error", "death"],
)
def test_an_error_of_the_process_is_that_of_the_command(
    in_process: str, error: str, tmp_path: Path
) -> None:
    made = run(CAPTURE, *to(tmp_path, "-j", "2"), in_process=in_process)
    assert made.returncode == 2
    assert made.stderr.splitlines()[-2] == f"kafkawire decode: {error}"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_full_disk(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"records.{ending}"
    file.symlink_to("/dev/full")
    for jobs in ("1", "2"):
        made = run(*PCAPS, "--table", "records", "-o", str(file), "-j", jobs)
        assert (made.returncode, made.stdout) == (2, "")
        assert "No space left on device" in made.stderr
        assert "Traceback" not in made.stderr


@pytest.mark.timeout(100)
def test_a_second_interrupt_ends_both_processes(tmp_path: Path) -> None:
    sleeps = "print('started', file=sys.stderr, flush=True); time.sleep(100)"
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    arguments = to(tmp_path, "-j", "2")
    interruptible = command(CAPTURE, *arguments, in_process=sleeps, in_command=handled)
    interruptible[0] = sys.executable  # in a process group of its own
    with subprocess.Popen(
        interruptible,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started\n"
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.5)
        process.stderr.read()  # the end comes when the last process that could write has exited
        assert process.wait() == 130
