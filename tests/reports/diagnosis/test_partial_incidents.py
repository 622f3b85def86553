"""Incidents as other ways to capture would have them: the rule is found, or what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.reports import report

from . import partial
from .partial import PARTIAL, WHOLE, Parts, Recorded
from .test_incidents import FOLDER, rule_of

INCIDENTS: Final = (
    "authentication-failures",
    "authorization-failures",
    "broker-errors",
    "concurrent-transactions",
    "expelled-members",
    "fenced-producers",
    "invalid-requests",
    "late-acknowledgements",
    "metadata-storm",
    "oversize-records",
    "rebalance-storm-aiokafka",
    "refused-registrations",
    "rejected-requests",
    "request-timeouts",
    "short-timeouts",
    "slow-responses",
    "stale-metadata",
    "throttling",
    "too-few-in-sync-replicas",
    "unanswered-requests",
    "unknown-topics",
    "unstable-offsets",
)
LACKING: Final = {"one-way-captures", "capture-loss", "undecoded-connections"}
"""Rules about what a capture does not have."""
OF_LOSS: Final = {"rebalance-storm-aiokafka": {"long-rebalances"}}
"""Findings of captures with loss: the end of one rebalance is lost, and the next one seems its."""

Way = Callable[[Recorded], Parts]


def diagnosed(name: str, way: Way, folder: Path) -> list[str]:
    """List the rules of the findings."""
    recorded = Recorded.read(FOLDER / f"{name}.pcap.gz")
    paths = [
        recorded.write(folder / f"{number}.pcap", packets)
        for number, packets in enumerate(way(recorded))
    ]
    findings: list[dict[str, Any]] = report("diagnose", *paths)["findings"]
    return [one["rule"] for one in findings]


@pytest.mark.parametrize("way", WHOLE, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_first_finding_is_the_incident(name: str, way: Way, tmp_path: Path) -> None:
    assert diagnosed(name, way, tmp_path)[0] == rule_of(name)


@pytest.mark.parametrize("way", PARTIAL, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", INCIDENTS)
def test_what_a_capture_lacks_is_said_and_nothing_else(name: str, way: Way, tmp_path: Path) -> None:
    whole = {one["rule"] for one in report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"]}
    rules = set(diagnosed(name, way, tmp_path))
    extra = OF_LOSS.get(name, set()) if way is partial.lossy else set()
    assert rules
    assert rules <= whole | LACKING | extra
    assert rule_of(name) in rules or rules & LACKING
