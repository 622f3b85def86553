"""`kafkawire top`: rates of the last seconds, on a live screen or as lines."""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import stat
import subprocess
import termios
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from rich.cells import cell_len

from kafkawire.capture.files.packet_offsets import packets
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located
from kafkawire.reports import windows
from kafkawire.reports.diagnosis.diagnosis import Diagnosis
from kafkawire.reports.diagnosis.registry import installed_rules
from kafkawire.reports.diagnosis.rule import Scene
from kafkawire.reports.quantiles import Quantiles
from kafkawire.reports.readiness import dropped_by_kafka
from kafkawire.reports.reading import Reading
from kafkawire.reports.windows import SECOND, SORTS, Rate, Windows, busiest
from kafkawire_cli.input.captures.live import capture_command
from kafkawire_cli.input.captures.progress import Progress
from kafkawire_cli.input.captures.replay import Replay, ReplayedWindows
from kafkawire_cli.render.live import KIND_KEYS, LEAVE, SORT_KEYS, Screen, Size
from tests.capture.written import Scenario
from tests.cli.reports import COMMAND, report, run, terminal
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story

CAPTURE: Final = FIXTURES / "captures" / "ck-group-range.pcap"
LONG: Final = 1000
"""Seconds, more than the capture has."""


def read(path: Path, seconds: int = LONG) -> Windows:
    captures = Reading(Traffic([path]), Progress(1))
    found = Windows(captures, seconds)
    captures.read(found)
    return found


# -- rates


def test_a_long_window_has_all_that_the_reports_have() -> None:
    found = read(CAPTURE)
    elapsed = found._elapsed(found.last_ns)
    calls = {one["api_name"]: one for one in report("latency", CAPTURE)["calls"]}
    rates = {one.name: one for one in found.rates("api", found.last_ns)}
    assert rates.keys() == calls.keys()
    for name, one in rates.items():
        call = calls[name]
        assert round(one.requests * elapsed) == call["requests"]
        assert round(one.errors * elapsed) == call["errors"]
        assert round(one.bytes * elapsed) == call["request_bytes"] + call["response_bytes"]
        assert (one.p50_ns, one.p99_ns) == (call["p50_ns"], call["p99_ns"])
    assert {one.name for one in found.rates("group", found.last_ns)} == {"grp-range"}
    assert {one.name for one in found.rates("topic", found.last_ns)} == {"g-topic"}
    total = found.total(found.last_ns)
    assert round(total.requests * elapsed) == 139
    assert total.in_flight == 0, "connections have ended"


def test_old_seconds_are_forgotten() -> None:
    found = read(CAPTURE, seconds=2)
    assert len(found._slots) <= 3
    assert found.total(found.last_ns).requests > 0
    assert found.total(found.last_ns + 60 * SECOND).requests == 0
    assert found._slots == {}


def test_one_wrong_time_does_not_hide_what_follows(tmp_path: Path) -> None:
    scenario = Scenario()
    for _ in range(20):
        scenario.request("Metadata", 1).respond("Metadata", 1)
    wrong = scenario.packets[9]
    scenario.packets[9] = wrong._replace(time_ns=wrong.time_ns + 10**18)
    found = read(scenario.save(tmp_path / "c.pcap"), seconds=10)
    assert found.last_ns == scenario.packets[-1].time_ns
    assert found.total(found.last_ns).requests > 10


def test_requests_are_in_flight_until_their_response(tmp_path: Path) -> None:
    scenario = Scenario()
    scenario.request("Metadata", 1).respond("Metadata", 1)
    scenario.request("Heartbeat", 3, groupId="g", memberId="m", generationId=1)
    captures = Reading(Traffic([scenario.save(tmp_path / "c.pcap")]), Progress(1))
    found = Windows(captures, 10)
    for item in captures.context.located():
        if isinstance(item, Located):
            found.row(item)
    flying = {kind: dict(counts) for kind, counts in found._flying.items()}
    assert flying["api"] == {"Metadata": 1, "Heartbeat": 1}, "no exchange was complete yet"
    assert flying["group"] == {"g": 1}
    whole = read(tmp_path / "c.pcap")
    assert whole.total(whole.last_ns).in_flight == 0, "the end of the capture completes them"
    assert whole._in_flight == {}


def test_names_of_a_second_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_NAMES", 5)
    scenario = Scenario()
    for at in range(20):
        topics = [{"name": f"t{at}"}]
        scenario.request("Metadata", 4, topics=topics, allowAutoTopicCreation=True)
        scenario.respond("Metadata", 4)
    found = read(scenario.save(tmp_path / "c.pcap"))
    rates = {one.name: one for one in found.rates("topic", found.last_ns)}
    assert len(rates) == 6
    assert rates[windows.OTHERS].requests == pytest.approx(15)


def test_merged_quantiles_are_those_of_all_values() -> None:
    rng = random.Random(1)
    values = [rng.randrange(-5, 10**9) for _ in range(1000)]
    whole, merged = Quantiles(), Quantiles()
    for start in range(0, 1000, 100):
        part = Quantiles()
        for value in values[start : start + 100]:
            part.add(value)
            whole.add(value)
        merged.merge(part)
    merged.merge(Quantiles())
    assert [merged.at(share / 20) for share in range(21)] == [
        whole.at(share / 20) for share in range(21)
    ]
    assert (merged.count, merged.min, merged.max) == (1000, min(values), max(values))


def test_every_order() -> None:
    rates = [
        Rate("a", 1, 2, 3, 4, 5, 6),
        Rate("b", 6, 5, 4, 3, 2, 1),
        Rate("c", 0, 9, 0, 0, None, 0),
    ]
    first = {by: busiest(rates, by)[0].name for by in SORTS}
    assert first == {"requests": "b", "bytes": "c", "latency": "a", "errors": "b", "in flight": "a"}
    assert set(SORT_KEYS.values()) == set(SORTS)
    assert set(KIND_KEYS.values()) == set(windows.KINDS)


# -- lines


def test_a_line_at_each_update_without_a_terminal() -> None:
    result = run("top", CAPTURE)
    assert result.exit_code == 0, result.output
    heading, *lines = result.stdout.splitlines()
    assert heading.startswith("time (UTC) requests/s")
    assert len(lines) == 1
    assert re.match(r"03:58:38 +\d+", lines[-1])
    assert lines[-1].endswith("Fetch")
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_lines_come_while_the_pipe_is_quiet() -> None:
    pipe = subprocess.PIPE
    command = [*COMMAND, "top", "-", "--interval", "0.2"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(CAPTURE.read_bytes())
        out = b""
        while out.count(b"\n") < 4:
            out += os.read(running.stdout.fileno(), 4096)
        running.stdin.close()
        assert running.wait(60) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-", "-i", "lo"),
        (str(FIXTURES / "none"),),
        (__file__,),
        ("-", "--interval", "0"),
        ("-", "--follow"),
        ("-i", "lo", "--speed", "2"),
        (str(CAPTURE), "--follow", "--speed", "2"),
        (str(CAPTURE), "--speed", "0"),
        (str(FIXTURES / "none"), "--follow"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...]) -> None:
    assert run("top", *arguments, stdin=b"").exit_code == 2


# -- files


class Clock:
    """Seconds that pass only in pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        return True


def test_messages_are_replayed_at_a_multiple_of_their_speed() -> None:
    clock = Clock()
    replay = Replay(4, lambda: clock.now, clock.pause)
    start = 10**18
    for seconds in (0, 2, 1, 2, 10):
        replay.until(start + seconds * SECOND)
    assert clock.pauses == [0.5, 2.0], "a time that goes back does not wait"
    assert replay.since() == 0
    clock.now += 1
    assert replay.since() == 4
    replay.until(start + 12 * SECOND)
    assert clock.pauses == [0.5, 2.0], "a message that is late does not wait"
    replay.until(start + 10**6 * SECOND)
    assert clock.pauses[2:] == [14.5], "long gaps are cut"


def test_a_replay_counts_what_the_capture_has() -> None:
    clock = Clock()
    captures = Reading(Traffic([CAPTURE]), Progress(1))
    found = ReplayedWindows(captures, LONG, Replay(1, lambda: clock.now, clock.pause))
    captures.read(found)
    whole = read(CAPTURE)
    assert found.total(found.last_ns) == whole.total(whole.last_ns)
    assert clock.now - 100 == pytest.approx((found.last_ns - found._first_ns) / SECOND)


def test_a_replay_ends_when_the_user_quits() -> None:
    replay = Replay(1, lambda: 0.0, lambda _: False)
    for seconds in range(3):
        replay.until(seconds * SECOND)


def grow(path: Path, data: bytes, half: int) -> None:
    with path.open("ab") as file:
        file.write(data[half:])


def rotate(path: Path, data: bytes, half: int) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_bytes(data[:24] + data[half:])


def truncate(path: Path, data: bytes, half: int) -> None:
    path.write_bytes(data[:24] + data[half:])


@pytest.mark.parametrize("change", [grow, rotate, truncate])
def test_a_growing_file_is_followed(
    change: Callable[[Path, bytes, int], None], tmp_path: Path
) -> None:
    path, data = tmp_path / "growing.pcap", CAPTURE.read_bytes()
    _, half = packets(data, 24, 16, False, 1 << 18, 400)
    path.write_bytes(data[:half])
    command = [*COMMAND, "top", str(path), "--follow", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as running:
        assert running.stdout is not None
        lines = iter(lambda: running.stdout.readline().decode(), "")  # type: ignore[union-attr]
        next(lines)
        before = next(line for line in lines if " ApiVersions" in line or "Fetch" in line)
        change(path, data, half)
        assert next(line for line in lines if line[:8] >= "03:58:38") > before
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130


# -- interfaces


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_commands_that_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "neither tcpdump nor dumpcap is installed" in run("top", "-i", "lo").stderr
    program(tmp_path, "dumpcap", "")
    assert capture_command("eth0", None)[1:] == ["-i", "eth0", "-q", "-w", "-", "-f", "tcp"]
    program(tmp_path, "tcpdump", "")
    assert capture_command("eth0", [9092, 9093])[1:] == [
        "-i", "eth0", "-s", "0", "-U", "-w", "-", "tcp port 9092 or tcp port 9093"
    ]  # fmt: skip


def test_an_interface_is_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "tcpdump", f"echo listening >&2; cat {CAPTURE}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    result = run("top", "-i", "lo")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].endswith("Fetch")
    assert result.stderr == ""


def test_the_message_of_a_program_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "tcpdump", "echo 'tcpdump: no\x1b such device' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    result = run("top", "-i", "nosuch")
    assert result.exit_code == 2
    assert result.stderr == "kafkawire top: tcpdump: tcpdump: no\\x1b such device\n"


# -- the screen


class Session:
    """`kafkawire top` on a terminal of its own."""

    def __init__(self, ours: int, running: subprocess.Popen[bytes]) -> None:
        self._ours = ours
        self.running = running
        self.output = ""

    def until(self, text: str) -> str:
        """Read until a text appears, and return what was read."""
        start = len(self.output)
        while text not in self.output[start:]:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:
                data = b""
            assert data, self.output
            self.output += data.decode()
        return self.output[start:]

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())


@contextmanager
def session(data: bytes, columns: int = 80) -> Iterator[Session]:
    """Run it on a pipe that stays open; keys come from the terminal."""
    with terminal(columns) as (ours, theirs):

        def take_terminal() -> None:
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)

        plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        with subprocess.Popen(
            [*COMMAND, "top", "-", "--interval", "0.2"],
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            env={**plain, "TERM": "xterm"},
            preexec_fn=take_terminal,
            bufsize=0,
        ) as running:
            before = termios.tcgetattr(theirs)
            assert running.stdin is not None
            running.stdin.write(data)
            yield Session(ours, running)
            running.wait(60)
            after = termios.tcgetattr(theirs)
            assert after == before, "the terminal is as it was"
            os.close(theirs)


def test_a_screen_with_keys() -> None:
    with session(CAPTURE.read_bytes()) as top:
        screen = top.until("Heartbeat")
        assert "[api]" in screen
        assert "[requests]" in screen
        top.press("g")
        assert "grp-range" in top.until("grp-range")
        top.press("c")
        top.until("cons-A")
        top.press("l")
        assert "[client]" in top.until("[latency]")
        top.press("t")
        top.until("g-topic")
        top.press("d")
        top.until("[finding]")
        top.press("q")
        top.until(LEAVE)
        assert top.running.wait(60) == 0


def test_ctrl_c_leaves_the_screen() -> None:
    with session(CAPTURE.read_bytes()) as top:
        top.until("Heartbeat")
        top.press("\x03")
        top.until(LEAVE)
        assert top.running.wait(60) == 130


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_lines_fit_and_names_are_escaped(columns: int, tmp_path: Path) -> None:
    scenario = Scenario()
    for name in ("a\x1b[31m\n\u202e", "日本" * 60, "plain"):
        scenario.request("Metadata", 4, topics=[{"name": name}], allowAutoTopicCreation=True)
        scenario.respond("Metadata", 4)
    found = read(scenario.save(tmp_path / "c.pcap"))
    screen = Screen(found)
    assert screen.press("t")
    text = screen.text(found.last_ns, Size(columns, 8))
    lines = text.removeprefix("\x1b[H").removesuffix("\x1b[J").split("\x1b[K\r\n")
    lines[-1] = lines[-1].removesuffix("\x1b[K")
    assert len(lines) <= 8
    for one in lines:
        assert cell_len(one) <= columns
        assert one.isprintable()
    assert Counter(one for one in lines if "... and 1 more" in one).total() == 1


def test_findings_so_far(tmp_path: Path) -> None:
    story = Story()
    for name in ("a\x1b[31m\n", "plain"):
        for _ in range(3):
            story.produce(code=2, client_id=name)
    captures = Reading(Traffic([story.save(tmp_path / "c.pcap")]), Progress(1))
    found = Windows(captures, LONG)
    diagnosis = Diagnosis(Scene.of(captures, dropped_by_kafka()), installed_rules())
    screen = Screen(found, lambda: diagnosis.findings)
    screen.press("d")
    assert "no findings" in screen.text(0, Size(80, 12))
    captures.read(found, *diagnosis.all_collectors)
    text = screen.text(found.last_ns, Size(120, 12))
    assert text.count("broker-errors") == 2
    assert "client plain" in text
    assert "\x1b[31m" not in text
    assert "... and 1 more" in screen.text(found.last_ns, Size(120, 7))
    screen.press("a")
    assert "broker-errors" not in screen.text(found.last_ns, Size(120, 12))
