"""Calls of the admin client: which broker they are sent to, and which errors are retried."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafkawire import ErrorCode
from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.messages.api_key import ApiKey
from kafkawire.net.admin import ConfigResource, QuotaEntity, ScramCredential
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread

CREDENTIAL = ScramCredential("SCRAM-SHA-256")
CALLS: dict[ApiKey, Callable[[Admin], object]] = {
    ApiKey.ALTER_CLIENT_QUOTAS: lambda admin: admin.alter_client_quotas(
        {QuotaEntity("alice"): {"producer_byte_rate": 1}}
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda admin: admin.upsert_user_scram_credential(
        "alice", CREDENTIAL, "secret"
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda admin: admin.alter_configs(
        ConfigResource("TOPIC", "orders"), {"retention.ms": "60000"}
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda admin: admin.alter_partition_reassignments(
        {("orders", 0): [1, 2]}
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda admin: admin.list_partition_reassignments(),
    ApiKey.ELECT_LEADERS: lambda admin: admin.elect_leaders(),
    ApiKey.UPDATE_FEATURES: lambda admin: admin.update_features(
        {"share.version": 0}, "SAFE_DOWNGRADE", validate_only=True
    ),
}
"""A call of each API that only the controller carries out."""


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(brokers=2)) as server:
        server.create_topic("orders", partitions=1, factor=2)
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap, "retry.backoff.ms": 1}) as admin:
        yield admin


@pytest.mark.parametrize("api", CALLS, ids=lambda api: api.name)
def test_a_call_is_retried_until_there_is_a_controller(
    server: ServerThread, admin: Admin, api: ApiKey
) -> None:
    first = server.fault(api, nth=1, error=ErrorCode.NOT_CONTROLLER)
    CALLS[api](admin)
    assert first.hit == 1


@pytest.mark.parametrize("api", CALLS, ids=lambda api: api.name)
def test_other_errors_are_not_retried(server: ServerThread, admin: Admin, api: ApiKey) -> None:
    fault = server.fault(api, error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        CALLS[api](admin)
    assert fault.hit == 1


def test_configurations_of_brokers_are_those_of_each(admin: Admin) -> None:
    brokers = [ConfigResource("BROKER", str(number)) for number in (1, 2)]
    described = admin.describe_configs(brokers)
    assert [described[broker]["node.id"].value for broker in brokers] == ["1", "2"]
    admin.alter_configs(brokers[1], {"log.cleaner.threads": "2"})
    described = admin.describe_configs(brokers, ["log.cleaner.threads"])
    sources = [described[broker]["log.cleaner.threads"].is_default for broker in brokers]
    assert sources == [True, False]


def test_a_broker_that_stopped_is_unregistered(server: ServerThread, admin: Admin) -> None:
    server.stop(2)
    admin.unregister_broker(2)
    brokers = admin.describe_cluster(include_fenced=True).brokers
    assert [broker.broker_id for broker in brokers] == [1]
    with pytest.raises(BrokerError, match="BROKER_ID_NOT_REGISTERED"):
        admin.unregister_broker(2)
