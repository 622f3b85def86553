"""Rules about requests that wait, replicas, formats, racks and assignors."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.capture.wire import ACK, FIN
from tests.capture.written import CLIENT

from .stories import NOW_MS, Story, batch, rules


def pipelined(times: int, latency: float, depth: int = 3) -> Story:
    """Produce with requests in flight: one response after the other, `latency` apart."""
    story = Story()
    for _ in range(times):
        sent = []
        for _ in range(depth):
            story.request("Produce", 8, acks=-1, timeoutMs=100, topicData=[])
            sent.append(story.last_request)
        for number in sent:
            story.last_request = number
            story.wait(latency).respond("Produce", 8)
    return story


def test_requests_that_wait_for_those_before_them(tmp_path: Path) -> None:
    one = rules(pipelined(30, 0.15), tmp_path)["head-of-line-blocking"]
    assert (one["count"], one["subject"]["client"]) == (60, "tester")
    assert one["settings"][0]["value"] == "3 in flight"


def test_requests_that_hardly_wait_or_one_at_a_time(tmp_path: Path) -> None:
    assert rules(pipelined(30, 0.04), tmp_path) == {}
    assert rules(pipelined(90, 0.15, depth=1), tmp_path) == {}
    assert rules(pipelined(20, 0.15), tmp_path) == {}


def giving_up(waits: list[float], name: str = "OffsetCommit") -> Story:
    story = Story().exchange("Metadata", 5, 99)
    for connection, seconds in enumerate(waits):
        story.request(name, 5, connection).wait(seconds).close(connection)
    return story


def test_a_client_with_a_short_timeout(tmp_path: Path) -> None:
    one = rules(giving_up([1, 1.1, 1.05]), tmp_path)["short-timeouts"]
    assert one["settings"] == [{"key": "request.timeout.ms", "value": "about 1,001 ms"}]
    assert one["subject"]["api"] == "OffsetCommit"


def test_connections_that_are_reset_after_the_client_closed(tmp_path: Path) -> None:
    """How long a client waited is stated by its FIN, whatever comes late."""
    story = Story().exchange("Metadata", 5, 99)
    for connection, late in enumerate([0.5, 2, 3]):
        story.request("OffsetCommit", 5, connection)
        story.wait(1).segment(connection, CLIENT, FIN | ACK, b"")
        story.wait(late).reset(connection)
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["short-timeouts"]
    assert by_rule["short-timeouts"]["settings"][0]["value"] == "about 1,001 ms"


@pytest.mark.parametrize("waits", [[1, 1.1], [1, 2, 3], [0.1, 0.1, 0.1]])
def test_clients_that_close_now_and_then(waits: list[float], tmp_path: Path) -> None:
    assert rules(giving_up(waits), tmp_path) == {}


def stalling(connections: int, seconds: float) -> Story:
    story = Story()
    sent = []
    for connection in range(connections):
        story.exchange("OffsetCommit", 5, connection)
        story.request("OffsetCommit", 5, connection)
        sent.append(story.last_request)
    story.wait(seconds)
    for connection, number in enumerate(sent):
        story.last_request = number
        story.respond("OffsetCommit", 5, connection)
    return story


def test_a_broker_that_responds_to_all_at_once(tmp_path: Path) -> None:
    one = rules(stalling(6, 1), tmp_path)["broker-stalls"]
    assert (one["count"], one["subject"]) == (1, {"broker": "10.0.0.2:9092"})
    assert one["what"] == "responded to nobody for 1.0 s, 1 time"


def test_a_pause_that_few_notice_or_that_is_short(tmp_path: Path) -> None:
    assert rules(stalling(4, 1), tmp_path) == {}
    assert rules(stalling(6, 0.4), tmp_path) == {}


def fetched(version: int, records: str, times: int, story: Story | None = None) -> Story:
    story = story or Story()
    for _ in range(times):
        partition = {"partitionIndex": 0, "records": records, "highWatermark": 9}
        story.exchange(
            "Fetch",
            version,
            replicaId=-1,
            client_id="old" if version < 4 else "new",
            response={"responses": [{"topic": "orders", "partitions": [partition]}]},
        ).wait(1)
    return story


def old_records() -> str:
    body = struct.pack(">bbqi1si1s", 1, 0, NOW_MS, 1, b"k", 1, b"v")
    return b64encode(struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body).decode()


def test_records_that_are_converted(tmp_path: Path) -> None:
    story = fetched(2, old_records(), 12, fetched(4, batch(), 1))
    one = rules(story, tmp_path)["down-conversion"]
    assert (one["count"], one["subject"]) == (12, {"client": "old", "topic": "orders"})
    assert "down-conversion" in rules(fetched(2, old_records(), 12, Story().produce()), tmp_path)


def test_a_topic_that_has_the_old_format(tmp_path: Path) -> None:
    assert "down-conversion" not in rules(fetched(2, old_records(), 12), tmp_path)
    assert "down-conversion" not in rules(
        fetched(2, old_records(), 9, fetched(4, batch(), 1)), tmp_path
    )


def in_rack(rack: str, size: int, times: int = 3) -> Story:
    broker = {"nodeId": 1, "host": "10.0.0.2", "port": 9092, "rack": "a"}
    story = Story().exchange("Metadata", 7, response={"brokers": [broker], "topics": []})
    for _ in range(times):
        partition = {"partitionIndex": 0, "records": batch(size), "highWatermark": 9}
        answer = {"responses": [{"topic": "orders", "partitions": [partition]}]}
        story.exchange("Fetch", 11, replicaId=-1, rackId=rack, response=answer).wait(1)
    return story


LESS = "--set", "other-rack.bytes=100000"


def test_a_consumer_that_reads_from_another_rack(tmp_path: Path) -> None:
    one = rules(in_rack("b", 40_000), tmp_path, *LESS)["other-rack"]
    assert one["settings"][0] == {"key": "client.rack", "value": "b"}
    assert one["subject"] == {"client": "tester", "broker": "10.0.0.2:9092"}


def between_racks(replicas: dict[int, list[int]]) -> Story:
    """A consumer in rack b reads partitions of broker 1 in rack a. replicas: of each partition."""
    racks = {1: "a", 2: "b", 3: "c"}
    brokers = [
        {"nodeId": number, "host": f"10.0.0.{number + 1}", "port": 9092, "rack": rack}
        for number, rack in racks.items()
    ]
    partitions = [
        {"partitionIndex": number, "leaderId": 1, "replicaNodes": nodes, "isrNodes": nodes}
        for number, nodes in replicas.items()
    ]
    topics = [{"name": "orders", "partitions": partitions}]
    story = Story()
    for number in replicas:
        partition = {"partitionIndex": number, "records": batch(60_000), "highWatermark": 9}
        answer = {"responses": [{"topic": "orders", "partitions": [partition]}]}
        story.exchange("Fetch", 11, replicaId=-1, rackId="b", response=answer).wait(1)
    return story.exchange("Metadata", 7, response={"brokers": brokers, "topics": topics})


def test_partitions_with_a_replica_in_the_rack_of_their_consumer(tmp_path: Path) -> None:
    """Bytes of partitions that have no nearer replica do not count."""
    one = rules(between_racks({0: [1, 2], 1: [1, 3], 2: [1, 2]}), tmp_path, *LESS)["other-rack"]
    size = 60_073
    assert one["cost"]["bytes"] == 2 * size
    assert f"of orders 0 ({size:,}), orders 2 ({size:,}); the client is in 'b'" in one["what"]
    assert one["confidence"] == "high"
    assert rules(between_racks({0: [1, 3], 1: [1]}), tmp_path, *LESS) == {}


def test_replicas_that_are_not_known(tmp_path: Path) -> None:
    one = rules(in_rack("b", 40_000), tmp_path, *LESS)["other-rack"]
    assert one["confidence"] == "medium"
    assert one["what"].endswith("which may have replicas of them")


def test_a_consumer_of_the_same_rack_or_of_none(tmp_path: Path) -> None:
    for rack, size in (("a", 40_000), ("", 40_000), ("b", 10_000)):
        assert rules(in_rack(rack, size), tmp_path, *LESS) == {}


def committed_reads(
    seconds: float, isolation: int = 1, end: int = 50, moves: bool = False
) -> Story:
    story = Story()
    for number in range(4):
        stable = 10 + number * moves
        partition = {"partitionIndex": 2, "highWatermark": end, "lastStableOffset": stable}
        answer = {"responses": [{"topic": "orders", "partitions": [partition]}]}
        story.exchange("Fetch", 4, replicaId=-1, isolationLevel=isolation, response=answer)
        story.wait(seconds / 3)
    return story


def test_a_consumer_behind_an_open_transaction(tmp_path: Path) -> None:
    one = rules(committed_reads(40), tmp_path)["read-committed-stalled"]
    assert one["subject"] == {"client": "tester", "topic": "orders", "partition": 2}
    assert one["what"] == "nothing for 40 s, with 40 records behind the last stable offset"
    assert (
        rules(committed_reads(1000), tmp_path)["read-committed-stalled"]["severity"] == "critical"
    )


def test_consumers_that_get_on_or_have_all(tmp_path: Path) -> None:
    assert rules(committed_reads(20), tmp_path) == {}
    assert rules(committed_reads(40, isolation=0), tmp_path) == {}
    assert rules(committed_reads(40, end=10), tmp_path) == {}
    assert rules(committed_reads(40, moves=True), tmp_path) == {}


def replicated(in_sync: list[int], times: int = 1) -> Story:
    story = Story()
    for _ in range(times):
        partition = {"partitionIndex": 0, "replicaNodes": [1, 2, 3], "isrNodes": in_sync}
        topic = {"name": "orders", "partitions": [{**partition, "leaderId": 1}]}
        story.exchange("Metadata", 7, response={"topics": [topic]}).wait(40)
    return story


def test_replicas_that_are_not_in_sync(tmp_path: Path) -> None:
    one = rules(replicated([1, 2]), tmp_path)["under-replicated"]
    assert (one["severity"], one["subject"]) == ("notice", {"topic": "orders"})
    assert one["what"] == "1 partition with 2 of 3 replicas in sync"
    assert rules(replicated([1], 2), tmp_path)["under-replicated"]["severity"] == "warning"
    assert rules(replicated([1, 2, 3], 2), tmp_path) == {}


def ends(*offsets: int, every: float = 2, replica: int = -1, **fields: Any) -> Story:
    story = Story()
    for offset in offsets:
        partition = {"partitionIndex": 0, "highWatermark": offset, **fields}
        answer = {"responses": [{"topic": "orders", "partitions": [partition]}]}
        story.exchange("Fetch", 12, replicaId=replica, response=answer).wait(every)
    return story


def test_a_log_that_becomes_shorter(tmp_path: Path) -> None:
    one = rules(ends(100, 120, 90), tmp_path)["log-truncation"]
    assert one["what"] == "the high watermark went back by 30 records"
    assert one["subject"] == {"topic": "orders", "partition": 0}
    diverging: dict[str, Any] = {"divergingEpoch": {"epoch": 3, "endOffset": 80}}
    assert "diverging" in rules(ends(100, **diverging), tmp_path)["log-truncation"]["what"]


def ending(*, high_watermark: int, end: int, epoch: int = 4, replica: int = -1) -> Story:
    """A consumer reads up to a high watermark in leader epoch 4; then it states where one ended."""
    story = Story()
    stated = {"partition": 0, "currentLeaderEpoch": 4}
    partition = {"partitionIndex": 0, "highWatermark": high_watermark}
    topic = {"topic": "orders", "partitions": [stated]}
    response: Any = {"responses": [{"topic": "orders", "partitions": [partition]}]}
    story.exchange("Fetch", 12, replicaId=replica, topics=[topic], response=response).wait(2)
    partition = {"partition": 0, "leaderEpoch": epoch, "endOffset": end}
    response = {"topics": [{"topic": "orders", "partitions": [partition]}]}
    stated = {"partition": 0, "currentLeaderEpoch": 5, "leaderEpoch": epoch}
    topic = {"topic": "orders", "partitions": [stated]}
    return story.exchange(
        "OffsetForLeaderEpoch", 3, replicaId=replica, topics=[topic], response=response
    )


def test_a_leader_without_records_that_consumers_could_read(tmp_path: Path) -> None:
    one = rules(ending(high_watermark=40, end=20), tmp_path)["log-truncation"]
    assert one["what"] == "a leader lacks 20 records that consumers could read"
    assert one["severity"] == "critical"
    assert one["subject"] == {"topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    "story",
    [
        ending(high_watermark=40, end=40),
        ending(high_watermark=40, end=20, epoch=3),  # it had ended before
        ending(high_watermark=40, end=-1),  # unknown
        ending(high_watermark=40, end=20, replica=2),  # a follower
    ],
)
def test_epochs_that_end_where_they_should(story: Story, tmp_path: Path) -> None:
    assert rules(story, tmp_path) == {}


def test_logs_that_grow_and_those_of_followers(tmp_path: Path) -> None:
    assert rules(ends(100, 120, 120), tmp_path) == {}
    assert rules(ends(100, 120, 119, 121, every=0.1), tmp_path) == {}  # out of order
    assert rules(ends(100, 90, replica=2), tmp_path) == {}


IDS = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def epochs(*stated: tuple[int, int], every: float = 3, version: int = 12, ids: int = 1) -> Story:
    """Metadata responses: the number of the broker, and the leader epoch that it states.

    ids: how many ids the topic has, one for each 3 responses.
    """
    story = Story()
    story.broker_ports = {1: 9093, 2: 9094}
    for number, (broker, epoch) in enumerate(stated):
        partition = {"partitionIndex": 0, "leaderId": 1, "leaderEpoch": epoch}
        topic = {"name": "orders", "partitions": [partition]}
        if version >= 10:
            topic["topicId"] = IDS[min(number // 3, ids - 1)]
        story.exchange("Metadata", version, broker, response={"topics": [topic]}).wait(every)
    return story


def test_a_broker_with_old_leader_epochs(tmp_path: Path) -> None:
    story = epochs((0, 4), (1, 4), (0, 5), (1, 4), (1, 4), (1, 4), (0, 5))
    one = rules(story, tmp_path)["stale-brokers"]
    assert one["subject"] == {"broker": "10.0.0.2:9093"}
    assert one["what"] == (
        "old leader epochs of 1 partition in 2 Metadata responses, up to 9 s after newer ones by "
        "other brokers"
    )


def test_a_broker_whose_leader_epochs_go_back(tmp_path: Path) -> None:
    one = rules(epochs((0, 5), (0, 5), (0, 5), (0, 2), (0, 2)), tmp_path)["stale-brokers"]
    assert one["what"].endswith("after newer ones")
    assert "lost" in one["cause"]


def test_leader_epochs_of_brokers_that_catch_up_and_of_new_topics(tmp_path: Path) -> None:
    brief = epochs((0, 4), (0, 5), (1, 4), (1, 4), (1, 4), every=1)
    assert "stale-brokers" not in rules(brief, tmp_path)
    assert "stale-brokers" not in rules(epochs((0, 5), (0, 5), (0, 5), (0, 2)), tmp_path)
    assert "stale-brokers" not in rules(epochs((0, 5), (1, 5), (0, 6), (1, 6)), tmp_path)
    unknown = epochs((0, 5), (0, 5), (0, 5), (0, -1), (0, -1))
    assert "stale-brokers" not in rules(unknown, tmp_path)
    again = (0, 5), (0, 5), (0, 5), (0, 0), (0, 0), (0, 0)
    assert "stale-brokers" in rules(epochs(*again), tmp_path)
    assert "stale-brokers" not in rules(epochs(*again, ids=2), tmp_path)
    assert "stale-brokers" not in rules(epochs(*again, version=9), tmp_path)


def joining(*assignors: list[str]) -> Story:
    story = Story()
    for number, names in enumerate(assignors):
        protocols = [{"name": name, "metadata": ""} for name in names]
        story.exchange(
            "JoinGroup",
            5,
            number,
            client_id=f"member-{number}",
            groupId="billing",
            protocolType="consumer",
            protocols=protocols,
        )
    return story


def test_members_with_eager_assignors_beside_cooperative_ones(tmp_path: Path) -> None:
    story = joining(["cooperative-sticky", "range"], ["range"], ["range"])
    one = rules(story, tmp_path)["eager-beside-cooperative"]
    assert one["subject"] == {"group": "billing"}
    assert one["what"] == "only eager assignors: member-1, member-2; cooperative: member-0"


def test_groups_with_one_kind_of_assignors(tmp_path: Path) -> None:
    assert rules(joining(["range"], ["range"]), tmp_path) == {}
    assert rules(joining(*[["cooperative-sticky", "range"]] * 3), tmp_path) == {}
    assert rules(joining(["cooperative-sticky"], ["range"]), tmp_path) == {}


def with_partitions(*latencies: float, times: int = 60) -> Story:
    """Produce to partitions, whose requests take so many seconds."""
    story = Story()
    for _ in range(times):
        for partition, latency in enumerate(latencies):
            story.produce(partition=partition, latency=latency)
    return story


def together(partitions: int, latency: float) -> Story:
    """Produce to all partitions with each request."""
    story = Story()
    for _ in range(60):
        data = [{"index": one, "records": batch()} for one in range(partitions)]
        topics = [{"name": "orders", "partitionData": data}]
        story.exchange("Produce", 8, acks=-1, topicData=topics, latency=latency)
    return story


def test_a_partition_that_is_slower_than_others(tmp_path: Path) -> None:
    one = rules(with_partitions(0.005, 0.005, 0.09, 0.006), tmp_path)["slow-partition"]
    assert one["subject"] == {
        "topic": "orders", "partition": 2, "broker": "10.0.0.2:9092", "api": "Produce"
    }  # fmt: skip
    assert one["what"].startswith("median 9")
    assert one["count"] == 60


def test_partitions_that_are_equally_slow_few_or_in_the_same_requests(tmp_path: Path) -> None:
    assert rules(with_partitions(0.09, 0.09, 0.09, 0.1), tmp_path) == {}
    assert rules(with_partitions(0.02, 0.02, 0.06, 0.02), tmp_path) == {}
    assert rules(with_partitions(0.005, 0.09, 0.005), tmp_path) == {}
    assert rules(with_partitions(0.005, 0.005, 0.09, 0.006, times=45), tmp_path) == {}
    assert rules(together(5, 0.09), tmp_path) == {}


def reading(*latencies: float, behind: int = 100, **options: Any) -> Story:
    """Fetch partitions one after the other; end offsets are so many records ahead."""
    story = Story()
    options.setdefault("minBytes", 1)
    for number in range(60):
        for partition, latency in enumerate(latencies):
            one = {"partition": partition, "fetchOffset": number}
            answer = {
                "partitionIndex": partition,
                "records": batch(),
                "highWatermark": number + 1 + behind,
                "lastStableOffset": number + 1,
            }
            story.exchange(
                "Fetch",
                4,
                latency=latency,
                replicaId=-1,
                maxWaitMs=500,
                **options,
                topics=[{"topic": "orders", "partitions": [one]}],
                response={"responses": [{"topic": "orders", "partitions": [answer]}]},
            )
    return story


def test_a_partition_from_which_records_come_slowly(tmp_path: Path) -> None:
    one = rules(reading(0.005, 0.005, 0.09, 0.006), tmp_path)["slow-partition"]
    assert (one["subject"]["partition"], one["subject"]["api"]) == (2, "Fetch")
    assert one["count"] == 59  # the end is not known before the first response


def test_partitions_whose_requests_wait_for_records(tmp_path: Path) -> None:
    assert rules(reading(0.005, 0.005, 0.09, 0.006, behind=0), tmp_path) == {}
    assert rules(reading(0.005, 0.005, 0.09, 0.006, minBytes=50_000), tmp_path) == {}
    assert rules(reading(0.005, 0.005, 0.09, 0.006, isolationLevel=1), tmp_path) == {}
