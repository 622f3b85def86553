"""Processes that print by turns: the order of what is handed over, and what happens to one that
fails. Each case runs in a process of its own, whose output is a file or a pipe: forks have it in
common.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

import pytest

PREPARED: Final = """
import os, random, sys
from kafkawire_cli.parallel import ordered_output as turns
from kafkawire_cli.render.messages import Printed
from kafkawire_cli.parallel.ordered_output import Turns

def out(found):
    for printed in found:
        sys.stdout.buffer.write(printed.text)
"""

IN_ORDER: Final = """
def do(task):
    number, size, _ = task
    for part in range(3):
        yield Printed(b"%d.%d %d %s\\n" % (number, part, os.getpid(), b"x" * size), True)

for seed in range(60):
    draw = random.Random(seed)
    turns.ROOM, turns.HELD = draw.choice([100, 400, 4000]), draw.choice([1, 300, 10000])
    work = Turns(draw.randint(1, 3), do, draw.randint(1, 5))
    for number in range(draw.randint(0, 60)):
        task = number, draw.choice([0, 1, 1, 50, 300]), b"y" * draw.choice([0, 0, 40, 300])
        out(work.ready() if draw.random() < 0.5 else work.wait() if draw.random() < 0.2 else ())
        if draw.random() < 0.3 or not work.give(lambda: task):
            out(work.say(Printed(b"".join(bytes(one.text) for one in do(task)), True)))
    out(work.rest())
    work.end()
    sys.stdout.buffer.write(b"-1.0 %d\\n" % os.getpid())
"""


def ran(script: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PREPARED + script]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )


@pytest.mark.timeout(90)
def test_whoever_prints_it_comes_out_in_order() -> None:
    result = ran(IN_ORDER)
    assert result.stderr == ""
    rounds: list[list[list[str]]] = [[]]
    for line in result.stdout.splitlines():
        words = line.split()
        rounds[-1].append(words)
        if words[0] == "-1.0":
            rounds.append([])
    assert len(rounds) == 61
    for of_round in rounds[:-1]:
        printed = [place for place, *_ in of_round[:-1]]
        assert printed == [f"{i}.{part}" for i in range(len(printed) // 3) for part in range(3)]
    printers = {tuple(sorted({words[1] for words in of_round})) for of_round in rounds[:-1]}
    assert {len(each) for each in printers} == {1, 2, 3, 4}  # this process, and up to three


DIES: Final = """
def do(task):
    os._exit(task)

work = Turns(1, do, 2)
for _ in range(9):
    work.give(lambda: 3)
try:
    out(work.rest())
except ChildProcessError as error:
    print(error.strerror)
finally:
    work.end()
"""


def test_a_process_that_dies_is_said() -> None:
    result = ran(DIES)
    assert (result.stdout, result.stderr) == (
        "a process ended with 3; rows are missing\n",
        "",
    )


FULL: Final = """
def do(task):
    yield Printed(b"x" * 100_000, True)

work = Turns(1, do, 2)
work.give(lambda: None)
try:
    out(work.rest())
except OSError as error:
    print(type(error).__name__, error.strerror, file=sys.stderr)
    os._exit(7)
finally:
    work.end()
"""


def test_what_another_process_cannot_write_is_raised_here() -> None:
    with open("/dev/full", "wb") as full:
        result = ran(FULL, full.fileno())
    assert (result.returncode, result.stderr) == (7, "OSError No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        result = ran(FULL, closed.fileno())
    assert (result.returncode, result.stderr) == (7, "BrokenPipeError Broken pipe\n")


LONG: Final = """
def do(task):
    for _ in range(50):
        yield Printed(b"x" * 100_000, True)

work = Turns(3, do, 2)
for task in range(6):
    work.give(lambda: task)
out(work.rest())
"""


@pytest.mark.timeout(60)
def test_nobody_stays_behind_a_process_that_was_killed() -> None:
    command = [sys.executable, "-c", PREPARED + LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"  # another process writes, until the pipe is full
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.read()  # the end of it comes when the last one that could write is gone
