"""Finds the tables and columns that a statement needs, in the syntax tree of DuckDB's parser.

What is found is never too little. Where the tree does not show which columns are used (stars,
natural joins, whole rows), all are needed; where there is no tree (statements that are no queries),
each table whose name is in the text is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple


class Needs(NamedTuple):
    """What a statement needs.

    tables: names of tables, in the order of the first reference. columns: names of columns in lower
    case, maybe of other things, too; None for all columns. once: whether there is one reference to
    one table, by its name alone, so that its rows can pass through the query without being kept.
    """

    tables: tuple[str, ...]
    columns: frozenset[str] | None = None
    once: bool = False


EXPRESSIONS: Final = frozenset(
    {
        "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT",
        "FUNCTION", "LAMBDA", "OPERATOR", "SUBQUERY", "WINDOW",
    }
)  # fmt: skip
"""Expressions that use the columns that they name, and no others."""

FROM: Final = frozenset({"BASE_TABLE", "EMPTY", "JOIN", "SUBQUERY", "TABLE_FUNCTION"})
"""Parts of a FROM clause of which the same is true."""

PLAIN: Final = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
"""Functions in FROM whose arguments name no tables; those of any other may (`histogram`)."""


def needs_of(text: str, tree: str, known: Collection[str]) -> Needs:
    """Find what a statement needs.

    text: the statement. tree: its syntax tree, as from `json_serialize_sql`. known: the tables that
    there are.
    """
    parsed = json.loads(tree)
    if parsed["error"]:
        return Needs(_named(text, known))
    needs = _Found()
    for statement in parsed["statements"]:
        needs.add(statement["node"])
    if needs.dynamic:
        return Needs(_named(text, known))
    references = [name for name in needs.references if name in known]
    tables = tuple(dict.fromkeys(references))
    whole = needs.all_columns or not needs.single.isdisjoint({*needs.references, *needs.aliases})
    return Needs(
        tables,
        None if whole else frozenset(needs.columns),
        len(references) == 1 and not needs.has_ctes and not needs.qualified,
    )


def _named(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the tables whose names are words of a statement."""
    words = dict.fromkeys(re.findall(r"\w+", text.lower()))
    return tuple(word for word in words if word in known)


class _Found:
    """What was found in a tree.

    single: unqualified names, which may also be those of tables.
    """

    def __init__(self) -> None:
        self.references: list[str] = []
        self.aliases: set[str] = set()
        self.columns: set[str] = set()
        self.single: set[str] = set()
        self.all_columns = self.dynamic = self.has_ctes = self.qualified = False

    def add(self, tree: Any) -> None:
        """Add a tree; without recursion, because a statement may be nested deeply."""
        pending = [tree]
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                pending += reversed(list(self._inner(node)))
            elif isinstance(node, list):
                pending += reversed(node)

    def _inner(self, node: dict[str, Any]) -> Iterator[Any]:
        """Note what a node says, and yield what is below it."""
        kind = node.get("type")
        if "class" in node:
            self._expression(node)
        elif kind == "SHOW_REF" and node.get("show_type") != "SUMMARY":
            return  # DESCRIBE: needs no rows
        elif isinstance(kind, str) and "alias" in node and "sample" in node:
            self._from(node, kind)
        self.has_ctes = self.has_ctes or bool(node.get("map"))
        yield from node.values()

    def _expression(self, node: dict[str, Any]) -> None:
        if node["class"] not in EXPRESSIONS:
            self.all_columns = True
        names = [name.lower() for name in node.get("column_names", ())]
        self.columns.update(names)
        if len(names) == 1:
            self.single.update(names)

    def _from(self, node: dict[str, Any], kind: str) -> None:
        if kind not in FROM or node.get("ref_type") == "NATURAL":
            self.all_columns = True
        if node.get("column_name_alias"):
            self.all_columns = True  # names by position
        if kind == "TABLE_FUNCTION":
            name = str((node.get("function") or {}).get("function_name")).lower()
            self.dynamic = self.dynamic or name not in PLAIN
        self.columns.update(name.lower() for name in node.get("using_columns", ()))
        self.aliases.add(node["alias"].lower())
        if kind == "BASE_TABLE":
            self.references.append(node["table_name"].lower())
            self.qualified = self.qualified or bool(node.get("schema_name"))
