"""Apache Kafka passes every check: none of them expects what only our broker does."""

from __future__ import annotations

from itertools import groupby

import pytest

from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.run import Outcome

from ..real.broker import Broker
from .checks import checked, problems

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("kafka")]


def test_kafka_passes_every_check(kafka: Broker) -> None:
    results = checked(kafka.bootstrap)
    assert not problems(results)
    assert [name for name, _ in groupby(each.behaviour.name for each in results)] == [
        each.name for each in ALL
    ]
    assert {each.outcome for each in results} == {Outcome.PASSED}
