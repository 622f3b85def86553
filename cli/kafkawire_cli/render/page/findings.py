"""The findings of the page, by a diagnosis that shares its collectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkawire.reports.diagnosis.finding import ResolvedFinding
from kafkawire.reports.diagnosis.rule import Scene
from kafkawire.reports.readiness import dropped_by

from .bodies import shown_text

if TYPE_CHECKING:
    from kafkawire_codegen.releases import Releases

    from ..summary_report import Summary


def scene_of(summary: Summary, releases: Releases) -> Scene:
    """Return what a diagnosis shares with a summary: its collectors."""
    collectors = summary.clients, summary.watermarks, summary.silences
    return Scene.beside(summary.captures, *collectors, dropped_by(releases))


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
