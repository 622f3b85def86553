"""Calls of the admin client about groups and producers, with clients of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkawire import ErrorCode
from kafkawire.blocking import Admin, Consumer, Producer, ShareConsumer
from kafkawire.client.failures import BrokerError, ClientError
from kafkawire.net.admin import ShareGroupOffset
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_config import QUICK
from kafkawire.net.server_thread import ServerThread

ORDERS = ("orders", 0)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(topics={"orders": 1}, settings=QUICK)) as server:
        yield server


@pytest.fixture
def here(server: ServerThread) -> dict[str, str]:
    return {"bootstrap.servers": server.bootstrap}


@pytest.fixture
def admin(here: dict[str, str]) -> Iterator[Admin]:
    with Admin(here) as admin:
        yield admin


def test_offsets_of_a_share_group_are_described_set_and_deleted(
    here: dict[str, str], admin: Admin
) -> None:
    admin.alter_group_config("shared", {"share.auto.offset.reset": "earliest"})
    with Producer(here) as producer:
        for number in range(3):
            producer.deliver("orders", b"%d" % number)
    with ShareConsumer({**here, "group.id": "shared"}) as consumer:
        consumer.subscribe(["orders"])
        assert consumer.poll(30)
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            admin.alter_share_group_offsets("shared", {ORDERS: 1})
    admin.alter_share_group_offsets("shared", {ORDERS: 1})
    [(partition, offset)] = admin.share_group_offsets("shared").items()
    assert (partition, offset.start_offset) == (ORDERS, 1)
    assert isinstance(offset, ShareGroupOffset)
    with pytest.raises(BrokerError, match="no-such-topic"):
        admin.alter_share_group_offsets("shared", {("no-such-topic", 0): 1})
    admin.delete_share_group_offsets("shared", ["orders"])
    assert admin.share_group_offsets("shared") == {}


def test_members_are_removed_from_a_group(here: dict[str, str], admin: Admin) -> None:
    with (
        Producer(here) as producer,
        Consumer({**here, "group.id": "g", "group.instance.id": "first"}) as consumer,
    ):
        consumer.subscribe(["orders"])
        producer.deliver("orders", b"value")
        consumer.poll(0.1)
        [member] = admin.describe_group("g").members
        assert member.group_instance_id == "first"
        with pytest.raises(BrokerError, match=r"UNKNOWN_MEMBER_ID.*member none"):
            admin.remove_members_from_group("g", member_ids=["none"])
        admin.remove_members_from_group("g", instance_ids=["first"], reason="moved")
        assert member.member_id not in {one.member_id for one in admin.describe_group("g").members}


def fenced(producer: Producer[bytes, bytes], server: ServerThread, admin: Admin) -> None:
    """Fence a producer while its transaction is open; then let it commit."""
    with producer.transaction():
        producer.deliver("orders", b"open")
        before = admin.describe_transaction("t")
        assert before.state == "Ongoing"
        busy = server.fault("InitProducerId", nth=1, error=ErrorCode.CONCURRENT_TRANSACTIONS)
        admin.fence_producer("t")
        assert busy.hit == 1
        after = admin.describe_transaction("t")
        assert after.producer_epoch > before.producer_epoch
        assert after.state != "Ongoing"


def test_a_fenced_producer_cannot_commit(
    server: ServerThread, here: dict[str, str], admin: Admin
) -> None:
    with (
        Producer({**here, "transactional.id": "t"}) as producer,
        pytest.raises(ClientError, match=r"(?i)fenced|epoch"),
    ):
        fenced(producer, server, admin)
