"""Makes HTML of tables and trees, for Jupyter.

Every text is escaped, first for display, then for HTML; of anything long, the beginning is
shown, and how much is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from ..display import printable

MAX_ROWS: Final = 20
"""Rows of a table that are shown."""

MAX_COLUMNS: Final = 40
MAX_TEXT: Final = 120
"""Characters of a text that are shown."""

MAX_NODES: Final = 500
"""Fields of a tree that are shown."""

OPEN_DEPTH: Final = 2
"""Depth to which a tree is shown open."""


def text_html(value: Any) -> str:
    """Format a value."""
    if value is None:
        return "<i>null</i>"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    elif isinstance(value, list | dict | tuple):
        value = json.dumps(value, default=str, ensure_ascii=False)
    text = str(value)
    shown = printable(text[:MAX_TEXT])
    return escape(shown) + ("…" if len(text) > MAX_TEXT else "")


def table_html(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    total: int | None = None,
) -> str:
    """Make a table; total: the number of rows, if it is known."""
    held = []
    for row in rows:
        held.append(row[:MAX_COLUMNS])
        if len(held) > MAX_ROWS:
            break
    shown = held[:MAX_ROWS]
    parts = [f"<p><b>{text_html(title)}</b></p>"] if title else []
    head = "".join(f"<th>{text_html(name)}</th>" for name in names[:MAX_COLUMNS])
    body = "".join(
        f"<tr>{''.join(f'<td>{text_html(value)}</td>' for value in row)}</tr>" for row in shown
    )
    parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    more = []
    if total is not None:
        more.append(f"{total:,} rows" if total != 1 else "1 row")
    elif len(held) > MAX_ROWS:
        more.append(f"the first {MAX_ROWS} rows")
    if len(names) > MAX_COLUMNS:
        more.append(f"the first {MAX_COLUMNS} of {len(names)} columns")
    if more:
        parts.append(f"<p>{', '.join(more)}</p>")
    return "".join(parts)


def tree_html(title: str, value: Any) -> str:
    """Make a tree of a JSON value, which opens by clicks."""
    return "".join(_Tree().lines(title, value))


class _Tree:
    """A tree that is being made. left: fields that may still be shown."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def lines(self, name: str, value: Any, depth: int = 0) -> Iterator[str]:
        if self._left <= 0:
            return
        self._left -= 1
        label = text_html(name)
        if not isinstance(value, dict | list) or not value:
            yield f"<div><b>{label}</b>: {text_html(value)}</div>"
            return
        count = len(value)
        note = f" <i>[{count}]</i>" if isinstance(value, list) else ""
        state = " open" if depth < OPEN_DEPTH else ""
        yield f'<details{state} style="margin-left:1em"><summary>{label}{note}</summary>'
        fields = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (key, one) in enumerate(fields):
            if self._left <= 0:
                yield f"<div>… {count - number:,} more</div>"
                break
            yield from self.lines(str(key), one, depth + 1)
        yield "</details>"
