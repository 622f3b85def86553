"""A suggestion, `; did you mean X?`, is the end of its sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conftest import ROOT

SUGGESTING: Final = {"suggestion", "did_you_mean", "topic_config_hint", "broker_config_hint"}
FOLDERS: Final = ("kafkawire", "cli/kafkawire_cli", "codegen/kafkawire_codegen")


def suggests(part: ast.expr) -> bool:
    """Return whether a part of an f-string is a suggestion: a call, or a name of one."""
    if not isinstance(part, ast.FormattedValue):
        return False
    value = part.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in SUGGESTING
    return isinstance(value, ast.Name) and value.id == "hint"


def continued(path: Path) -> Iterator[str]:
    """Yield the places where text follows a suggestion."""
    source = path.read_text("utf-8")
    if "hint" not in source and not any(name in source for name in SUGGESTING):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) and any(map(suggests, node.values[:-1])):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_nothing_follows_a_suggestion() -> None:
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    assert [place for path in files for place in continued(path)] == []
