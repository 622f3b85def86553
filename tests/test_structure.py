"""The sizes that ARCHITECTURE.md promises: modules, functions and folders that a reader can hold.

Law: what exceeds a size stands in a table here, with its reason; an entry that is no longer needed
fails.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
MODULE_LINES: Final = 300
FUNCTION_LINES: Final = 40
"""Without its docstring."""
FOLDER_MODULES: Final = 20
LONG_MODULES: Final = {
    "benchmarks/varied/clients.py": "all simulated clients, short functions side by side",
    "codegen/hatch_build.py": "the build hook: hatchling loads one file",
    "kafkawire/capture/exchanges/conversation.py": "one state machine over both directions",
    "kafkawire/capture/jsonl/rows.py": "one native class with its caches, hot",
    "kafkawire/capture/tcp/flow.py": "one state machine, reassembly of a direction, hot",
    "kafkawire/client/consumer/consumer.py": "the one place that routes between all components",
    "kafkawire/client/consumer/fetch/fetcher.py": "one machine, requests and responses of Fetch",
    "kafkawire/client/consumer/group/membership.py": "one state machine, all handlers of its table",
    "kafkawire/client/consumer/offsets/positions.py": "all transitions of a partition's state",
    "kafkawire/client/network/connection.py": "one machine; setup and requests share its state",
    "kafkawire/client/network/network.py": "one machine, routing of every request",
    "kafkawire/client/producer/producer.py": "where accumulator, sender and reports meet",
    "kafkawire/primitives/reader.py": "one native class that generated code calls, hot",
    "kafkawire/raft/quorum.py": "one state; every transition checks and persists the same fields",
    "kafkawire/records/batch.py": "one native class, header and records of a batch",
    "kafkawire/spark/plan/planning.py": "one plan, each step a short function",
}
LONG_FUNCTIONS: Final = {
    "kafkawire/broker/cluster.py::__init__": "composition: a line per part",
    "kafkawire/broker/request_handler.py::_request": "one request from bytes to outcome",
    "kafkawire/capture/frames/decoding.py::_response": "hot path, one response",
    "kafkawire/node/front/broker_front.py::__init__": "composition: a line per part",
    "kafkawire/records/builder.py::__init__": "declares the attributes of a native class",
}
LARGE_FOLDERS: Final = {
    "cli/kafkawire_cli/verbs": "a module per verb",
    "kafkawire/broker/handlers": "a module per API key",
}


def modules() -> list[Path]:
    found: list[Path] = []
    for package in ("kafkawire", "cli", "codegen", "benchmarks"):
        found += sorted((ROOT / package).rglob("*.py"))
    generated = ROOT / "kafkawire/messages"
    return [path for path in found if not path.is_relative_to(generated)]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function after its docstring."""
    body = function.body
    assert function.end_lineno is not None
    if len(body) > 1 and ast.get_docstring(function, clean=False) is not None:
        assert body[0].end_lineno is not None
        return function.end_lineno - body[0].end_lineno
    return function.end_lineno - function.lineno + 1


def long_functions() -> dict[str, int]:
    return {
        f"{name(path)}::{node.name}": lines_of(node)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_of(node) > FUNCTION_LINES
    }


def test_modules_are_short() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert len(sizes) > 300
    too_long = {path: size for path, size in sizes.items() if size > MODULE_LINES}
    assert too_long.keys() == LONG_MODULES.keys(), too_long


def test_functions_are_short() -> None:
    found = long_functions()
    assert found.keys() == LONG_FUNCTIONS.keys(), found


def test_folders_are_small() -> None:
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules())
    too_large = {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES}
    assert too_large.keys() == LARGE_FOLDERS.keys(), too_large


@pytest.mark.parametrize("table", [LONG_MODULES, LONG_FUNCTIONS, LARGE_FOLDERS])
def test_each_exception_has_a_reason(table: dict[str, str]) -> None:
    assert all(len(reason) > 10 for reason in table.values())
