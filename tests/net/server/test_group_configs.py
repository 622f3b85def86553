"""Configurations of groups, by our admin client at our brokers; share groups of the fixtures."""

from __future__ import annotations

import subprocess

import pytest

from kafkawire.blocking import Admin, Consumer, Producer, ShareConsumer
from kafkawire.broker.configs import Settings
from kafkawire.client.consumer import GroupFailed
from kafkawire.client.failures import BrokerError
from kafkawire.errors import LocalProtocolError
from kafkawire.net.server_thread import ServerThread
from tests.command_server import python
from tests.pages import blocks

SECONDS = 60.0
KEY = "share.auto.offset.reset"
EARLIEST = {KEY: "earliest"}


def test_the_configuration_of_a_group_is_altered_and_described(kafka_broker: ServerThread) -> None:
    with Admin({"bootstrap.servers": kafka_broker.bootstrap}) as admin:
        before = admin.describe_group_config("g")[KEY]
        assert (before.value, before.is_default) == ("latest", True)
        with pytest.raises(BrokerError, match="INVALID_CONFIG"):
            admin.alter_group_config("g", {KEY: "soon"})
        admin.alter_group_config("g", EARLIEST, validate_only=True)
        admin.alter_group_config("other", EARLIEST)
        kafka_broker.wait(lambda: not admin.describe_group_config("other")[KEY].is_default)
        assert admin.describe_group_config("g")[KEY].is_default


@pytest.mark.kafka(topics={"orders": 1})
def test_a_share_group_begins_where_its_configuration_says(kafka_broker: ServerThread) -> None:
    here = {"bootstrap.servers": kafka_broker.bootstrap}
    with Producer(here) as producer:
        producer.deliver("orders", b"before")
    with Admin(here) as admin:
        admin.alter_group_config("g", EARLIEST)
    with ShareConsumer({**here, "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        (record,) = consumer.poll(SECONDS)
        assert record.value == b"before"


@pytest.mark.kafka(topics={"orders": 1})
def test_the_example_of_the_page_runs(kafka_broker: ServerThread) -> None:
    (block,) = blocks("docs/client.md", "py")
    text = block.text.replace("localhost:9092", kafka_broker.bootstrap)
    subprocess.run([python(), "-W", "error", "-c", text], check=True, timeout=SECONDS)


@pytest.mark.parametrize("name", [KEY, f"group.{KEY}"])
def test_a_configuration_of_a_group_is_not_one_of_brokers(name: str) -> None:
    with pytest.raises(ValueError, match=r"configuration of a group, .*alter_group_config"):
        Settings({name: "earliest"})


@pytest.mark.kafka(topics={"orders": 1})
def test_a_group_of_another_type_is_named_with_what_to_do(kafka_broker: ServerThread) -> None:
    here = {"bootstrap.servers": kafka_broker.bootstrap}
    with ShareConsumer({**here, "group.id": "shared"}) as sharing:
        sharing.subscribe(["orders"])
        sharing.poll(0.1)
        for protocol in ("classic", "consumer"):
            settings = {**here, "group.id": "shared", "group.protocol": protocol}
            with Consumer(settings) as consumer:
                consumer.subscribe(["orders"])
                with pytest.raises(GroupFailed, match=r"'shared'.* of another type.* set another"):
                    consumer.poll(SECONDS)
    with Consumer({**here, "group.id": "own", "group.protocol": "consumer"}) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(0.1)
        with ShareConsumer({**here, "group.id": "own"}) as sharing:
            sharing.subscribe(["orders"])
            with pytest.raises(GroupFailed, match=r"'own'.* set another group\.id"):
                sharing.poll(SECONDS)


def test_a_call_of_a_transaction_too_early_names_what_comes_first(
    kafka_broker: ServerThread,
) -> None:
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": "t"}
    with Producer(settings) as producer:
        with pytest.raises(LocalProtocolError, match="init_transactions comes first"):
            producer.deliver("orders", b"early")
        producer.init_transactions()
        with pytest.raises(LocalProtocolError, match="begin comes first"):
            producer.deliver("orders", b"early")


def test_what_is_waited_for_is_a_function(kafka_broker: ServerThread) -> None:
    with pytest.raises(TypeError, match=r"expected a function.* not bool"):
        kafka_broker.wait(True)  # type: ignore[arg-type]
