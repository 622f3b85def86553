"""Apache Kafka is fuzzed without findings in what it does right: the judgement is not stricter."""

from __future__ import annotations

import asyncio

import pytest

from kafkawire.fuzz.run import Settings
from kafkawire.messages.api_key import ApiKey

from ..real.broker import Broker
from .test_brokers import PREFIX, fuzzed

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("kafka")]

APIS = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.FIND_COORDINATOR,
        ApiKey.LIST_GROUPS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
    }
)


def test_kafka_is_fuzzed_without_findings(kafka: Broker) -> None:
    report = asyncio.run(fuzzed(kafka.bootstrap, Settings(2, 120, prefix=PREFIX, apis=APIS)))
    assert [(each.case.api.name, each.problem) for each in report.findings] == []
    assert report.left == []
    assert {each for each, counts in report.apis.items() if counts.closed} >= {ApiKey.DESCRIBE_ACLS}
