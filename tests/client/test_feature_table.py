"""docs/client.md has the table of features, and each feature of ours has tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

import pytest

from tests.client.features import CLIENTS, FEATURES, NO, PAGE, drawn, shown
from tests.conftest import ROOT

TESTS: Final = ROOT / "tests"


@cache
def collected(module: str) -> frozenset[str]:
    """The test functions of a module, none for a module that pytest does not collect."""
    path = TESTS / module
    if not path.name.startswith("test_") or not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    )


@pytest.mark.parametrize("feature", FEATURES)
def test_what_ours_has_is_tested_and_nothing_else(feature: str) -> None:
    row = FEATURES[feature]
    assert (row.ours != NO) == (row.tests != ())
    for node in row.tests:
        module, _, name = node.partition("::")
        assert name in collected(module), node


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert shown(page) == drawn(), "python -m tests.client.features --write"


@pytest.mark.parametrize("line", drawn().splitlines())
def test_a_row_has_a_cell_for_each_client(line: str) -> None:
    cells = [each.strip() for each in line.strip("|").split("|")]
    assert len(cells) == 1 + len(CLIENTS)
    assert all(cells[1:])


def test_a_test_that_is_missing_is_noticed() -> None:
    assert "test_a_certificate_that_is_trusted" in collected("client/net/test_tls.py")
    assert "test_nothing_of_the_kind" not in collected("client/net/test_tls.py")
    assert collected("client/features.py") == collected("client/test_nowhere.py") == frozenset()
