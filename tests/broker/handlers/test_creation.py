"""Auto-creation of topics by Metadata."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.configs.topic_names import topic_name_error
from tests.broker.harness import Harness, metadata

E = ErrorCode


def test_metadata_creates_a_topic_as_configured() -> None:
    harness = Harness(3, settings={"num.partitions": "4", "default.replication.factor": "2"})
    [topic] = metadata(harness.client(), "new").topics
    assert topic.error_code == E.NONE
    assert [len(each.replica_nodes) for each in topic.partitions] == [2] * 4
    assert {each.leader_id for each in topic.partitions} == {1, 2, 3}


@pytest.mark.parametrize(
    ("configured", "requested"), [("false", True), ("true", False), ("false", False)]
)
def test_it_does_not_where_broker_or_client_say_no(configured: str, requested: bool) -> None:
    harness = Harness(settings={"auto.create.topics.enable": configured})
    for _ in range(2):
        response = metadata(harness.client(), "new", allow_auto_topic_creation=requested)
        assert response.topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.topic("new") is None


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250])
def test_an_invalid_name_is_rejected(name: str) -> None:
    harness = Harness()
    [topic] = metadata(harness.client(), name).topics
    assert topic.error_code == E.INVALID_TOPIC_EXCEPTION


def test_an_invalid_name_is_in_the_message_as_in_kafka() -> None:
    assert topic_name_error("a/b") == (
        "Topic name is invalid: 'a/b' contains one or more characters other than ASCII "
        "alphanumerics, '.', '_' and '-'"
    )
