"""Renders results as one page in HTML of headings and tables: no script, and no network.

Every function escapes what it gets, except `parts` and `rows`, which others of them returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent);
  padding: .3rem .6rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
.failed { color: light-dark(#b00020, #ff8a80); }
.missing { opacity: .7; }
pre { overflow-x: auto; padding: .6rem;
  background: color-mix(in srgb, currentColor 8%, transparent); }
"""


def document(title: str, summary: str, parts: Iterable[str]) -> str:
    """Return a page. parts: its HTML after the summary."""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            paragraph(summary),
            *parts,
            "</body></html>",
            "",
        )
    )


def heading(text: str, style: str = "") -> str:
    """Return a heading of a part of the page."""
    return f'<h2 class="{style}">{escape(text)}</h2>'


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def labelled(label: str, value: str) -> str:
    """Return a paragraph with a value to copy, as a path."""
    return f"<p>{escape(label)}: <code>{escape(value)}</code></p>"


def as_json(value: object) -> str:
    """Return a value as indented JSON."""
    return f"<pre>{escape(json.dumps(value, indent=1))}</pre>"


def table(head: Sequence[str], rows: Iterable[str]) -> Iterable[str]:
    """Return a table. rows: those that `cells` returns."""
    return ("<table>", cells("th", head), *rows, "</table>")


def cells(tag: str, texts: Sequence[str], style: str = "") -> str:
    """Return a row of cells: `th` or `td`."""
    row = "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
    return f'<tr class="{style}">{row}</tr>'
