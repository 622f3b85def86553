"""The admin client lists groups by their states and types, at brokers that can."""

from __future__ import annotations

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import RequestFailed
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread

GROUP = "billing"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [GROUP]),
        ({"states": ["Empty"]}, [GROUP]),
        ({"states": ["Stable"]}, []),
        ({"types": ["classic"]}, [GROUP]),
        ({"types": ["consumer", "share"]}, []),
    ],
)
def test_filters_choose_the_groups(filters: dict[str, list[str]], expected: list[str]) -> None:
    with ServerThread() as server, Admin({"bootstrap.servers": server.bootstrap}) as admin:
        admin.create_topic("orders", partitions=1)
        admin.alter_group_offsets(GROUP, {("orders", 0): 0})
        assert [each.group_id for each in admin.list_groups(**filters)] == expected


def test_a_broker_without_a_filter_is_not_sent_one() -> None:
    with (
        ServerThread(ServerConfig(release="2.8")) as server,
        Admin({"bootstrap.servers": server.bootstrap}) as admin,
    ):
        assert admin.list_groups(states=["Stable"]) == []
        with pytest.raises(RequestFailed, match="the broker supports 0 to 4"):
            admin.list_groups(types=["classic"])
