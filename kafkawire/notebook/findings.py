"""What is wrong in captures, as objects, shown as HTML in Jupyter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..capture.multifile import Traffic
from ..reports.diagnosis.diagnosis import Diagnosis
from ..reports.diagnosis.registry import Settings, installed_rules
from ..reports.diagnosis.rule import Scene
from ..reports.readiness import dropped_by_kafka
from ..reports.reading import Reading
from .html import MAX_ROWS, table_html
from .summary import Progress

SHOWN: Final = ("severity", "rule", "subject", "what", "count", "cause", "advice")
"""Keys of a finding that are shown in HTML."""


class Findings:
    """The findings about captures, the most harmful first.

    Each is a dictionary as in `kafkawire diagnose --format json`.
    """

    def __init__(
        self, traffic: Traffic, disable: frozenset[str], thresholds: Mapping[str, float]
    ) -> None:
        settings = Settings.of(disable, thresholds)
        scene = Scene.of(Reading(traffic, Progress()), dropped_by_kafka())
        diagnosis = Diagnosis(scene, installed_rules(), settings)
        diagnosis.read()
        self._findings = [one.json() for one in diagnosis.findings]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._findings[index]

    def __repr__(self) -> str:
        return f"<Findings: {', '.join(one['rule'] for one in self) or 'none'}>"

    def _repr_html_(self) -> str:
        rows = [[one[key] for key in SHOWN] for one in self._findings[: MAX_ROWS + 1]]
        return table_html(SHOWN, rows, title="findings", total=len(self))
