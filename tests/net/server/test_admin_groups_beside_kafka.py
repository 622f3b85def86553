"""Groups as `Admin` describes them, the same at a real Apache Kafka and at our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.net.admin import ShareGroupInfo, ShareMemberInfo
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.real.java import RELEASE

from ...interop.implementations import until
from ...real.broker import Broker
from ...real.wire import CLIENT_ID, Wire
from . import test_shares_beside_kafka as shares
from .test_beside_kafka import created
from .test_shares_beside_kafka import SETTINGS, Peer

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

HOST: Final = "/127.0.0.1"
"""A member's, as Kafka writes it."""


@pytest.fixture(scope="module")
def both(own_kafka: Broker) -> Iterator[tuple[int, int]]:
    """Ports of Kafka and of ours."""
    with ServerThread(ServerConfig(settings=SETTINGS, release=RELEASE)) as server:
        yield own_kafka.port, server.server.endpoints[0].port


def admin_of(port: int) -> Admin:
    return Admin({"bootstrap.servers": f"127.0.0.1:{port}"})


def is_none(describe: Callable[[list[str]], object], *group_ids: str) -> None:
    with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*absent"):
        describe(list(group_ids))


def test_share_groups(both: tuple[int, int]) -> None:
    """Two members share a partition, until one leaves."""

    def described(port: int) -> list[ShareGroupInfo]:
        with Wire(port) as wire, admin_of(port) as admin:
            peer = Peer(wire)
            peer.exchange("CreateTopics", 7, created(shares.TOPIC, partitions=1))
            peer.exchange("FindCoordinator", 6, {"keyType": 0, "coordinatorKeys": [shares.GROUP]})
            until(lambda: shares.TOPIC in admin.list_topics())
            epochs = {member: shares.settled_member(peer, member) for member in ("n", "m")}
            first = admin.describe_share_groups([shares.GROUP])
            peer.exchange("ShareGroupHeartbeat", 1, shares.beat("n", -1))
            second = admin.describe_share_groups([shares.GROUP])
            is_none(admin.describe_share_groups, shares.GROUP, "absent")
            assert epochs["m"] == first[shares.GROUP].group_epoch
            return [each[shares.GROUP] for each in (first, second)]

    theirs, ours = map(described, both)
    assert ours == theirs
    together, alone = ours
    assert together.state == "Stable"
    assert [each.member_id for each in together.members] == ["m", "n"]
    [member] = alone.members
    assert together.members[0] == member
    assert member == ShareMemberInfo(
        "m", None, together.group_epoch, CLIENT_ID, HOST, (shares.TOPIC,), ((shares.TOPIC, 0),)
    )
    assert alone.group_epoch > together.group_epoch == together.assignment_epoch > 0
