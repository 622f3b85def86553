"""Renders findings of a fuzz run, and its report as sections or JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any, Final

from kafkawire import ErrorCode
from kafkawire.conformance.behaviour import api_name
from kafkawire.display import plural
from kafkawire.fuzz.cases import Case
from kafkawire.fuzz.run import ApiCounts, Finding, Report, Settings
from kafkawire.primitives import Message
from kafkawire.protocol.json_form import Json, to_json

from ..conformance.sections import short
from ..report import Section

MOST_ERRORS: Final = 3
"""Error codes of an API that the text shows, the most frequent first; JSON has all."""


def sections(report: Report) -> Iterator[Section]:
    """Render a report as text, without the details of findings: see `finding_section`."""
    summary = f"{plural(report.sent, 'request')}: {plural(len(report.findings), 'finding')}"
    lines = [f"{summary}; seed {report.settings.seed}"]
    if report.left:
        lines.append(f"not created or deleted: {', '.join(report.left)}")
    yield Section("Fuzzing", lines=lines)
    problems = [
        (f"{len(each.numbers):,}", api_name(each.case.api), each.problem.value)
        for each in report.findings
    ]
    yield Section("Findings", (">requests", "API", "problem"), problems)
    head = (">requests", "API", ">responses", ">closed", ">problems", "errors")
    rows = [
        _row(api_name(api), counts)
        for api, counts in sorted(report.apis.items(), key=lambda item: item[0].value)
    ]
    yield Section("APIs", head, rows, optional=("errors",))


def finding_section(settings: Settings, finding: Finding) -> Section:
    """Render a finding as text, with its smallest request and how to send the first one again."""
    title = f"Finding: {api_name(finding.case.api)} {finding.case.version}: {finding.problem.value}"
    return Section(title, lines=list(_finding(settings, finding)))


def replay(settings: Settings, finding: Finding) -> str:
    """Return the options that send the request of a finding again."""
    options = ["--seed", settings.seed, "--start", finding.case.number, "--count", 1]
    options += ["--prefix", settings.prefix]
    for each in sorted(settings.apis or ()):
        options += ["--api", api_name(each)]
    if settings.unsafe:
        options.append("--unsafe")
    return shlex.join(map(str, options))


def _finding(settings: Settings, finding: Finding) -> Iterator[str]:
    if finding.verdict.detail:
        yield finding.verdict.detail
    yield f"case {finding.case.number:,}: {finding.case.form.value}"
    yield f"replay: {replay(settings, finding)}"
    if not finding.repeatable:
        yield "sent once more, it did not show this"
    if finding.capture is not None:
        yield f"packets: {finding.capture}"
    smallest = finding.smallest
    if smallest.fault is not None:
        yield f"fault    {smallest.fault}"
    yield f"request  {short(_body(smallest))}"
    yield f"bytes    {short(smallest.data().hex())}"
    if finding.verdict.errors:
        yield f"errors   {', '.join(map(ErrorCode.name_of, finding.verdict.errors))}"


def _row(name: str, counts: ApiCounts) -> tuple[str, ...]:
    errors = [ErrorCode.name_of(code) for code, _ in counts.errors.most_common()]
    more = len(errors) - MOST_ERRORS
    shown = ", ".join(errors[:MOST_ERRORS]) + (f", {more} more" if more > 0 else "")
    numbers = (counts.responded, counts.closed, counts.problems)
    return (f"{counts.sent:,}", name, *(f"{each:,}" for each in numbers), shown)


def as_json(report: Report) -> dict[str, Any]:
    """Render a report as JSON."""
    settings = report.settings
    return {
        "seed": settings.seed,
        "start": settings.start,
        "requests": report.sent,
        "left": report.left,
        "findings": [_finding_json(report, each) for each in report.findings],
        "apis": [
            {
                "api": api_name(api),
                "requests": counts.sent,
                "responses": counts.responded,
                "closed": counts.closed,
                "problems": counts.problems,
                "errors": {ErrorCode.name_of(code): n for code, n in counts.errors.items()},
            }
            for api, counts in sorted(report.apis.items(), key=lambda item: item[0].value)
        ],
    }


def _finding_json(report: Report, finding: Finding) -> dict[str, Any]:
    return {
        "problem": finding.problem.name.lower(),
        "description": finding.problem.value,
        "detail": finding.verdict.detail,
        "errors": [ErrorCode.name_of(code) for code in finding.verdict.errors],
        "requests": finding.numbers,
        "replay": replay(report.settings, finding),
        "repeatable": finding.repeatable,
        "tried": finding.tried,
        "capture": None if finding.capture is None else str(finding.capture),
        "first": _case_json(finding.case),
        "smallest": _case_json(finding.smallest),
        "response": _response_json(finding),
    }


def _case_json(case: Case) -> dict[str, Any]:
    return {
        "form": case.form.value,
        "api": api_name(case.api),
        "version": case.version,
        "fault": None if case.fault is None else str(case.fault),
        "request": _body(case),
        "bytes_hex": case.data().hex(),
    }


def _response_json(finding: Finding) -> dict[str, Json] | None:
    """Return the response to the smallest request; None if none was decoded."""
    verdict = finding.verdict
    if verdict.response is None or verdict.version is None:
        return None
    return _without_nan(verdict.response, verdict.version)


def _body(case: Case) -> dict[str, Json]:
    """Return a request in Kafka's JSON form."""
    return _without_nan(case.message, case.version)


def _without_nan(message: Message, version: int) -> dict[str, Json]:
    """Return a message in Kafka's JSON form; JSON has no NaN."""
    form: dict[str, Json] = json.loads(json.dumps(to_json(message, version)), parse_constant=str)
    return form
