"""When metadata is requested: counted in virtual time, where a broker responds at once."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from kafkawire.client.network.backoff import Backoff
from kafkawire.client.network.metadata_updater import MetadataUpdater

SECONDS: Final = 60.0
TOPICS: Final = frozenset({"orders"})


def updates(*, changed: bool) -> int:
    """Count the requests where an update is wanted after each response."""
    updater = MetadataUpdater(
        "client",
        max_age_s=300.0,
        timeout_s=30.0,
        backoff=Backoff(0.1, 1.0),
        auto_create=False,
        rng=Random(0).random,
    )
    updater.track("consumer", TOPICS, frozenset())
    now, count = 0.0, 0
    while now < SECONDS:
        if updater.advance(now):
            count += 1
            updater.on_response(now)
            updater.on_update(changed, now)
            updater.request_update(TOPICS)
        due = updater.next_deadline()
        assert due is not None
        now = max(now, due)
    return count


@pytest.mark.parametrize(("changed", "least", "most"), [(False, 50, 100), (True, 500, 1000)])
def test_metadata_without_news_is_requested_less_often(
    changed: bool, least: int, most: int
) -> None:
    assert least <= updates(changed=changed) <= most
