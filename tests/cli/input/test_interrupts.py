"""Ctrl-C while a report reads captures: it shows what was read until then, and exits with 130."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kafkawire.capture.files.source import Watch, read_capture
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located
from kafkawire_cli.input.captures.interrupts import InterruptibleTraffic, Interrupts, interrupts
from tests.cli.reports import COMMAND, report, run
from tests.conftest import FIXTURES

CAPTURE: Final = FIXTURES / "captures" / "ck-group-range.pcap"
REPORTS: Final = ("summary", "latency", "topics", "clients", "groups")


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let commands be interrupted, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(verb: str, data: bytes, *, ends: bool = False) -> tuple[int, str, str]:
    """Run a report on a pipe that stays open, and interrupt it while it waits."""
    pipe = subprocess.PIPE
    command = [*COMMAND, verb, "-", "--format", "json"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(data)
        until_it_waits(running.pid)
        running.send_signal(signal.SIGINT)
        if ends:
            running.stdin.close()
        out, error = running.stdout.read(), running.stderr.read()
        return running.wait(60), out.decode(), error.decode()


def until_it_waits(process: int) -> None:
    """Wait until a process has read its pipe empty and waits for more."""
    for _ in range(600):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        read = Path(f"/proc/{process}/io").read_text().split("rchar: ")[1].split()[0]
        if state == "S" and int(read) > CAPTURE.stat().st_size:
            time.sleep(0.3)
            return
        time.sleep(0.1)
    raise AssertionError("the command does not wait for its input")


def test_a_report_on_a_pipe_shows_what_it_has() -> None:
    code, out, error = interrupted("summary", CAPTURE.read_bytes())
    assert code == 130
    assert error == "kafkawire summary: interrupted after 465 packets: the report covers these\n"
    found, whole = json.loads(out), report("summary", CAPTURE)
    assert [one.pop("first")["file"] for one in found["problems"]] == ["-"]
    problems = [{**one, "first": None} for one in whole["problems"]]
    assert [{**one, "first": None} for one in found.pop("problems")] == problems
    assert found == {key: whole[key] for key in found} | {"captures": ["-"]}


def test_a_packet_that_was_cut_is_no_problem_of_the_capture() -> None:
    code, out, _ = interrupted("summary", CAPTURE.read_bytes()[:-10], ends=True)
    assert code == 130
    assert {one["kind"] for one in json.loads(out)["problems"]} == {"lenient"}


class Interrupting:
    """Interrupts after so many packets."""

    def __init__(self, noted: Interrupts, packets: int) -> None:
        self._noted = noted
        self._left = packets

    def __call__(self, _: int, packets: int) -> None:
        self._left -= packets
        if self._left <= 0 and not self._noted.requested:
            self._noted.handle()


def test_files_end_at_an_interrupt_between_two_blocks() -> None:
    noted = Interrupts()
    watch: Watch = Interrupting(noted, 1)
    files = [CAPTURE, FIXTURES / "captures" / "kcat-kf.pcap"]
    reader = InterruptibleTraffic.of(Traffic(files, watch=watch), noted)
    first = next(iter(read_capture(reader.sources[0])))
    found = list(reader)
    assert found
    files_read = {reader.place(one.row.packet)[0] for one in found if isinstance(one, Located)}
    assert files_read == {str(reader.sources[0])}
    assert len(first) > 0
    assert list(reader.again()) == [], "an interrupt ends the second pass, too"


@pytest.mark.parametrize("verb", REPORTS)
def test_every_report_ends_so(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupts, "requested", True)
    result = run(verb, CAPTURE)
    assert result.exit_code == 130, result.output
    assert "interrupted after 0 packets" in result.stderr
    assert " found.\n" in result.stdout or result.stdout == "" or verb == "summary"


def test_the_second_interrupt_ends_the_command() -> None:
    with interrupts() as noted:
        signal.raise_signal(signal.SIGINT)
        assert noted.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts() as noted:
        signal.raise_signal(signal.SIGINT)
        assert not noted.requested
