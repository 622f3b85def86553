"""Renders the results of conformance checks as one page in HTML, which needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from kafkawire.conformance.behaviour import api_name
from kafkawire.conformance.run import Outcome, Result

from .sections import counts, failures, ranges, rows_of

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
HEAD: Final = ("Feature", "API", "Behaviour", "Passed", "Failed", "Not offered")


def page(results: Sequence[Result]) -> str:
    """Return the page."""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>Conformance</title><style>{STYLE}</style></head><body>",
            f"<h1>Conformance</h1><p>{escape(counts(results))}</p>",
            *_failures(results),
            "<h2>Behaviours</h2><table>",
            _cells("th", HEAD),
            *_rows(results),
            "</table></body></html>",
            "",
        )
    )


def _failures(results: Sequence[Result]) -> Iterator[str]:
    for each in failures(results):
        api, name = api_name(each.behaviour.api), each.behaviour.name
        yield f"<h2 class=failed>{api} {each.version}: {escape(name)}</h2>"
        yield f"<p>{escape(each.detail)}</p>"
        if each.capture is not None:
            yield f"<p>Packets: <code>{escape(str(each.capture))}</code></p>"
        for one in each.exchanges[-1:]:
            parts = {"request": one.request_json(), "response": one.response_json()}
            text = json.dumps({"api": api_name(one.api), "version": one.version} | parts, indent=1)
            yield f"<pre>{escape(text)}</pre>"


def _rows(results: Sequence[Result]) -> Iterator[str]:
    for row in rows_of(results):
        passed, failed = (
            ranges(row.versions(outcome)) for outcome in (Outcome.PASSED, Outcome.FAILED)
        )
        missing = [each.detail for each in row.results if each.outcome is Outcome.NOT_OFFERED]
        behaviour = row.behaviour
        cells = (
            behaviour.feature.value,
            api_name(behaviour.api),
            behaviour.name,
            passed,
            failed,
            "; ".join(missing),
        )
        yield _cells("td", cells, "failed" if failed else "missing" if missing else "")


def _cells(tag: str, cells: Sequence[str], style: str = "") -> str:
    row = "".join(f"<{tag}>{escape(each)}</{tag}>" for each in cells)
    return f'<tr class="{style}">{row}</tr>'
