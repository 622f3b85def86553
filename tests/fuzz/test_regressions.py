"""Requests after which a cluster of ours once hung, or responded with UNKNOWN_SERVER_ERROR."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from kafkawire import Message
from kafkawire.blocking import Admin
from kafkawire.client.config import bootstrap, read_config
from kafkawire.conformance.connection import Connection, Target
from kafkawire.fuzz.cases import Case, Form
from kafkawire.fuzz.faults import Fault, Kind
from kafkawire.fuzz.judgement import Verdict, judge
from kafkawire.fuzz.observing import observe
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kafkawire.net.admin import ADMIN_KEYS
from kafkawire.net.server_thread import ServerThread
from kafkawire.protocol.error_code import ErrorCode

from ..conformance.checks import config

pytestmark = pytest.mark.timeout(120)

TOPIC: Final = "t"
BROKERS: Final = 3
LONG: Final = "x" * 0x7FFF
TIMEOUT_S: Final = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ServerThread(config(brokers=BROKERS)) as server:
        with Admin({"bootstrap.servers": server.bootstrap}) as admin:
            admin.create_topic(TOPIC, partitions=1, replication_factor=BROKERS)
        yield server.bootstrap


def tags(path: str, data: str) -> Fault:
    return Fault(Kind.TAGS, path, "tagged fields", data=bytes.fromhex(data))


def case(api: ApiKey, version: int, message: Message, fault: Fault | None = None) -> Case:
    return Case(0, Form.BROKEN, api, version, message, fault)


CASES: Final = {
    "a tag that cannot be written": case(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        ListPartitionReassignmentsRequest(topics=None),
        tags("ListPartitionReassignmentsRequest", "01ffffffff0f00"),
    ),
    "a tag twice": case(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        AlterPartitionReassignmentsRequest(),
        tags("AlterPartitionReassignmentsRequest", "02e80701aae80701bb"),
    ),
    "a tag in a struct": case(
        ApiKey.CREATE_TOPICS,
        7,
        CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC)]),
        tags("CreateTopicsRequest.topics[0]", "01ffffffff0f00"),
    ),
    "a Fetch of a follower at another follower": case(
        ApiKey.FETCH,
        9,
        FetchRequest(
            replica_id=2,
            session_epoch=-1,
            topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(current_leader_epoch=0)])],
        ),
    ),
    "a long name of a user": case(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        DescribeUserScramCredentialsRequest(users=[UserName(name=LONG)]),
    ),
    "a long name of a configuration": case(
        ApiKey.CREATE_TOPICS,
        7,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="new",
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name=LONG, value="1")],
                )
            ]
        ),
    ),
}


async def sent(cluster: str, one: Case) -> list[Verdict]:
    """Send a case to each broker."""
    values = read_config(ADMIN_KEYS, {"bootstrap.servers": cluster})
    target = Target(values, TIMEOUT_S)
    verdicts = []
    for address in bootstrap(values):
        connection = await Connection.open(address, target)
        verdicts.append(judge(one, await observe(connection, one)))
        connection.close()
    return verdicts


@pytest.mark.parametrize("name", CASES)
def test_each_broker_responds(cluster: str, name: str) -> None:
    verdicts = asyncio.run(sent(cluster, CASES[name]))
    assert len(verdicts) == BROKERS
    for each in verdicts:
        assert each.problem is None, each
        assert each.response is not None
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in each.errors
