"""What the driver holds, and needs while it plans, for each of many small files; no Spark.

Each is measured in a process of its own, where no other test left caches or threads.
"""

from __future__ import annotations

import gc
import io
import json
import pickle
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spark.small_captures import make
from kafkawire.spark.describing import describe
from kafkawire.spark.options import parse
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.write.manifest import manifest_pieces
from tests.new_process import in_new_process

FILES = 600

HELD = 100
"""Bytes for each file in a plan, at most. As objects, files and parts take 900."""

PEAK = 320
"""Bytes for each file while it is planned, at most: columns of connections are sorted."""

PICKLED = 100


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Directories of n and 4n small captures."""
    root = tmp_path_factory.mktemp("memory")
    for count in (FILES, 4 * FILES):
        assert len(list(make(root / str(count), count))) == count
    return [root / str(count) for count in (FILES, 4 * FILES)]


def planned(folder: Path) -> Plan:
    return make_plan(None, [str(folder)], parse({}), lenient=True)


def write_manifest(plan: Plan) -> None:
    for piece in manifest_pieces(describe(plan, parse({}), [], None)):
        io.StringIO().write(piece)


def measured(functions: list[Callable[[], Any]]) -> list[tuple[int, int]]:
    """Measure functions in a new process, the first of them once before: for each, the bytes that
    its result holds, and those in use at the peak."""
    _, *results = in_new_process(traced, [(each,) for each in (functions[0], *functions)])
    return results


def traced(function: Callable[[], Any]) -> tuple[int, int]:
    gc.collect()
    tracemalloc.start()
    try:
        result = function()
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
        del result
        return held, peak
    finally:
        tracemalloc.stop()


def test_a_plan_holds_few_bytes_for_each_file(folders: list[Path]) -> None:
    (few, few_peak), (many, many_peak) = measured([partial(planned, at) for at in folders])
    assert many - few <= HELD * 3 * FILES
    assert many_peak - few_peak <= PEAK * 3 * FILES


def test_a_plan_is_as_small_for_tasks(folders: list[Path]) -> None:
    few, many = (planned(folder) for folder in folders)
    assert len(pickle.dumps(many)) - len(pickle.dumps(few)) <= PICKLED * 3 * FILES
    assert pickle.loads(pickle.dumps(many)).parts == many.parts


def test_the_manifest_is_written_in_pieces(folders: list[Path]) -> None:
    """Its entries and its JSON take no more memory for 4n files than for n."""
    plans = [planned(folder) for folder in folders]
    (_, few), (_, many) = measured([partial(write_manifest, plan) for plan in plans])
    assert many <= 1.2 * few


def test_the_manifest_is_that_of_json(folders: list[Path]) -> None:
    plan = planned(folders[0])
    manifest = describe(plan, parse({"sets": "file"}), [], None)
    whole = {**manifest, "inputs": list(manifest["inputs"]), "none": []}
    assert len(whole["inputs"]) == FILES
    text = "".join(manifest_pieces({**manifest, "none": []}))
    assert text == json.dumps(whole, indent=1)
