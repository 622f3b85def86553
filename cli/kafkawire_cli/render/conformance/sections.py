"""Renders the results of conformance checks as text or JSON, by API, version and behaviour.

A behaviour's line, and its checks as JSON lines, are written when its versions are checked; the
failures, and JSON as one object, when all are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, NamedTuple

from kafkawire.conformance.behaviour import Behaviour, Feature, api_name
from kafkawire.conformance.connection import Exchange
from kafkawire.conformance.run import Outcome, Result
from kafkawire.display import padded, plural

from ..report import Section

SHOWN: Final = 1_000
"""Characters of a request or response that the text shows; JSON has all."""


FEATURE_WIDTH: Final = max(len(each.value) for each in Feature)
OUTCOME_WIDTH: Final = max(len(each.value) for each in Outcome)


class Shape(StrEnum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


class Row(NamedTuple):
    """The results of one behaviour in all versions."""

    behaviour: Behaviour
    results: Sequence[Result]

    def versions(self, outcome: Outcome) -> list[int]:
        return [
            each.version
            for each in self.results
            if each.outcome is outcome and each.version is not None
        ]


def rows_of(results: Iterable[Result]) -> list[Row]:
    """Group results, which are in the order of the behaviours, by behaviour."""
    return [Row(key, list(rows)) for key, rows in groupby(results, lambda one: one.behaviour)]


def failures(results: Iterable[Result]) -> list[Result]:
    """Return the checks that failed."""
    return [each for each in results if each.outcome is Outcome.FAILED]


def counts(results: Iterable[Result]) -> str:
    """Describe how many checks passed, failed, or were not possible."""
    count = Counter(each.outcome for each in results)
    checks = plural(count[Outcome.PASSED] + count[Outcome.FAILED], "check")
    return (
        f"{checks}: {count[Outcome.PASSED]:,} passed, {count[Outcome.FAILED]:,} failed; "
        f"{plural(count[Outcome.NOT_OFFERED], 'behaviour')} not offered"
    )


def lines_of(results: Sequence[Result]) -> Iterator[str]:
    """Render the results of one behaviour: a line for each outcome, with its versions."""
    row = Row(results[0].behaviour, results)
    feature = padded(row.behaviour.feature.value, FEATURE_WIDTH)
    for outcome in Outcome:
        details = [one.detail for one in results if one.outcome is outcome]
        if not details:
            continue
        api = f"{api_name(row.behaviour.api)} {ranges(row.versions(outcome))}".rstrip()
        why = f": {details[0]}" if details[0] else ""
        yield f"{padded(outcome.value, OUTCOME_WIDTH)}  {feature}  {api}: {row.behaviour.name}{why}"


def sections(results: Sequence[Result]) -> Iterator[Section]:
    """Render what is known at the end: the failures with their exchanges, and the counts."""
    for each in failures(results):
        name = f"{api_name(each.behaviour.api)} {each.version}: {each.behaviour.name}"
        yield Section(f"Failed: {name}", lines=list(_failure(each)))
    yield Section("Conformance", lines=[counts(results)])


def _failure(result: Result) -> Iterator[str]:
    yield result.detail
    if result.capture is not None:
        yield f"packets: {result.capture}"
    if result.exchanges:
        last = result.exchanges[-1]
        yield f"request  {api_name(last.api)} {last.version} {short(last.request_json())}"
        yield f"response {short(last.response_json())}"


def short(value: object) -> str:
    """Write a value as JSON, or its beginning and its length."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"


def ranges(versions: Sequence[int]) -> str:
    """Write versions as ranges: `0-3, 5`."""
    runs: list[list[int]] = []
    for each in versions:
        if runs and runs[-1][-1] == each - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def json_lines(results: Sequence[Result]) -> Iterator[str]:
    """Render checks as JSON lines."""
    return (json.dumps(_check(each)) for each in results)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Render results as JSON: one object for each check."""
    count = Counter(each.outcome.value for each in results)
    return {
        "counts": {each.value: count[each.value] for each in Outcome},
        "checks": [_check(each) for each in results],
    }


def _check(result: Result) -> dict[str, Any]:
    behaviour = result.behaviour
    return {
        "feature": behaviour.feature.value,
        "api": api_name(behaviour.api),
        "version": result.version,
        "behaviour": behaviour.name,
        "outcome": result.outcome.value,
        "detail": result.detail,
        "capture": None if result.capture is None else str(result.capture),
        "not_deleted": list(result.left),
        "exchanges": [_exchange(each) for each in result.exchanges],
    }


def _exchange(exchange: Exchange) -> dict[str, Any]:
    return {
        "api": api_name(exchange.api),
        "version": exchange.version,
        "request": exchange.request_json(),
        "response": exchange.response_json(),
        "response_hex": None if exchange.data is None else exchange.data.hex(),
    }
