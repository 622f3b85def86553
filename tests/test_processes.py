"""Processes of tests end with the tests that fail."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


def test_a_process_ends_with_the_block_that_fails() -> None:
    endless = [sys.executable, "-c", "import time; time.sleep(1e6)"]
    with pytest.raises(ZeroDivisionError), subprocess.Popen(endless) as process:
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL
