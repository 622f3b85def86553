"""The sizes that ARCHITECTURE.md promises: modules, functions and folders that a reader can hold.

A module or function that exceeds a size has its reason beside it, in a comment behind the
docstring of the module or in front of the function; a folder has it here. A reason that is no
longer needed fails.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MODULE_LINES: Final = 300
FUNCTION_LINES: Final = 40
"""Without its docstring."""
FOLDER_MODULES: Final = 20
LONG_MODULE: Final = re.compile(rf"# over {MODULE_LINES} lines: \S.{{10,}}")
LONG_FUNCTION: Final = re.compile(rf" *# over {FUNCTION_LINES} lines: \S.{{10,}}")
LARGE_FOLDERS: Final = {
    "codegen/kafkawire_codegen": "what all parts of the generator use",
    "kafkawire/broker/handlers": "a module per API key",
    "kafkawire/records": "batches and records, as objects and as columns",
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


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_are_short() -> None:
    found = modules()
    assert len(found) > 300
    for path in found:
        lines = path.read_text(encoding="utf-8").splitlines()
        has_reason = any(map(LONG_MODULE.fullmatch, lines))
        assert has_reason == (len(lines) > MODULE_LINES), f"{name(path)}: {len(lines)} lines"


def test_functions_are_short() -> None:
    for path in modules():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        reasons = {at for at, line in enumerate(lines, 2) if LONG_FUNCTION.fullmatch(line)}
        for one in functions(ast.parse(text)):
            first = min([one.lineno, *(each.lineno for each in one.decorator_list)])
            has_reason, size = first in reasons, lines_of(one)
            reasons.discard(first)
            assert has_reason == (size > FUNCTION_LINES), f"{name(path)}::{one.name}: {size} lines"
        assert not reasons, f"{name(path)}: reasons without a function"


def test_folders_are_small() -> None:
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules())
    too_large = {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES}
    assert too_large.keys() == LARGE_FOLDERS.keys(), too_large
