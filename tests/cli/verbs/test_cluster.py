"""`kafkawire cluster`: what is healthy, what is not, and what a broker does not say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kafkawire.display import text_width
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import on_a_terminal, run
from tests.cli.verbs.test_hostile_broker import TOPIC, Bodies, hostile_broker

pytestmark = pytest.mark.timeout(60)


class Controllers(Bodies):
    """A broker that is not hostile: of a quorum of three controllers, with a fenced broker."""

    def Metadata(self, request: Any) -> dict[str, Any]:
        here = {"nodeId": 1, "host": "127.0.0.1", "port": self.port, "rack": "r1"}
        rows = [
            {"partitionIndex": 0, "leaderId": 1, "replicaNodes": [1, 2, 3], "isrNodes": [1]},
            {"partitionIndex": 1, "leaderId": 1, "replicaNodes": [1, 2], "isrNodes": [1]},
            {"partitionIndex": 2, "leaderId": -1, "replicaNodes": [2], "isrNodes": [2]},
            {"partitionIndex": 3, "leaderId": 1, "replicaNodes": [1], "isrNodes": [1]},
        ]
        topics = [{"name": TOPIC, "partitions": rows}] if request.topics is None else []
        return {"brokers": [here], "clusterId": "abc", "controllerId": 1, "topics": topics}

    def ApiVersions(self, request: Any) -> dict[str, Any]:
        supported = {"name": "metadata.version", "minVersion": 7, "maxVersion": 30}
        finalized = {"name": "metadata.version", "minVersionLevel": 29, "maxVersionLevel": 29}
        features = {"supportedFeatures": [supported], "finalizedFeatures": [finalized]}
        return super().ApiVersions(request) | features

    def DescribeCluster(self, _: Any) -> dict[str, Any]:
        here = {"brokerId": 1, "host": "127.0.0.1", "port": self.port, "rack": "r1"}
        there = {"brokerId": 2, "host": "other", "port": 9092, "isFenced": True}
        return {"clusterId": "abc", "brokers": [here, there]}

    def DescribeQuorum(self, _: Any) -> dict[str, Any]:
        ends = {3001: (900, 5000), 3002: (890, 4200), 3003: (-1, -1), 1: (900, 4999)}
        rows = [
            {"replicaId": number, "logEndOffset": end, "lastCaughtUpTimestamp": at}
            for number, (end, at) in ends.items()
        ]
        row = {"leaderId": 3001, "leaderEpoch": 7, "highWatermark": 890,
               "currentVoters": rows[:3], "observers": rows[3:]}  # fmt: skip
        return {"topics": [{"topicName": "__cluster_metadata", "partitions": [row]}]}

    def DescribeLogDirs(self, _: Any) -> dict[str, Any]:
        held = {"name": TOPIC, "partitions": [{"partitionSize": 1500}, {"partitionSize": 500}]}
        good = {"logDir": "/a", "topics": [held], "totalBytes": 10**9, "usableBytes": 10**8}
        return {"results": [good, {"logDir": "/b", "errorCode": 56}]}

    def DescribeConfigs(self, request: Any) -> dict[str, Any]:
        assert [each.configuration_keys for each in request.resources] == [["min.insync.replicas"]]
        config = {"name": "min.insync.replicas", "value": "2"}
        return {"results": [{"resourceName": TOPIC, "configs": [config]}]}


class Forbidding(Controllers):
    """A broker that forbids what it may."""

    def DescribeQuorum(self, _: Any) -> dict[str, Any]:
        return {"errorCode": 31}

    def DescribeConfigs(self, _: Any) -> dict[str, Any]:
        return {"results": [{"resourceName": TOPIC, "errorCode": 29}]}


EVERYTHING: Final = """\
Cluster abc
  controller 3001
  1 topic, 4 partitions: 1 offline, 2 below min.insync.replicas, 2 under-replicated

Brokers
  broker  address    rack  leaders  replicas  state
       1  HOST:PORT  r1          3         3  log directory offline
       2  other:9092             0         3  fenced

Log directories
  broker  directory  replicas    size    free      of  state
       1  /a                2    2 kB  100 MB    1 GB
       1  /b                0     0 B                  KAFKA_STORAGE_ERROR

Quorum
  replica  role      log end      lag  behind by
     3001  leader        900        0
     3002  voter         890       10     800 ms
     3003  voter     unknown  unknown
        1  observer      900        0    1.00 ms
  epoch 7, high watermark 890

Partitions with problems
  topic   partition  leader  replicas  in sync  problem
  orders          2  none    2         2        offline
  orders          0  1       1,2,3     1        below min.insync.replicas
  orders          1  1       1,2       1        below min.insync.replicas

Features
  feature           finalized  supported  brokers
  metadata.version         29  7-30       all
"""


def words(text: str) -> list[list[str]]:
    """Split a text into words: the width of an address varies."""
    return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def controllers() -> Iterator[str]:
    with hostile_broker(bodies_of=Controllers) as address:
        yield address


def test_everything_that_a_broker_says(controllers: str) -> None:
    result = run("cluster", controllers)
    assert result.exit_code == 1
    shown = result.stdout.replace(controllers, "HOST:PORT")
    assert words(shown) == words(EVERYTHING)
    found = json.loads(run("cluster", controllers, "-f", "json").stdout)
    assert (found["controller_id"], found["healthy"], found["unavailable"]) == (3001, False, {})
    assert [each["is_fenced"] for each in found["brokers"]] == [False, True]
    assert found["offline"] == [
        {"topic": TOPIC, "partition": 2, "leader": -1, "replicas": [2], "isr": [2]}
    ]
    assert [each["partition"] for each in found["below_min_isr"]] == [0, 1]
    assert [each["partition"] for each in found["under_replicated"]] == [0, 1]
    assert [each["lag"] for each in found["quorum"]["voters"]] == [0, 10, None]
    assert [each["behind_ms"] for each in found["quorum"]["observers"]] == [1]
    directory = found["brokers"][0]["log_dirs"][0]
    assert (directory["path"], directory["replicas"], directory["size"]) == ("/a", 2, 2000)


def test_the_first_partitions_and_all(controllers: str) -> None:
    shown = run("cluster", "-b", controllers, "--top", "1").stdout
    assert "... and 2 more partitions (--top 3 or --all shows them)" in shown
    assert "more partitions" not in run("cluster", "-b", controllers, "--all").stdout


def test_lines_of_hostile_text_fit_a_terminal() -> None:
    with hostile_broker() as address:
        shown = on_a_terminal("cluster", address, columns=80)
    assert "high watermark" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(text_width, plain.splitlines())) <= 80


def test_what_is_forbidden_is_said_and_is_not_zero() -> None:
    with hostile_broker(bodies_of=Forbidding) as address:
        shown = run("cluster", address).stdout
        found = json.loads(run("cluster", address, "-f", "json").stdout)
    assert "1 offline, unknown below min.insync.replicas, 2 under-replicated" in shown
    assert "  quorum: CLUSTER_AUTHORIZATION_FAILED: quorum\n" in shown
    assert f"  min.insync.replicas: TOPIC_AUTHORIZATION_FAILED: {TOPIC}\n" in shown
    assert (found["quorum"], found["below_min_isr"]) == (None, None)
    assert found["unavailable"]["quorum"] == "CLUSTER_AUTHORIZATION_FAILED: quorum"


@pytest.mark.parametrize("release", ["4.3", "2.2"])
def test_our_own_cluster_loses_a_broker(release: str) -> None:
    with ServerThread(ServerConfig(brokers=3, release=release)) as server:
        server.create_topic("pair", 1, 2, {"min.insync.replicas": "2"})
        server.create_topic("triple", 1, 3, {"min.insync.replicas": "2"})
        healthy = run("cluster", server.bootstrap)
        assert healthy.exit_code == 0, healthy.output
        assert "2 topics, 2 partitions: 0 offline, 0 below" in healthy.stdout
        without_quorum = "quorum: not supported by the broker\n" in healthy.stdout
        assert without_quorum == (release == "2.2")
        assert ("fenced brokers: not supported" in healthy.stdout) == (release == "2.2")
        stopped = server.leader("pair")
        server.stop(stopped)
        addresses = server.bootstrap.split(",")
        remaining = ",".join(addresses[: stopped - 1] + addresses[stopped:])
        result = run("cluster", remaining)
        found = json.loads(run("cluster", remaining, "-f", "json").stdout)
    assert result.exit_code == 1, result.output
    assert "0 offline, 1 below min.insync.replicas, 2 under-replicated" in result.stdout
    assert [each["topic"] for each in found["below_min_isr"]] == ["pair"]
    assert [each["topic"] for each in found["under_replicated"]] == ["pair", "triple"]


def test_addresses_and_options(controllers: str) -> None:
    for words in (("a:1", "-b", "b:1"), ("no:where",), (controllers, "--all", "--top", "1")):
        assert run("cluster", *words).exit_code == 2, words
    unreachable = run("cluster", "127.0.0.1:1", "-X", "default.api.timeout.ms=300")
    assert (unreachable.exit_code, unreachable.stdout) == (1, "")
