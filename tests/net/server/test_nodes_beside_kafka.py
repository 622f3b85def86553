"""Users, ACLs and quotas of a real Apache Kafka and of our nodes: the same responses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from time import monotonic, sleep
from typing import Any, Final

import pytest

from kafkawire import Message
from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages import alter_user_scram_credentials_request as scram
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kafkawire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafkawire.messages.create_acls_response import CreateAclsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafkawire.messages.delete_acls_response import DeleteAclsResponse
from kafkawire.messages.describe_acls_request import DescribeAclsRequest
from kafkawire.messages.describe_acls_response import DescribeAclsResponse
from kafkawire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from kafkawire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kafkawire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkawire.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from tests.interop.implementations import until

from ...broker.log.test_log import batch
from ...real.broker import PROPERTIES, Broker
from ...real.wire import CLIENT_ID, Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

TOPIC: Final = "secured"
SIZE: Final = 20_000
APPLIED_S: Final = 5.0
QUOTA: Final = 1_000.0
SALTED: Final = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)
AUTHORIZER: Final = ("authorizer.class.name", "super.users")


@pytest.fixture(scope="module")
def both(own_kafka: Broker) -> Iterator[tuple[int, int]]:
    """The ports of the real broker and of a node of ours."""
    settings = {key: PROPERTIES[key] for key in AUTHORIZER}
    with ClusterThread(ServerConfig(settings=settings)) as cluster:
        yield own_kafka.port, cluster.ports()[1]


def responses(both: tuple[int, int], request: Message, version: int, response: Any) -> list[Any]:
    """Send a request to both."""
    found = []
    for port in both:
        with Wire(port) as wire:
            found.append(wire.exchange(request, version, response))
    for each in found:  # Kafka's order is that of a hash table
        for name in ("resources", "results"):
            getattr(each, name, []).sort(key=str)
    return found


def same(both: tuple[int, int], request: Message, version: int, response: Any) -> Any:
    """Send a request to both, until the responses are the same; return that.

    A real broker may not have applied yet what its controller has stored.
    """
    end = monotonic() + APPLIED_S
    while True:
        real, ours = responses(both, request, version, response)
        if real == ours or monotonic() > end:
            assert str(ours) == str(real)
            return ours
        sleep(0.02)


def test_users(both: tuple[int, int]) -> None:
    def change(*upsertions: tuple[str, int, int], deleted: str = "") -> Message:
        return scram.AlterUserScramCredentialsRequest(
            deletions=[scram.ScramCredentialDeletion(name=deleted, mechanism=1)] if deleted else [],
            upsertions=[
                scram.ScramCredentialUpsertion(
                    name=name,
                    mechanism=mechanism,
                    iterations=iterations,
                    salt=b"salt",
                    salted_password=SALTED,
                )
                for name, mechanism, iterations in upsertions
            ],
        )

    for request in (
        change(("bob", 1, 4096)),
        change(("bob", 1, 5000)),
        change(("carol", 2, 8192)),
        change(("bob", 1, 1)),
        change(("bob", 9, 4096)),
        change(deleted="nobody"),
    ):
        same(both, request, 0, AlterUserScramCredentialsResponse)
    for names in (["bob"], ["bob", "bob"], ["nobody"], ["carol", "bob"]):
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=each) for each in names])
        same(both, request, 0, DescribeUserScramCredentialsResponse)


ACL: Final[dict[str, Any]] = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def acl_filter(**given: Any) -> dict[str, Any]:
    """The fields of a filter that matches all, but for those given."""
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    } | given


def test_acls(both: tuple[int, int]) -> None:
    for changed in (
        {},
        {"resource_name": "ord", "resource_pattern_type": 4},
        {"resource_type": 4},
        {"principal": "bob"},
    ):
        creation = CreateAclsRequest(creations=[AclCreation(**ACL | changed)])
        same(both, creation, 3, CreateAclsResponse)
    for wanted in (
        acl_filter(resource_type_filter=2),
        acl_filter(resource_type_filter=3),
        acl_filter(resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=2),
        acl_filter(resource_type_filter=2, resource_name_filter="ord", pattern_type_filter=4),
        acl_filter(principal_filter="User:nobody"),
    ):
        found = same(both, DescribeAclsRequest(**wanted), 3, DescribeAclsResponse)
        assert not found.error_code
    deletion = DeleteAclsRequest(filters=[DeleteAclsFilter(**acl_filter(resource_type_filter=2))])
    with Wire(both[0]) as real, Wire(both[1]) as ours:
        sizes = [
            len(each.exchange(deletion, 3, DeleteAclsResponse).filter_results[0].matching_acls)
            for each in (real, ours)
        ]
    assert sizes == [2, 2]


def set_quota(both: tuple[int, int], key: str, remove: bool = False) -> None:
    """Set a quota of our client id, and wait until both have it."""
    op = quotas.OpData(key=key, value=QUOTA, remove=remove)
    entity = [quotas.EntityData(entity_type="client-id", entity_name=CLIENT_ID)]
    entry = quotas.EntryData(entity=entity, ops=[op])
    request = quotas.AlterClientQuotasRequest(entries=[entry])
    same(both, request, 1, AlterClientQuotasResponse)
    component = ComponentData(entity_type="client-id", match_type=0, match=CLIENT_ID)
    wanted = DescribeClientQuotasRequest(components=[component], strict=True)
    same(both, wanted, 1, DescribeClientQuotasResponse)


def test_throttling(both: tuple[int, int]) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    same_codes = []
    for port in both:
        with Wire(port) as wire:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            same_codes.append(wire.exchange(request, 4, CreateTopicsResponse).topics[0].error_code)
    assert same_codes[0] == same_codes[1]
    for port in both:
        until(partial(is_led, port))
    set_quota(both, "producer_byte_rate")
    data = PartitionProduceData(index=0, records=batch(b"x" * SIZE))
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    found = same(both, produce, 9, ProduceResponse)
    assert found.throttle_time_ms > SIZE // 2
    set_quota(both, "producer_byte_rate", remove=True)
    set_quota(both, "consumer_byte_rate")
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
    )
    for epoch in (-1, 0):
        fetch.session_epoch = epoch
        throttled = []
        for port in both:
            with Wire(port) as wire:
                response = wire.exchange(fetch, 12, FetchResponse)
            throttled.append((response.throttle_time_ms, response.responses))
        assert throttled[0][1] == throttled[1][1] == []
        assert throttled[0][0] > SIZE // 2
        assert abs(throttled[0][0] - throttled[1][0]) <= MS, throttled
    set_quota(both, "consumer_byte_rate", remove=True)


MS: Final = 1_000
"""A rate is over a window that grows with the time since the first request of a client."""


def is_led(port: int) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with Wire(port) as wire:
        [topic] = wire.exchange(request, 9, MetadataResponse).topics
    return not topic.error_code and topic.partitions[0].leader_id > 0
