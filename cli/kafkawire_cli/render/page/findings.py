"""Diagnoses captures for the page, with collectors that it has anyway."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkawire.reports.diagnosis.diagnosis import Diagnosis
from kafkawire.reports.diagnosis.error_rule import RuleDefinition
from kafkawire.reports.diagnosis.finding import ResolvedFinding
from kafkawire.reports.diagnosis.rule import Scene
from kafkawire.reports.readiness import first_without

from .bodies import shown_text

if TYPE_CHECKING:
    from kafkawire_codegen.releases import Releases

    from ..summary_report import Summary


def diagnosis_of(
    summary: Summary, rules: Mapping[str, RuleDefinition], releases: Releases
) -> Diagnosis:
    """Return a diagnosis that shares the collectors of a summary."""
    dropped_in = partial(first_without, releases=releases)
    scene = Scene(summary.captures, summary.clients, summary.watermarks, dropped_in)
    return Diagnosis(scene, rules)


def finding_json(one: ResolvedFinding) -> dict[str, Any]:
    """Return what the page shows of a finding."""
    finding = one.finding
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "who": shown_text(one.who),
        "what": shown_text(finding.what),
        "count": finding.seen.count,
        "cause": finding.cause,
        "advice": finding.advice,
        "filter": shown_text(one.expression),
    }
