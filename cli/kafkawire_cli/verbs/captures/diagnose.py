"""`kafkawire diagnose`: what is wrong in captures, and what to change."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kafkawire.display import bytes_text, plural, time_text

from ...input.names import releases_of_kafka
from ...input.options import DEFAULTS, OptionalFiles, ReportOptions
from ...input.rule_options import UNCHANGED, RuleOptions, rules_in_use
from ...input.sources import reading
from ...render.report import (
    Section,
    duration_text,
    print_capture_report,
    print_report,
    top,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkawire.reports.diagnosis.error_rule import RuleDefinition
    from kafkawire.reports.diagnosis.finding import ResolvedFinding
    from kafkawire.reports.reading import Reading


class FailOn(StrEnum):
    """Severities from which the exit code is 1."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


class FindingOrder(StrEnum):
    """Orders of findings."""

    HARM = "harm"
    FIRST = "first"
    TIME = "time"
    COUNT = "count"


def diagnose(
    files: OptionalFiles = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            help="Exit with code 1 if a finding is at least this severe.",
            show_default=False,
        ),
    ] = None,
    show_rules: Annotated[
        bool, typer.Option("--list", help="List the rules and their thresholds, and exit.")
    ] = False,
    rules: RuleOptions = UNCHANGED,
    sort: Annotated[
        FindingOrder,
        typer.Option(help="Sort findings by this: harm, their first packet, lost time, number."),
    ] = FindingOrder.HARM,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Find out what is wrong, and what to look at or change.

    \b
    kafkawire diagnose trace*.pcap
    kafkawire diagnose trace.pcap --fail-on critical --disable old-versions
    kafkawire diagnose trace.pcap --set tiny-batches.bytes=512
    kafkawire diagnose --list

    The most harmful findings come first, unless --sort says otherwise. Exit code 1 with --fail-on
    if there is such a finding.
    """
    if show_rules:
        _print_rules(rules_in_use(), options)
        return
    if not files:
        raise typer.BadParameter("expected captures, - for stdin, or --list", param_hint="FILE...")
    findings = _diagnosed(files, rules, sort, options)
    if fail_on is not None and _reaches(findings, fail_on):
        raise typer.Exit(1)


def _diagnosed(
    files: list[str], rules: RuleOptions, sort: FindingOrder, options: ReportOptions
) -> list[ResolvedFinding]:
    """Read the captures and print the findings."""
    from kafkawire.reports.diagnosis.diagnosis import as_json
    from kafkawire.reports.diagnosis.finding import ORDERS
    from kafkawire.reports.diagnosis.rule import Scene
    from kafkawire.reports.readiness import dropped_by

    bound = options.limit()
    dropped_in = dropped_by(releases_of_kafka())
    with reading(files, options) as captures:
        diagnosis = rules.diagnosis(Scene.of(captures, dropped_in))
        diagnosis.read()
    order = ORDERS[sort.value]
    findings = sorted(diagnosis.findings, key=lambda one: order(one.finding))
    shown = top(findings, bound)
    print_capture_report(
        captures,
        options.form,
        lambda: [
            Section("", lines=(_read(captures, diagnosis.requests), _summary(findings))),
            *map(_section, shown.first),
            Section("", lines=shown.more("finding")),
        ],
        lambda: {
            "packets": captures.watch.packets,
            "requests": diagnosis.requests,
            **as_json(findings, bound),
        },
    )
    return findings


def _reaches(findings: list[ResolvedFinding], fail_on: FailOn) -> bool:
    """Whether a finding is at least as severe as `fail_on`."""
    order = list(FailOn)
    return any(
        order.index(FailOn(one.finding.severity)) <= order.index(fail_on) for one in findings
    )


def _read(captures: Reading, requests: int) -> str:
    """Say what was diagnosed: "no findings" of nothing would look healthy."""
    packets = plural(captures.watch.packets, "packet")
    if requests:
        return f"{plural(requests, 'request')} in {packets}"
    if captures.where is not None:
        return f"no requests match the filter ({packets})"
    return f"no Kafka requests ({packets})"


def _summary(findings: list[ResolvedFinding]) -> str:
    """Count the findings by severity."""
    from kafkawire.reports.diagnosis.diagnosis import counts
    from kafkawire.reports.diagnosis.finding import Severity

    if not findings:
        return "no findings"
    by_severity = [
        f"{count} critical" if one is Severity.CRITICAL else plural(count, one.value)
        for one, count in counts(findings).items()
        if count
    ]
    return f"{plural(len(findings), 'finding')}: {', '.join(by_severity)}"


def _section(one: ResolvedFinding) -> Section:
    """Format a finding."""
    finding, seen = one.finding, one.finding.seen
    about = one.who
    settings = ", ".join(
        setting.key if setting.value is None else f"{setting.key} ({setting.value})"
        for setting in finding.settings
    )
    facts = {
        "what": finding.what,
        "when": _when(one),
        "cost": ", ".join(
            filter(
                None,
                (
                    (seen.time_ns and duration_text(seen.time_ns)) or "",
                    (seen.bytes and bytes_text(seen.bytes)) or "",
                ),
            )
        ),
        "packets": _packets(one),
        "filter": one.expression,
        "cause": f"{finding.cause} (confidence: {finding.confidence.value})",
        "advice": finding.advice,
        "settings": settings,
        "see": finding.reference,
    }
    title = f"{finding.severity.value.upper()} {finding.rule}" + (f": {about}" if about else "")
    return Section(
        title, lines=[f"{label + ':':10}{text}" for label, text in facts.items() if text]
    )


def _packets(one: ResolvedFinding) -> str:
    """List the packets, by file."""
    by_file: dict[str, list[int]] = {}
    for file, packet in one.packets:
        by_file.setdefault(file, []).append(packet)
    return "; ".join(f"{file} {', '.join(map(str, packets))}" for file, packets in by_file.items())


def _when(one: ResolvedFinding) -> str:
    """Say when and how often it was seen."""
    seen = one.finding.seen
    times = plural(seen.count, "time")
    first, last = time_text(seen.first_ns), time_text(seen.last_ns)
    if first is None or last is None:
        return times
    return f"{times}, {first}" + (f" to {last}" if last != first else "")


def _print_rules(rules: Mapping[str, RuleDefinition], options: ReportOptions) -> None:
    """Print the rules with their thresholds."""
    from kafkawire.reports.diagnosis.documentation import rule_json

    print_report(
        options.form,
        lambda: [
            Section(
                rule.name,
                ("threshold", ">default", "unit", "reason"),
                [
                    (one.name, f"{one.default:,.10g}", one.unit, one.reason)
                    for one in rule.thresholds
                ],
                (rule.description,),
            )
            for rule in rules.values()
        ],
        lambda: {"rules": [rule_json(rule) for rule in rules.values()]},
    )
