"""Renders the report of a fuzz run as one page in HTML, which needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafkawire.display import plural

from ..page.static import as_json, cells, document, heading, labelled, paragraph, table

HEAD: Final = ("API", "Requests", "Responses", "Closed", "Problems", "Errors")


def page(report: Mapping[str, Any]) -> str:
    """Return the page. report: as JSON, which has everything."""
    findings = report["findings"]
    summary = f"{plural(report['requests'], 'request')}: {plural(len(findings), 'finding')}"
    parts = [part for finding in findings for part in _finding(finding)]
    if report["left"]:
        parts.insert(0, paragraph(f"Not created or deleted: {', '.join(report['left'])}"))
    parts += (heading("APIs"), *table(HEAD, map(_row, report["apis"])))
    return document("Fuzzing", f"{summary}; seed {report['seed']}", parts)


def _finding(finding: Mapping[str, Any]) -> Iterator[str]:
    first, smallest = finding["first"], finding["smallest"]
    title = f"{first['api']} {first['version']}: {finding['description']}"
    yield heading(title, "failed")
    if finding["detail"]:
        yield paragraph(finding["detail"])
    if finding["errors"]:
        yield paragraph(f"Errors: {', '.join(finding['errors'])}")
    cases = plural(len(finding["requests"]), "request")
    yield paragraph(f"Cases: {cases}, the first {first['form']}")
    if not finding["repeatable"]:
        yield paragraph("Sent once more, it did not show this")
    yield labelled("Replay", finding["replay"])
    if finding["capture"] is not None:
        yield labelled("Packets", finding["capture"])
    if smallest["fault"] is not None:
        yield labelled("Fault", smallest["fault"])
    yield as_json({name: smallest[name] for name in ("api", "version", "request")})
    yield labelled("Bytes", smallest["bytes_hex"])
    if finding["response"] is not None:
        yield paragraph("Response:")
        yield as_json(finding["response"])


def _row(counts: Mapping[str, Any]) -> str:
    numbers = (counts[name] for name in ("requests", "responses", "closed", "problems"))
    errors = ", ".join(f"{name}: {number:,}" for name, number in counts["errors"].items())
    texts = (counts["api"], *(f"{number:,}" for number in numbers), errors)
    return cells("td", texts, "failed" if counts["problems"] else "")
