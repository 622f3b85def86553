"""Forked processes and signals."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Final

PROGRAM: Final = """
import os, signal, sys
from kafkawire_cli.parallel.forked import Forked, receive, send
from kafkawire_codegen.whole_files import ended_by_signals

def serve(connection, tasks, results):
    send(connection, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    receive(connection)

if len(sys.argv) > 1:
    os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))
with ended_by_signals():
    worker = Forked(serve, 1 << 12)
    print(worker.receive())
    worker.close()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_signal_at_the_fork_ends_the_process() -> None:
    """Python ignores exceptions in what is called at a fork, which may be a signal handler's."""
    done = run("signal")
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "")


def test_the_process_blocks_no_signals() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
