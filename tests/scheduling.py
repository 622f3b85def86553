"""Hands tests to the processes of pytest-xdist in chunks, so that its work stays linear.

Tests of a group (`xdist_group`) are one unit of work, as with `--dist loadgroup`; of the
others, up to `CHUNK` that follow each other are. With a unit per test, pytest-xdist goes over all
units of a process whenever one of its tests ends: half a minute for 24,000 tests. A few tests are a
unit each: one that takes minutes keeps no other waiting.

A process imports its share of the modules of tests before it collects all: pytest rewrites the
asserts of each once then, not in every process. Without this, a fresh clone takes 12 seconds of CPU
time more for each.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

CHUNK: Final = 16
MIN_UNITS: Final = 100
TESTS: Final = Path(__file__).resolve().parent


class Ids(list[str]):
    """The ids of tests; finds the place of one at once."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(ids)
        self.places = {nodeid: place for place, nodeid in enumerate(ids)}

    def index(self, nodeid: str, *_: Any) -> int:
        """Find the place of an id."""
        return self.places[nodeid]


def chunk_size(tests: int) -> int:
    """Return how many tests are a unit: as many as leave MIN_UNITS units, CHUNK at most."""
    return max(1, min(CHUNK, tests // MIN_UNITS))


class ChunkScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist is not typed
    """`--dist loadgroup`, but tests without a group are chunks of `CHUNK`."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note the tests that a process has collected."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Ids(collection)

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        if scope != nodeid:
            return scope
        ids = next(iter(self.registered_collections.values()))
        return f"chunk {ids.index(nodeid) // chunk_size(len(ids))}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ChunkScheduling | None:
    """Take the place of `--dist loadgroup`."""
    return ChunkScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def share(files: Sequence[Path], worker: str, count: int) -> Sequence[Path]:
    """Return the files that the worker of this name (`gw0`, `gw1` ...) imports first."""
    return files[int(worker.removeprefix("gw")) :: count]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the share of a worker that will collect all tests of the project."""
    given: dict[str, Any] = getattr(session.config, "workerinput", {})
    if not given or [Path(each).resolve() for each in session.config.args] != [TESTS]:
        return
    ihook = session.gethookproxy(TESTS)
    for path in share(sorted(TESTS.rglob("test_*.py")), given["workerid"], given["workercount"]):
        if not ihook.pytest_ignore_collect(collection_path=path, config=session.config):
            name = ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
            with suppress(Exception):  # it fails again when it is collected, which reports it
                importlib.import_module(name)
