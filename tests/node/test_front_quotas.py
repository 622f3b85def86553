"""Quotas of users and clients on a node, in virtual time."""

from __future__ import annotations

from typing import Final

import pytest

from kafkawire.broker.configs import Settings
from kafkawire.broker.network.rates import Rate
from kafkawire.broker.quotas.client_quotas import MOST_RATES, ClientQuotas
from kafkawire.messages import alter_client_quotas_request as alter
from kafkawire.messages import describe_client_quotas_request as describe
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.metadata import QuotaEntity
from kafkawire.metadata.client_quotas import (
    FETCH,
    PRODUCE,
)
from kafkawire.protocol import ErrorCode as E

from ..broker.harness import metadata
from ..broker.log.test_log import batch
from .front_harness import NodeClient, NodeHarness

ANY: Final = frozenset({("client-id", None)})
QUOTA = 1000
"""Bytes per second."""


def test_a_rate_is_over_all_windows_but_the_last_at_least() -> None:
    rate = Rate(11, 1000)
    rate.record(10_000, 0)
    assert rate.throttle_ms(QUOTA, 0) == 0
    rate.record(10_000, 0)
    assert rate.throttle_ms(QUOTA, 0) == 10_000
    assert rate.throttle_ms(QUOTA, 500) == pytest.approx(9_500, abs=1)
    assert rate.throttle_ms(QUOTA, 10_999) == pytest.approx(9_001, abs=1)
    assert rate.throttle_ms(QUOTA, 11_000) == 0, "the window is past"


def test_a_rate_counts_windows_apart() -> None:
    rate = Rate(11, 1000)
    for second in range(30):
        rate.record(QUOTA, second * 1000)
        assert rate.throttle_ms(QUOTA, second * 1000) <= 1000
    rate.record(5 * QUOTA, 29_500)
    assert rate.throttle_ms(QUOTA, 29_500) > 4000


U, C = "user", "client-id"
LEVELS: Final[tuple[set[tuple[str, str | None]], ...]] = (
    {(U, "alice"), (C, "app")},
    {(U, "alice"), (C, None)},
    {(U, "alice")},
    {(U, None), (C, "app")},
    {(U, None), (C, None)},
    {(U, None)},
    {(C, "app")},
    {(C, None)},
)
"""The entities whose quota applies to alice's app, the most specific first."""


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_quota_applies(first: int) -> None:
    quotas = ClientQuotas(Settings())
    others: dict[QuotaEntity, dict[str, float]] = {
        frozenset({(U, "bob")}): {FETCH: 1.0},
        frozenset({(C, "other")}): {FETCH: 2.0},
    }
    levels = {frozenset(each): {FETCH: 100.0 + at} for at, each in enumerate(LEVELS)}
    remaining = dict(list(levels.items())[first:])
    quotas.publish(others | remaining)
    assert quotas.most(FETCH, "alice", "app") == (100 + first) * 10
    assert quotas.most(PRODUCE, "alice", "app") is None


def test_a_default_is_a_quota_for_each() -> None:
    quotas = ClientQuotas(Settings())
    quotas.publish({ANY: {PRODUCE: 1.0}})
    for number in range(MOST_RATES + 10):
        assert quotas.record(PRODUCE, "u", str(number), 10, 0.0) == 0
    assert quotas.record(PRODUCE, "u", str(number), 10, 0.0) == 10_000
    assert len(quotas._rates) == MOST_RATES


def set_quota(
    harness: NodeHarness, key: str, value: float | None = QUOTA, client: str = "tester"
) -> None:
    op = alter.OpData(key=key, value=value or 0.0, remove=value is None)
    entity = [alter.EntityData(entity_type="client-id", entity_name=client)]
    request = alter.AlterClientQuotasRequest(entries=[alter.EntryData(entity=entity, ops=[op])])
    response = harness.client().exchange(request, 1, AlterClientQuotasResponse)
    assert response.entries[0].error_code == E.NONE


@pytest.fixture
def harness() -> NodeHarness:
    return NodeHarness(topics={"t": 1})


def produce_request(size: int, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(b"x" * size))
    topic = TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def produced(client: NodeClient, size: int) -> int:
    """Produce; return for how many ms the client is throttled."""
    response = client.exchange(produce_request(size), 9, ProduceResponse)
    [partition] = response.responses[0].partition_responses
    assert partition.error_code == E.NONE
    return response.throttle_time_ms


def test_a_producer_that_exceeds_its_quota_waits(harness: NodeHarness) -> None:
    client = harness.client()
    assert produced(client, 20_000) == 0
    set_quota(harness, PRODUCE)
    assert produced(client, 5_000) == 0
    throttle_ms = produced(client, 15_000)
    assert throttle_ms == pytest.approx(10_000, rel=0.05)
    now = harness.now
    client.send(produce_request(10), 9)
    harness.advance(throttle_ms / 1000 - 1.0)
    assert not client.received, "the connection is muted"
    assert produced(harness.client(), 10) > 0, "the quota is of all connections of a client id"
    harness.advance(1.1)
    assert client.receive(ProduceResponse).responses
    assert harness.now - now < 15
    set_quota(harness, PRODUCE, None)
    assert produced(harness.client(), 100_000) == 0


def test_acks_0_is_throttled_too(harness: NodeHarness) -> None:
    set_quota(harness, PRODUCE)
    client = harness.client()
    client.send(produce_request(20_000, acks=0), 9)
    client.in_flight.clear()
    client.send(produce_request(10), 9)
    harness.advance(5.0)
    assert not client.received
    harness.advance(10.0)
    assert client.receive(ProduceResponse).responses


def fetched(client: NodeClient, session: tuple[int, int] = (0, -1)) -> FetchResponse:
    topic_id = metadata(client.node.client(), "t").topics[0].topic_id
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", topic_id=topic_id, partitions=[partition])
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[topic],
    )
    return client.exchange(request, 12, FetchResponse)


def records(response: FetchResponse) -> int:
    return sum(len(p.records or b"") for each in response.responses for p in each.partitions)


def test_a_throttled_consumer_gets_nothing_until_it_may(harness: NodeHarness) -> None:
    for _ in range(4):
        produced(harness.client(), 3_000)
    set_quota(harness, FETCH)
    client = harness.client()
    first = fetched(client)
    assert (first.throttle_time_ms, records(first) > 9_000) == (0, True)
    assert records(first) < 10_000, "no more than the windows allow"
    second = fetched(client)
    assert records(second) == 0
    assert second.throttle_time_ms > 5_000
    before = harness.now
    while not records(fetched(client)):
        assert harness.now - before >= second.throttle_time_ms / 1000
    assert 11 <= harness.now - before <= 20, "until the first response is out of the windows"


def test_a_session_goes_on_after_throttling(harness: NodeHarness) -> None:
    produced(harness.client(), 9_000)
    set_quota(harness, FETCH)
    client = harness.client()
    fetched(client)
    throttled = fetched(client, (0, 0))
    assert throttled.session_id > 0
    assert records(throttled) == 0
    for epoch in (1, 2):
        last = fetched(client, (throttled.session_id, epoch))
    assert records(last) > 8_000


def test_quotas_are_described(harness: NodeHarness) -> None:
    for name in ("a", "b"):
        set_quota(harness, PRODUCE, 7.0, name)

    def described(match_type: int, match: str | None, strict: bool = False) -> list[str | None]:
        component = describe.ComponentData(
            entity_type="client-id", match_type=match_type, match=match
        )
        request = describe.DescribeClientQuotasRequest(components=[component], strict=strict)
        response = harness.client().exchange(request, 1, DescribeClientQuotasResponse)
        assert response.error_code == E.NONE
        assert response.entries is not None
        return [each.entity[0].entity_name for each in response.entries]

    assert described(0, "b") == ["b"]
    assert described(1, None) == []
    assert described(2, None, strict=True) == ["a", "b"]
    wrong = describe.ComponentData(entity_type="client-id", match_type=0, match=None)
    request = describe.DescribeClientQuotasRequest(components=[wrong])
    response = harness.client().exchange(request, 1, DescribeClientQuotasResponse)
    assert response.error_code == E.INVALID_REQUEST
