"""Ordered output of several processes: the order is that of submission, and failures are reported.

Each case runs in a process of its own, whose output is a file or a pipe that its forks share.
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
from kafkawire_cli.parallel import forked, pool, worker
from kafkawire_cli.render.messages import Printed
from kafkawire_cli.parallel.pool import Pool

def out(found):
    for printed in found:
        sys.stdout.buffer.write(printed.text)
"""

IN_ORDER: Final = """
def run_task(task):
    number, size, _ = task
    for part in range(3):
        yield Printed(b"%d.%d %d %s\\n" % (number, part, os.getpid(), b"x" * size), True)

for seed in range(60):
    rng = random.Random(seed)
    task_bytes = rng.choice([100, 400, 4000])
    pool.KEPT_BYTES = rng.choice([1, 300, 10000])
    worker.BUFFERED_BYTES = rng.choice([1, 300, 10000])
    work = Pool(rng.randint(1, 3), run_task, rng.randint(1, 5), task_bytes, is_output=True)
    for number in range(rng.randint(0, 60)):
        task = number, rng.choice([0, 1, 1, 50, 300]), b"y" * rng.choice([0, 0, 40, 300])
        out(work.ready() if rng.random() < 0.5 else work.wait() if rng.random() < 0.2 else ())
        if rng.random() < 0.3 or work.submit(lambda _: task) is None:
            text = b"".join(bytes(one.text) for one in run_task(task))
            out(work.add(Printed(text, True), len(text)))
    out(work.drain())
    work.close()
    sys.stdout.buffer.write(b"-1.0 %d\\n" % os.getpid())
"""


def run(script: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PREPARED + script]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )


@pytest.mark.timeout(90)
def test_output_is_in_order_whichever_process_prints_it() -> None:
    result = run(IN_ORDER)
    assert result.stderr == ""
    rounds: list[list[list[str]]] = [[]]
    for line in result.stdout.splitlines():
        words = line.split()
        rounds[-1].append(words)
        if words[0] == "-1.0":
            rounds.append([])
    assert len(rounds) == 61
    for lines in rounds[:-1]:
        printed = [part for part, *_ in lines[:-1]]
        assert printed == [f"{i}.{part}" for i in range(len(printed) // 3) for part in range(3)]
    printers = {tuple(sorted({words[1] for words in lines})) for lines in rounds[:-1]}
    assert {len(each) for each in printers} == {1, 2, 3, 4}  # this process, and up to three


OBJECTS: Final = """
from kafkawire.errors import CaptureError

def run_task(task):
    number, size, _ = task
    for part in range(2):
        yield number, part, os.getpid(), b"x" * size
    if size == 77:
        raise CaptureError("task", number)

for seed in range(60):
    rng = random.Random(seed)
    forked.RECEIVED_BYTES = rng.choice([100, 400, 4000])
    worker.BUFFERED_BYTES = rng.choice([1, 300, 10000])
    pool.KEPT_BYTES = rng.choice([1, 300, 10000])
    work = Pool(rng.randint(1, 3), run_task, rng.randint(1, 5), rng.choice([100, 400, 4000]))
    tasks = [
        (number, rng.choice([0, 1, 50, 3000, 200_000]), b"y" * rng.choice([0, 40, 100_000]))
        for number in range(rng.randint(1, 40))
    ]
    if seed % 3 == 0:
        tasks[rng.randrange(len(tasks))] = len(tasks), 77, b""
    results = []
    try:
        for task in tasks:
            results += work.ready()
            if task[1] == 77:
                while work.submit(lambda _: task) is None:
                    results += work.wait()
            elif rng.random() < 0.3 or work.submit(lambda _: task) is None:
                for result in [*run_task(task)]:
                    results += work.add(result, len(result[3]))
        results += work.drain()
    except CaptureError as error:
        assert error.offset == len(tasks)
        tasks = tasks[: [size for _, size, _ in tasks].index(77) + 1]
    else:
        assert seed % 3
    finally:
        work.close()
    assert [(number, part, len(text)) for number, part, _, text in results] == [
        (number, part, size) for number, size, _ in tasks for part in range(2)
    ]
    print(len({pid for _, _, pid, _ in results}))
"""


@pytest.mark.timeout(90)
def test_results_are_in_order_until_an_error_whichever_process_makes_them() -> None:
    """Tasks and results may be larger than the memory that is shared."""
    result = run(OBJECTS)
    assert result.stderr == ""
    makers = result.stdout.split()
    assert len(makers) == 60
    assert {"1", "2", "3", "4"} == set(makers)


DIES: Final = """
def run_task(task):
    os._exit(task)

work = Pool(1, run_task, 2, 4000, is_output=True)
for _ in range(9):
    work.submit(lambda _: 3)
try:
    out(work.drain())
except ChildProcessError as error:
    print(error.strerror)
finally:
    work.close()
"""


def test_a_worker_that_dies_is_reported() -> None:
    result = run(DIES)
    assert (result.stdout, result.stderr) == (
        "worker process exited with 3; rows are missing\n",
        "",
    )


DRAIN: Final = """
try:
    out(work.drain())
except OSError as error:
    print(type(error).__name__, error.strerror, file=sys.stderr)
    os._exit(7)
finally:
    work.close()
"""
"""Writes what the pool yields; exits with 7 if a worker cannot."""

FULL: Final = """
def run_task(task):
    yield Printed(b"x" * 100_000, True)

work = Pool(1, run_task, 2, 4000, is_output=True)
work.submit(lambda _: None)
"""


def test_a_write_error_of_a_worker_is_raised_in_the_parent() -> None:
    with open("/dev/full", "wb") as full:
        result = run(FULL + DRAIN, full.fileno())
    assert (result.returncode, result.stderr) == (7, "OSError No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        result = run(FULL + DRAIN, closed.fileno())
    assert (result.returncode, result.stderr) == (7, "BrokenPipeError Broken pipe\n")


FULL_LATER: Final = """
import time
begun, begins = os.pipe()

def run_task(task):
    if task == "until the last task begins":
        os.read(begun, 1)
        return
    if task == "until it is the turn of the task before":
        os.write(begins, b"x")
        for _ in range(2000):
            yield Printed(b"x", True)
            time.sleep(0.01)
    yield Printed(b"x", True)

work = Pool(2, run_task, 2, 4000, is_output=True)
tasks = "until the last task begins", "b", "c", "until it is the turn of the task before"
assert [work.submit(lambda _: task) for task in tasks] == [0, 1, 0, 1]
"""
"""Worker 1 makes its second task when it is the turn of its first."""


def test_a_write_error_while_a_worker_makes_a_later_task_is_raised() -> None:
    with open("/dev/full", "wb") as full:
        result = run(FULL_LATER + DRAIN, full.fileno())
    assert (result.returncode, result.stderr) == (7, "OSError No space left on device\n")


LONG: Final = """
def run_task(task):
    for _ in range(50):
        yield Printed(b"x" * 100_000, True)

work = Pool(3, run_task, 2, 4000, is_output=True)
for task in range(6):
    work.submit(lambda _: task)
out(work.drain())
"""


@pytest.mark.timeout(60)
def test_no_worker_outlives_a_killed_parent() -> None:
    command = [sys.executable, "-c", PREPARED + LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"  # a worker writes, until the pipe is full
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.read()  # the end of it comes when the last writer has exited
