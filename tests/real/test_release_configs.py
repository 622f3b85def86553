"""How the keys of earlier releases differ is what their jars, and a real broker of 3.9, have."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.configs import ResourceType
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.net.server_config import ServerConfig
from kafkawire.net.server_thread import ServerThread

from .broker import running
from .config_defs import Row, described
from .java import install
from .release_configs import PROSE, TABLE, VERSIONS, broker_rows, content, topic_rows
from .wire import Wire

pytestmark = pytest.mark.timeout(600)

NAME = "configs-of-3.9"
OF_THE_TESTS = {"segment.index.bytes"}
"""Keys whose broker's key the configuration of the real broker has."""


def test_the_table_is_that_of_the_jars() -> None:
    assert TABLE.read_text("utf-8") == content(), "python -m tests.real.release_configs --write"


def test_a_broker_of_3_9_describes_topics_as_ours_does(tmp_path: Path) -> None:
    topic = CreatableTopic(name=NAME, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    rows = []
    with (
        running(install(version=VERSIONS["3.9"]), tmp_path) as broker,
        ServerThread(ServerConfig(release="3.9")) as ours,
    ):
        for port in (broker.port, int(ours.bootstrap.rpartition(":")[2])):
            with Wire(port) as wire:
                [created] = wire.exchange(request, 7, CreateTopicsResponse).topics
                assert created.error_code == 0
            rows.append(described(port, ResourceType.TOPIC, NAME))
    theirs, own = rows
    assert theirs.keys() == own.keys()
    for name in theirs.keys() - OF_THE_TESTS:
        first, second = theirs[name], own[name]
        assert (first.value, first.config_type) == (second.value, second.config_type), name
        assert {each.name for each in first.synonyms} == {each.name for each in second.synonyms}


def test_what_differs_is_drawn() -> None:
    same: Row = {"type": "INT", "default": "1", "valid": "[1,...]"}
    least: Row = {"type": "INT", "default": "1", "valid": {"least": 1}}
    newest: dict[str, Row] = {"same": least, "newer": {}}
    facts: dict[str, Row] = {"same": same, "older": {**same, "valid": None}}
    assert topic_rows(facts, {"older": "log.older"}, newest) == {
        "newer": None,
        "older": {"type": "INT", "default": "1", "synonyms": [["log.older"]]},
    }
    assert broker_rows({"same": {**same, "valid": PROSE}, "older": same}, newest) == {
        "same": {"least": 1, "also": [-1]}
    }
