"""Rules about clients, connections, brokers and the network."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.display import time_text
from tests.capture.wire import ACK, FIN
from tests.capture.written import BROKER, CLIENT, HOSTS

from .stories import Story, batch, rules

SOURCE_ADDRESS: Final = slice(26, 30)
"""Of IPv4 in Ethernet."""


def requesting(name: str, version: int, times: int, every: float, **fields: Any) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(name, version, **fields).wait(every)
    return story


def test_metadata_all_the_time(tmp_path: Path) -> None:
    by_rule = rules(requesting("Metadata", 5, 70, 0.5), tmp_path)
    assert list(by_rule) == ["metadata-storm"]
    assert by_rule["metadata-storm"]["subject"] == {"client": "tester", "address": "10.0.0.1"}


def test_metadata_at_the_start_or_now_and_then(tmp_path: Path) -> None:
    assert rules(requesting("Metadata", 5, 70, 0.1), tmp_path) == {}
    assert rules(requesting("Metadata", 5, 70, 2), tmp_path) == {}
    assert rules(requesting("Metadata", 5, 50, 0.5), tmp_path) == {}


def throttled(times: int, ms: int) -> Story:
    return requesting("Fetch", 4, times, 0.1, replicaId=-1, response={"throttleTimeMs": ms})


def test_time_lost_by_quotas(tmp_path: Path) -> None:
    by_rule = rules(throttled(3, 500), tmp_path)
    assert list(by_rule) == ["throttling"]
    assert by_rule["throttling"]["cost"]["time_ns"] == 1_500_000_000
    assert rules(throttled(3, 300), tmp_path) == {}
    assert rules(throttled(3, 400_000), tmp_path) == {}  # garbage


def test_versions_that_a_release_drops(tmp_path: Path) -> None:
    by_rule = rules(requesting("CreateTopics", 1, 1, 0), tmp_path)
    assert by_rule["old-versions"]["reference"] == "Kafka 4.0, KIP-896"
    assert rules(requesting("CreateTopics", 2, 1, 0), tmp_path) == {}
    assert rules(requesting("StopReplica", 3, 1, 0, controllerId=1), tmp_path) == {}


def unanswered(times: int, seconds: float, **fields: Any) -> Story:
    story = Story().exchange("Metadata", 5)
    for _ in range(times):
        story.request("Metadata", 5, **fields)
    story.wait(seconds)
    return story.close()  # type: ignore[return-value]


def test_requests_without_a_response(tmp_path: Path) -> None:
    by_rule = rules(unanswered(1, 10), tmp_path)
    assert list(by_rule) == ["unanswered-requests"]
    assert by_rule["unanswered-requests"]["severity"] == "warning"
    assert rules(unanswered(20, 10), tmp_path)["unanswered-requests"]["severity"] == "critical"
    assert rules(unanswered(20, 3), tmp_path) == {}


def test_responses_that_the_capture_lacks(tmp_path: Path) -> None:
    story = Story()
    for _ in range(20):
        story.request("Metadata", 5)
    by_rule = rules(story.wait(10).close(), tmp_path)
    assert list(by_rule) == ["one-way-captures"]
    assert by_rule["one-way-captures"]["subject"] == {"broker": "10.0.0.2:9092"}
    story = unanswered(1, 10).exchange("Metadata", 5, 1).exchange("Metadata", 5, 1)
    del story.packets[3]  # the first response
    story.wait(10).close(1)
    assert "unanswered-requests" not in rules(story, tmp_path)


def test_connections_of_which_only_the_broker_was_captured(tmp_path: Path) -> None:
    """As with the filter `src port 9092`."""
    story = Story().exchange("Metadata", 5).exchange("ListGroups", 4)
    broker = ip_address(HOSTS[BROKER]).packed
    story.packets = [one for one in story.packets if one.data[SOURCE_ADDRESS] == broker]
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["one-way-captures"]
    assert by_rule["one-way-captures"]["what"].startswith("1 connection, and nothing of")


def test_a_few_requests_at_the_edge_of_a_capture(tmp_path: Path) -> None:
    story = Story()
    for _ in range(9):
        story.request("Metadata", 5)
    assert rules(story.close(), tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "version", "fields"),
    [
        ("JoinGroup", 5, {"groupId": "billing", "protocolType": "consumer"}),
        ("Fetch", 4, {"replicaId": -1, "maxWaitMs": 8000}),
        ("Produce", 8, {"acks": 0, "timeoutMs": 100}),
    ],
)
def test_requests_that_wait_on_purpose(
    name: str, version: int, fields: dict[str, Any], tmp_path: Path
) -> None:
    story = Story()
    story.request(name, version, **fields).wait(10).close()
    assert rules(story, tmp_path) == {}


def test_responses_that_come_late(tmp_path: Path) -> None:
    by_rule = rules(Story().exchange("Metadata", 5, latency=6), tmp_path)
    assert list(by_rule) == ["slow-responses"]
    assert by_rule["slow-responses"]["cost"]["time_ns"] > 6 * 10**9
    assert "average" not in by_rule["slow-responses"]["what"]
    twice = Story().exchange("Metadata", 5, latency=6).exchange("Metadata", 5, latency=8)
    assert "7.0 s on average" in rules(twice, tmp_path)["slow-responses"]["what"]
    assert rules(Story().exchange("Metadata", 5, latency=4), tmp_path) == {}
    story = Story().exchange("Fetch", 4, replicaId=-1, maxWaitMs=8000, latency=8)
    assert rules(story, tmp_path) == {}


def closing(client_waits: float, broker_waits: float, name: str = "OffsetCommit") -> Story:
    """A client closes while its request is pending; the broker does later."""
    story = Story().exchange("Metadata", 5)
    story.request(name, 5).wait(client_waits).segment(0, CLIENT, FIN | ACK, b"")
    story.wait(broker_waits).segment(0, BROKER, FIN | ACK, b"")
    return story


def test_a_broker_that_closes_late_after_its_client(tmp_path: Path) -> None:
    by_rule = rules(closing(1, 7), tmp_path)
    assert list(by_rule) == ["slow-responses"]
    one = by_rule["slow-responses"]
    assert one["what"] == "1 close instead of a response after 8.0 s"
    assert one["subject"]["api"] == "OffsetCommit"
    late = Story().exchange("Metadata", 5)
    late.request("OffsetCommit", 5).wait(1).segment(0, CLIENT, FIN | ACK, b"")
    late.wait(7).respond("OffsetCommit", 5)
    assert rules(late, tmp_path)["slow-responses"]["cost"]["time_ns"] > 8 * 10**9


def test_brokers_that_close_with_their_clients(tmp_path: Path) -> None:
    """Of a client that waited for long itself, unanswered-requests has the finding alone."""
    assert rules(closing(1, 3), tmp_path) == {}
    assert rules(closing(1, 20, "JoinGroup"), tmp_path) == {}
    assert list(rules(closing(7, 7), tmp_path)) == ["unanswered-requests"]


def connecting(times: int, life: float, every: float) -> Story:
    story = Story()
    for connection in range(times):
        story.exchange("Metadata", 5, connection)
        story.wait(life).close(connection)
        story.wait(every)
    return story


def test_connections_all_the_time(tmp_path: Path) -> None:
    by_rule = rules(connecting(60, 0.1, 0.1), tmp_path, "--disable", "metadata-storm")
    assert list(by_rule) == ["connection-churn"]
    assert by_rule["connection-churn"]["subject"]["client"] == "tester"


def test_few_rare_or_long_connections_are_no_trouble(tmp_path: Path) -> None:
    assert rules(connecting(40, 0.1, 0.1), tmp_path) == {}
    assert rules(connecting(60, 0.1, 4), tmp_path) == {}
    assert rules(connecting(60, 20, 0), tmp_path) == {}


def holding(times: int, closed: int = 0, clients: int = 1, every: float = 2) -> Story:
    """Open connections; the first ones are closed before the next ones are opened."""
    story = Story()
    for connection in range(times):
        story.exchange("Metadata", 5, connection, client_id=f"c{connection % clients}").wait(every)
        if connection < closed:
            story.wait(12).close(connection)
    return story


def test_many_connections_at_the_same_time(tmp_path: Path) -> None:
    by_rule = rules(holding(55, closed=5), tmp_path)
    assert list(by_rule) == ["many-connections"]
    one = by_rule["many-connections"]
    assert one["subject"] == {"client": "c0", "address": "10.0.0.1", "broker": "10.0.0.2:9092"}
    assert one["what"] == "50 connections to one broker at the same time"


def test_connections_that_are_closed_short_or_of_several_clients(tmp_path: Path) -> None:
    assert rules(holding(55, closed=6), tmp_path) == {}
    assert rules(holding(60, clients=2), tmp_path) == {}
    story = holding(60, every=0)
    for connection in range(60):
        story.close(connection)
    assert "many-connections" not in rules(story, tmp_path)


def resetting(times: int, in_flight: bool, after: float = 0.2) -> Story:
    story = Story()
    for connection in range(times):
        if in_flight:
            story.request("Metadata", 5, connection)
        else:
            story.exchange("Metadata", 5, connection)
        story.wait(after).reset(connection)
    return story


def test_clients_that_close_before_a_late_response(tmp_path: Path) -> None:
    story = Story()
    for connection in range(3):
        story.request("Metadata", 5, connection).wait(0.15 * (connection + 1))
        story.segment(connection, CLIENT, FIN | ACK, b"").respond("Metadata", 5, connection)
        story.reset(connection, CLIENT)
    assert rules(story, tmp_path) == {}


def test_a_client_waits_until_it_closes_its_connection(tmp_path: Path) -> None:
    """The broker, which hangs, resets the connection a minute later."""
    for waits, expected in ((3, []), (6, ["unanswered-requests"])):
        story = Story().exchange("Metadata", 5)
        story.request("Metadata", 5).wait(waits).segment(0, CLIENT, FIN | ACK, b"")
        assert list(rules(story.wait(60).reset(0), tmp_path)) == expected


def test_connections_that_are_reset(tmp_path: Path) -> None:
    assert list(rules(resetting(3, True), tmp_path)) == ["connection-resets"]
    assert rules(resetting(2, True), tmp_path) == {}
    assert rules(resetting(3, False), tmp_path) == {}
    assert rules(resetting(3, True, after=0), tmp_path) == {}


def test_consumers_that_close_while_they_poll(tmp_path: Path) -> None:
    story = Story()
    for connection in range(3):
        story.request("Fetch", 4, connection, replicaId=-1, maxWaitMs=500)
        story.wait(0.2).reset(connection)
    assert rules(story, tmp_path) == {}


def two_brokers(slow: float, fast: float, times: int = 100) -> Story:
    story = Story()
    story.broker_ports[1] = 9093
    for _ in range(times):
        story.exchange("OffsetFetch", 5, 0, groupId="g", latency=fast)
        story.exchange("OffsetFetch", 5, 1, groupId="g", latency=slow)
    return story


def test_a_broker_that_is_slower_than_the_other(tmp_path: Path) -> None:
    by_rule = rules(two_brokers(0.2, 0.01), tmp_path)
    assert list(by_rule) == ["slow-broker"]
    assert by_rule["slow-broker"]["subject"] == {"broker": "10.0.0.2:9093", "api": "OffsetFetch"}


def test_brokers_that_are_equally_slow_or_fast(tmp_path: Path) -> None:
    assert rules(two_brokers(0.2, 0.2), tmp_path) == {}
    assert rules(two_brokers(0.015, 0.001), tmp_path) == {}
    assert rules(two_brokers(0.2, 0.01, times=50), tmp_path) == {}


def led_by(*leaders: tuple[int, int]) -> Story:
    story = Story()
    for leader, epoch in leaders:
        partition = {"partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch}
        topic = {"name": "orders", "partitions": [partition]}
        story.exchange("Metadata", 7, response={"topics": [topic]}).wait(5)
    return story


def led_elsewhere(api: str, version: int, topics: Any, response: Any, before: int = 1) -> Story:
    """The leader of a Metadata response; then an error that names another one."""
    fields = {"acks": -1, "topicData": topics} if api == "Produce" else {"topics": topics}
    if api == "Fetch":
        fields["replicaId"] = -1
    return led_by((before, 5)).exchange(api, version, response={"responses": response}, **fields)


def test_an_error_that_names_the_new_leader(tmp_path: Path) -> None:
    """KIP-951: clients need no Metadata response for it."""
    error = {"errorCode": 6, "currentLeader": {"leaderId": 2, "leaderEpoch": 6}}
    sent = [{"name": "orders", "partitionData": [{"index": 0, "records": batch()}]}]
    failed = [{"name": "orders", "partitionResponses": [{"index": 0, **error}]}]
    produced = led_elsewhere("Produce", 10, sent, failed)
    fetched = led_elsewhere(
        "Fetch",
        12,
        [{"topic": "orders", "partitions": [{"partition": 0}]}],
        [{"topic": "orders", "partitions": [{"partitionIndex": 0, **error}]}],
    )
    for story in produced, fetched:
        by_rule = rules(story, tmp_path)
        assert list(by_rule) == ["leader-elections"]
        assert by_rule["leader-elections"]["subject"] == {"broker_id": 1}
    assert rules(led_elsewhere("Produce", 10, sent, failed, before=2), tmp_path) == {}
    unnamed = [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 6}]}]
    assert rules(led_elsewhere("Produce", 10, sent, unnamed), tmp_path) == {}


def test_a_leader_that_changes(tmp_path: Path) -> None:
    by_rule = rules(led_by((1, 5), (2, 6), (2, 6)), tmp_path)
    assert list(by_rule) == ["leader-elections"]
    assert by_rule["leader-elections"]["subject"] == {"broker_id": 1}
    assert by_rule["leader-elections"]["count"] == 1


def test_metadata_of_a_broker_that_is_behind(tmp_path: Path) -> None:
    assert rules(led_by((1, 5), (1, 5), (2, 4), (-1, 6)), tmp_path) == {}


def test_a_broker_that_shuts_down(tmp_path: Path) -> None:
    by_rule = rules(requesting("ControlledShutdown", 1, 1, 0, brokerId=3), tmp_path)
    assert by_rule["controlled-shutdowns"]["subject"] == {"broker_id": 3}
    story = requesting("BrokerHeartbeat", 0, 1, 0, brokerId=3, wantShutDown=False)
    assert rules(story, tmp_path) == {}
    story = requesting("BrokerHeartbeat", 0, 1, 0, brokerId=3, wantShutDown=True)
    assert "controlled-shutdowns" in rules(story, tmp_path)


def repeating(share: float) -> Story:
    """Send some packets of a connection twice."""
    story = Story()
    for _ in range(100):
        story.produce(acks=1, client_id="c" * 10_000)
    sent = [packet for packet in story.packets if len(packet.data) > 10_000]
    story.packets += sent[: int(len(sent) * share)]
    story.packets.sort(key=lambda packet: packet.time_ns)
    return story


def test_retransmissions(tmp_path: Path) -> None:
    by_rule = rules(repeating(0.12), tmp_path)
    assert by_rule["retransmissions"]["severity"] == "warning"
    assert rules(repeating(0.9), tmp_path)["retransmissions"]["severity"] == "notice"
    assert rules(repeating(0.08), tmp_path) == {}


def test_packets_that_both_hosts_captured_with_other_clocks(tmp_path: Path) -> None:
    """The packets of one host come when the connection has ended at the other."""
    story = Story()
    for _ in range(50):
        story.produce(acks=1, client_id="c" * 10_000)
    story.close()
    story.packets += [one._replace(time_ns=one.time_ns + 10**9) for one in story.packets]
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["retransmissions"]
    finding = by_rule["retransmissions"]
    assert finding["severity"] == "notice"
    assert "(50.0%) were sent again on 1 connection" in finding["what"]
    assert finding["count"] == 1


def incomplete(*, cut: int = 0, lost: int = 0, late: int = 0) -> Story:
    """Lack bytes of that many requests, or have them at the end."""
    story = Story()
    for _ in range(20):
        story.exchange("Metadata", 5, client_id="c" * 100).wait(0.1)
    sent = [at for at, one in enumerate(story.packets) if len(one.data) > 100][::4]
    packets = story.packets
    for at in sent[:cut]:
        packets[at] = packets[at]._replace(
            data=packets[at].data[:96], original=len(packets[at].data)
        )
    missing = [packets.pop(at) for at in reversed(sent[cut : cut + late + lost])]
    packets += missing[:late]
    return story


@pytest.mark.parametrize(
    ("story", "cause", "advice"),
    [
        (incomplete(cut=2), "without their ends", "-s 0"),
        (incomplete(lost=2), "too slow.", "-B 65536)."),
        (incomplete(cut=1, lost=1), "too slow, and", "-B 65536) and"),
        (incomplete(late=2), "not in the order of their times", "reordercap"),
        (incomplete(late=1, lost=3), "too slow.", "-B 65536)."),
    ],
)
def test_why_bytes_are_missing(story: Story, cause: str, advice: str, tmp_path: Path) -> None:
    finding = rules(story, tmp_path)["capture-loss"]
    assert cause in finding["cause"]
    assert advice in finding["advice"]


def test_bytes_that_the_capture_lacks(tmp_path: Path) -> None:
    story = Story()
    for _ in range(10):
        story.exchange("Metadata", 5)
    del story.packets[6]
    assert "capture-loss" in rules(story, tmp_path)


def test_connections_that_are_not_decoded(tmp_path: Path) -> None:
    story = Story()
    story.send(CLIENT, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").send(
        BROKER, b"HTTP/1.1 200 OK\r\n\r\n"
    )
    by_rule = rules(story.close(), tmp_path)
    assert list(by_rule) == ["undecoded-connections"]
    assert by_rule["undecoded-connections"]["what"] == "1 connection: protocol is HTTP"
    assert by_rule["undecoded-connections"]["cause"] == "These connections are not Kafka's."


def test_another_protocol_at_the_port_of_a_broker_has_another_cause(tmp_path: Path) -> None:
    story = Story().exchange("Metadata", 5)
    story.send(CLIENT, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1)
    finding = rules(story.close(), tmp_path)["undecoded-connections"]
    assert finding["what"] == "1 connection: protocol is HTTP"
    assert "to a port at which others are served" in finding["cause"]


def test_connections_that_are_not_decoded_have_their_first_and_last_time(tmp_path: Path) -> None:
    story = Story()
    for connection in range(2):
        story.send(CLIENT, b"GET / HTTP/1.1\r\n\r\n", connection).wait(1)
        story.send(BROKER, b"HTTP/1.1 200 OK\r\n\r\n", connection).wait(1)
    finding = rules(story.close(), tmp_path)["undecoded-connections"]
    first, *_, last = (packet.time_ns for packet in story.packets)
    assert (finding["first_time"], finding["last_time"]) == (time_text(first), time_text(last))
