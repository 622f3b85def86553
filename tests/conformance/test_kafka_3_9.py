"""Apache Kafka 3.9 passes every check of what it offers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kafkawire import ApiKey
from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.run import Outcome

from ..real.broker import running
from ..real.java import install
from .checks import checked, problems

pytestmark = pytest.mark.timeout(600)

VERSION: Final = "3.9.1"
OFTEN: Final = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
    "offsets.retention.check.interval.ms": "100",
}
"""It looks for old records, and for empty groups without offsets, all the time: no check relies on
being quicker than that."""
NOT_OFFERED: Final = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
}
"""APIs with no check: the broker lacks them, or what they are for is switched off by default."""
NEWER: Final = {
    "refuses a topic id that does not exist",
    "accepts commits of members in their epoch",
    "returns a new epoch",
}
"""Other behaviours that it does not have: of newer versions, or of members of consumer groups."""


def test_kafka_3_9_passes_every_check(tmp_path: Path) -> None:
    with running(install(version=VERSION), tmp_path, OFTEN) as broker:
        results = checked(broker.bootstrap)
    assert not problems(results)
    not_passed = {each.behaviour.name for each in results if each.outcome is not Outcome.PASSED}
    newer = {each.name for each in ALL if each.api in NOT_OFFERED} | NEWER
    assert not_passed == newer
