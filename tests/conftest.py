"""Where test data lies, and the rule that nothing is skipped unseen."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.command_server",
    "tests.markers",
    "tests.real.fixtures",
    "tests.recordings",
    "tests.scheduling",
]
ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"


# how fast a shared machine happens to be is no property of the code: benchmarks/ measures that;
# and CI, where nothing may be skipped, tries the same examples each time: runs at home look for new
settings.register_profile(
    "kafkawire",
    deadline=None,
    derandomize=os.environ.get("KAFKAWIRE_NO_SKIPS") == "1",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kafkawire")
SEED_OF_CI = 20261123


@pytest.hookimpl(tryfirst=True)  # before pytest-randomly draws a seed
def pytest_configure(config: pytest.Config) -> None:
    """Draw the same in each run of CI, which fails for a change and not by chance."""
    is_drawn = config.getoption("randomly_seed", "") == "default"
    if is_drawn and os.environ.get("KAFKAWIRE_NO_SKIPS") == "1":
        config.option.randomly_seed = SEED_OF_CI
    config.option.rerun_show_tracebacks = True  # of pytest-rerunfailures, where it is installed
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell does for background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)


_wait_at_exit = subprocess.Popen.__exit__


def _end_at_error(
    process: subprocess.Popen[Any],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> None:
    """End the process of a `with` block that fails: `Popen` would wait for it, perhaps forever."""
    if error is not None:
        process.kill()
    _wait_at_exit(process, kind, error, traceback)


subprocess.Popen.__exit__ = _end_at_error  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from tests.markers import turn  # a plugin: pytest imports it first

    items.sort(key=turn)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the cyclic GC: what is collected stays, and each of its runs visits more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


FREEZE_EVERY = 1000
THRESHOLDS = gc.get_threshold()
_ended = count(1)


def pytest_collection_finish() -> None:
    """Keep the cyclic GC off the 20,000 collected tests: each of its full runs would visit them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    """Keep it off what ended tests leave, too: their results, and caches of modules.

    A test that runs a worker's code in this process tunes its GC as well; the next measures memory.
    """
    gc.set_threshold(*THRESHOLDS)
    if next(_ended) % FREEZE_EVERY == 0:
        gc.collect()
        gc.freeze()


def missing(what: str) -> NoReturn:
    """Skip a test for want of something a user's machine may lack; in CI that is a failure."""
    if os.environ.get("KAFKAWIRE_NO_SKIPS") == "1":
        pytest.fail(f"{what} is missing, and KAFKAWIRE_NO_SKIPS=1 forbids skipping", pytrace=False)
    pytest.skip(f"{what} is missing")
