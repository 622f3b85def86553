"""`kafkawire transactions -b`: what is listed and described, and hanging transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.net.admin import HangingTransaction
from kafkawire.net.fixture import ClusterFixture
from tests.cli.reports import run
from tests.net.server.transactional import TOPIC, Actor, prepared
from tests.real.wire import Wire

SETTINGS = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
pytestmark = pytest.mark.kafka(settings=SETTINGS)


@pytest.fixture
def wire(kafka_broker: ClusterFixture) -> Iterator[Wire]:
    with Wire(int(kafka_broker.bootstrap.rpartition(":")[2])) as wire:
        prepared(wire, "probe")
        yield wire


@pytest.fixture
def ongoing(wire: Wire) -> Actor:
    """A transaction that its coordinator will end."""
    actor = Actor(wire, "billing")
    actor.init()
    actor.add(1)
    actor.send(1)
    return actor


@pytest.fixture
def hanging(wire: Wire, ongoing: Actor) -> Actor:
    """Records in a transaction that no coordinator knows of, as before KIP-890."""
    actor = Actor(wire, "lost")
    actor.init()
    actor.send(0)
    assert ongoing.producer_id != actor.producer_id
    return actor


def shown(broker: ClusterFixture, *words: str) -> Any:
    done = run("transactions", "-b", broker.bootstrap, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def found(broker: ClusterFixture, *words: str) -> list[tuple[str, int, int]]:
    hanging = shown(broker, "--hanging", *words)["hanging"]
    return [(each["topic"], each["partition"], each["producer_id"]) for each in hanging]


def test_ids_are_listed_by_their_state_and_name(
    kafka_broker: ClusterFixture, ongoing: Actor
) -> None:
    def ids(*words: str) -> set[str]:
        listed = shown(kafka_broker, *words)["transactional_ids"]
        return {each["transactional_id"] for each in listed}

    assert "billing" in ids()
    assert ids("--state", "Ongoing") == {"billing"}
    assert ids("--pattern", "bill.*") == {"billing"}
    assert ids("--pattern", "bill") == set()
    assert ids("--state", "Ongoing", "--longer-than", "3600") == set()
    text = run("transactions", "-b", kafka_broker.bootstrap, "--state", "Ongoing").stdout
    assert ["billing", str(ongoing.producer_id), "Ongoing"] in [
        line.split() for line in text.splitlines()
    ]


def test_a_transaction_and_the_producers_of_a_topic_are_described(
    kafka_broker: ClusterFixture, ongoing: Actor
) -> None:
    [described] = shown(kafka_broker, "--transactional-id", "billing")["transactions"]
    assert (described["state"], described["partitions"]) == ("Ongoing", {TOPIC: [1]})
    assert described["producer_id"] == ongoing.producer_id
    producers = shown(kafka_broker, "--topic", TOPIC)["producers"]
    [mine] = [each for each in producers if each["producer_id"] == ongoing.producer_id]
    assert (mine["partition"], mine["start_offset"]) == (1, 0)
    for words in (("--transactional-id", "billing"), ("--topic", TOPIC)):
        done = run("transactions", "-b", kafka_broker.bootstrap, *words)
        assert str(ongoing.producer_id) in done.stdout


def test_a_hanging_transaction_is_found_and_aborted(
    kafka_broker: ClusterFixture, hanging: Actor
) -> None:
    """Not one that is in progress, nor a young one."""
    recent = ("--older-than", "0")
    assert found(kafka_broker, *recent) == [(TOPIC, 0, hanging.producer_id)]
    assert found(kafka_broker, *recent, "--topic", TOPIC) == [(TOPIC, 0, hanging.producer_id)]
    assert found(kafka_broker, "--older-than", str(1 << 30)) == []
    abort = ("--abort-hanging", *recent)
    dry = shown(kafka_broker, *abort, "--dry-run")
    assert (dry["dry_run"], len(dry["changes"])) == (True, 1)
    assert found(kafka_broker, *recent) == [(TOPIC, 0, hanging.producer_id)]
    done = run("transactions", "-b", kafka_broker.bootstrap, *abort, "--yes")
    assert done.exit_code == 0, done.output
    assert f"aborted transaction of producer {hanging.producer_id}/0 in {TOPIC}-0" in done.stdout
    assert found(kafka_broker, *recent) == []
    again = run("transactions", "-b", kafka_broker.bootstrap, *abort, "--yes")
    assert (again.exit_code, again.stdout.strip()) == (0, "No hanging transactions found.")
    [ongoing] = shown(kafka_broker, "--state", "Ongoing")["transactional_ids"]
    assert ongoing["transactional_id"] == "billing"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--abort-hanging",), "no terminal to confirm it"),
        (("--hanging", "--yes"), "--yes: only allowed with an option that deletes or aborts"),
        (("--older-than", "5"), "--older-than: only allowed with --hanging"),
        (("--hanging", "--state", "Ongoing"), "not allowed together"),
        (("--top", "5"), "only allowed with captures"),
    ],
)
def test_usage_errors(kafka_broker: ClusterFixture, words: tuple[str, ...], message: str) -> None:
    done = run("transactions", "-b", kafka_broker.bootstrap, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_what_a_cluster_does_not_have_is_an_error(kafka_broker: ClusterFixture) -> None:
    for words, message in (
        (("--transactional-id", "none"), "transactional id none"),
        (("--hanging", "--topic", "none"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("--pattern", "("), "INVALID_REGULAR_EXPRESSION"),
    ):
        done = run("transactions", "-b", kafka_broker.bootstrap, *words)
        assert done.exit_code == 1
        assert message in done.stderr


def test_the_admin_client_aborts_only_with_the_epoch_of_the_producer(
    kafka_broker: ClusterFixture, hanging: Actor
) -> None:
    with Admin({"bootstrap.servers": kafka_broker.bootstrap}) as admin:
        [transaction] = admin.find_hanging_transactions(before_ms=1 << 60)
        assert isinstance(transaction, HangingTransaction)
        [producer] = admin.describe_producers(TOPIC, 0)[-1:]
        assert (producer.producer_id, producer.start_offset) == (
            hanging.producer_id, transaction.start_offset)  # fmt: skip
        with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
            admin.abort_hanging_transaction(transaction._replace(producer_epoch=-1))
        admin.abort_hanging_transaction(transaction)
        assert admin.find_hanging_transactions([TOPIC], before_ms=1 << 60) == []
