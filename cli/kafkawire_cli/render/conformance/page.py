"""Renders the results of conformance checks as one page in HTML, which needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kafkawire.conformance.behaviour import api_name
from kafkawire.conformance.run import Outcome, Result

from ..page.static import as_json, cells, document, heading, labelled, paragraph, table
from .sections import counts, failures, ranges, rows_of

HEAD: Final = ("Feature", "API", "Behaviour", "Passed", "Failed", "Not offered")


def page(results: Sequence[Result]) -> str:
    """Return the page."""
    parts = (*_failures(results), heading("Behaviours"), *table(HEAD, _rows(results)))
    return document("Conformance", counts(results), parts)


def _failures(results: Sequence[Result]) -> Iterator[str]:
    for each in failures(results):
        api, name = api_name(each.behaviour.api), each.behaviour.name
        yield heading(f"{api} {each.version}: {name}", "failed")
        yield paragraph(each.detail)
        if each.capture is not None:
            yield labelled("Packets", str(each.capture))
        for one in each.exchanges[-1:]:
            parts = {"request": one.request_json(), "response": one.response_json()}
            yield as_json({"api": api_name(one.api), "version": one.version} | parts)


def _rows(results: Sequence[Result]) -> Iterator[str]:
    for row in rows_of(results):
        passed, failed = (
            ranges(row.versions(outcome)) for outcome in (Outcome.PASSED, Outcome.FAILED)
        )
        missing = [each.detail for each in row.results if each.outcome is Outcome.NOT_OFFERED]
        behaviour = row.behaviour
        texts = (
            behaviour.feature.value,
            api_name(behaviour.api),
            behaviour.name,
            passed,
            failed,
            "; ".join(missing),
        )
        yield cells("td", texts, "failed" if failed else "missing" if missing else "")
