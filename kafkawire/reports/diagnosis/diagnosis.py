"""Runs rules over a capture, in one pass, and sorts what they find.

Each exchange passes the collectors in this order:

    clients, watermarks, silences --> partitions --> feeds --> rules --> findings

Feeds read responses, outcomes, group events and batches once for all rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..reading import Collector
from .error_rule import RuleDefinition
from .feeds import GroupFeed, KeyFeed, OutcomeFeed, ProduceFeed, Producing, ResponseFeed
from .fetched import FetchFeed
from .finding import SEVERITIES, ResolvedFinding, Severity, resolve
from .libraries import Libraries
from .registry import UNCHANGED, Settings, create
from .rule import Rule, Scene


class Diagnosis:
    """The findings about a capture. Raises RuleError."""

    def __init__(
        self, scene: Scene, rules: Mapping[str, RuleDefinition], settings: Settings = UNCHANGED
    ) -> None:
        self._scene = scene
        self.rules = create(rules, scene, settings)

    def read(self) -> None:
        """Read the captures in one pass, and look up unnamed topics in the rest."""
        self._scene.captures.read(*self.all_collectors)
        self._scene.captures.name_topics()

    @property
    def all_collectors(self) -> list[Collector]:
        """The collectors with those of the scene, in the order in which they need each other."""
        scene = self._scene
        return [scene.clients, scene.watermarks, scene.silences, *self.collectors]

    @property
    def collectors(self) -> list[Collector]:
        """The collectors that no other report has, in the order in which they need each other."""
        own: list[Collector] = [
            self._scene.partitions,
            ResponseFeed(
                self._scene.responding,
                overriding(self.rules, "responded"),
                overriding(self.rules, "unanswered"),
            ),
        ]
        erring = [rule for rule in self.rules if rule.error_codes]
        grouping = overriding(self.rules, "group_event")
        producing: list[Producing] = [rule.produced for rule in overriding(self.rules, "produced")]
        keying = [rule.keys for rule in overriding(self.rules, "keys")]
        fetching = [rule.fetched for rule in overriding(self.rules, "fetched")]
        throttling = overriding(self.rules, "throttled")
        if erring or throttling:
            own.append(OutcomeFeed(erring, throttling))
        if grouping:
            own.append(GroupFeed(self._scene.captures.context, grouping))
        if keying:
            producing.append(KeyFeed(keying).produced)
        own.append(ProduceFeed(producing, self._scene.production))
        if fetching:
            own.append(FetchFeed(fetching))
        return [*own, *self.rules]

    @property
    def requests(self) -> int:
        """The number of requests that were read, and match the filter."""
        return sum(client.requests for client in self._scene.clients.all)

    @property
    def findings(self) -> list[ResolvedFinding]:
        """The findings, the most harmful first."""
        findings = [finding for rule in self.rules for finding in rule.findings()]
        place, libraries = self._scene.captures.traffic.place, Libraries(self._scene.clients.all)
        return [
            resolve(libraries.with_names(finding), self._scene.topic_name, place)
            for finding in sorted(findings, key=lambda finding: finding.order)
        ]


def overriding(rules: list[Rule], method: str) -> list[Rule]:
    """List the rules that override a method."""
    inherited = getattr(Rule, method)
    return [rule for rule in rules if getattr(type(rule), method) is not inherited]


def counts(findings: list[ResolvedFinding]) -> dict[Severity, int]:
    """Count findings by severity."""
    return {
        severity: sum(one.finding.severity is severity for one in findings)
        for severity in SEVERITIES
    }


def as_json(findings: list[ResolvedFinding], most: int | None = None) -> dict[str, Any]:
    """Return the JSON form of findings. most: how many are listed, None for all."""
    listed = findings[:most]
    return {
        "counts": {severity.value: count for severity, count in counts(findings).items()},
        "findings": [one.json() for one in listed],
        "left_out": len(findings) - len(listed),
    }
