"""Listeners offer what Kafka's offer, in each release that was recorded, but for what is listed."""

from __future__ import annotations

import pytest

from kafkawire.broker.releases import LATEST

from ..real.api_versions import BROKER, CONTROLLER, recorded
from .offered import PAGE, REASONS, RELEASES, differences, drawn, listeners, ours, shown


def test_each_difference_has_a_reason_and_each_reason_a_difference() -> None:
    assert {(row.listener, row.api) for row in differences()} == set(REASONS)


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert shown(page) == drawn(), "python -m tests.broker.offered --write"


@pytest.mark.parametrize("release", RELEASES)
def test_versions_are_kafkas(release: str) -> None:
    """What both offer, both offer in the same versions; but for Fetch of controllers."""
    for listener in listeners(release):
        kafkas, own = recorded(release)[listener], ours(release, listener)
        differing = {api for api in kafkas.keys() & own.keys() if kafkas[api] != own[api]}
        assert differing == ({"Fetch"} if listener == CONTROLLER else set())


def test_the_newest_release_and_older_ones_were_recorded() -> None:
    assert {"2.8", "3.9", LATEST} <= set(RELEASES)
    assert len(recorded(LATEST)[BROKER]) == 77
