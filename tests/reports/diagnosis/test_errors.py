"""Rules about error codes: enough errors are a finding, fewer are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkawire.protocol.error_code import ErrorCode
from kafkawire.reports.diagnosis.registry import RULES
from kafkawire.reports.diagnosis.rules.errors.others import NORMAL

from .stories import Story, rules


def produced(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.produce(code=int(code)).wait(every)
    return story


def fetched(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.fetch(code=int(code)).wait(every)
    return story


def committed(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for number in range(times):
        story.commit(number, int(code)).wait(every)
    return story


def heartbeats(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "Heartbeat", 3, groupId="billing", memberId="m", response={"errorCode": int(code)}
        ).wait(every)
    return story


def metadata(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "Metadata", 5, response={"topics": [{"name": "orders", "errorCode": int(code)}]}
        ).wait(every)
    return story


def authenticated(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for number in range(times):
        story.exchange("SaslHandshake", 1, number, mechanism="PLAIN")
        story.exchange("SaslAuthenticate", 1, number, response={"errorCode": int(code)}).wait(every)
    return story


def ended(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange("EndTxn", 3, transactionalId="tx", response={"errorCode": int(code)}).wait(
            every
        )
    return story


def versions(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange("ApiVersions", 0, response={"errorCode": int(code)}).wait(every)
    return story


def offsets_fetched(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    partition = {"committedOffset": -1, "metadata": "", "errorCode": int(code)}
    topics = [{"name": "orders", "partitions": [partition]}]
    for _ in range(times):
        story.exchange(
            "OffsetFetch",
            7,
            groupId="billing",
            topics=[{"name": "orders", "partitionIndexes": [0]}],
            requireStable=True,
            response={"topics": topics},
        ).wait(every)
    return story


def session_fetched(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange("Fetch", 7, sessionId=9, response={"errorCode": int(code)}).wait(every)
    return story


def acknowledged(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    partition = {"currentLeader": {}, "errorCode": int(code)}
    batches = [{"lastOffset": 9, "acknowledgeTypes": [1]}]
    for _ in range(times):
        story.exchange(
            "ShareAcknowledge",
            1,
            groupId="billing",
            memberId="m",
            topics=[{"partitions": [{"acknowledgementBatches": batches}]}],
            response={"responses": [{"partitions": [partition]}]},
        ).wait(every)
    return story


def shared(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "ShareFetch", 1, groupId="billing", memberId="m", response={"errorCode": int(code)}
        ).wait(every)
    return story


def streaming(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "StreamsGroupHeartbeat",
            0,
            groupId="billing",
            memberId="m",
            response={"errorCode": int(code)},
        ).wait(every)
    return story


def add_partition(story: Story, code: int) -> Story:
    partition = {"partitionErrorCode": int(code)}
    results = [{"name": "orders", "resultsByPartition": [partition]}]
    return story.exchange(
        "AddPartitionsToTxn",
        3,
        v3AndBelowTransactionalId="tx",
        v3AndBelowTopics=[{"name": "orders", "partitions": [0]}],
        response={"resultsByTopicV3AndBelow": results},
    )


def adding(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        add_partition(story, code).wait(every)
    return story


def registered(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "BrokerRegistration", 4, clusterId="c", response={"errorCode": int(code)}
        ).wait(every)
    return story


def renewed(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange("RenewDelegationToken", 2, response={"errorCode": int(code)}).wait(every)
    return story


def described(code: int, times: int, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.exchange(
            "DescribeGroups", 5, response={"groups": [{"groupId": "g", "errorCode": int(code)}]}
        ).wait(every)
    return story


class Case(NamedTuple):
    """A rule, and how many errors of which kind are a finding. fewer: how many are none."""

    rule: str
    code: ErrorCode
    write: Callable[[int, int, float], Story]
    errors: int
    fewer: int
    every: float = 0
    subject: tuple[str, str] = ("topic", "orders")


IN_GROUP = "group", "billing"
OF_CLIENT = "client", "tester"
OF_ID = "transactional_id", "tx"
OF_BROKER = "broker", "10.0.0.2:9092"
CASES = [
    Case("stale-metadata", ErrorCode.NOT_LEADER_OR_FOLLOWER, produced, 12, 9, 0.2),
    Case("stale-metadata", ErrorCode.FENCED_LEADER_EPOCH, fetched, 12, 9, 0.2),
    Case("unknown-topics", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, metadata, 7, 4, 1),
    Case("offset-resets", ErrorCode.OFFSET_OUT_OF_RANGE, fetched, 1, 0),
    Case("zombie-commits", ErrorCode.ILLEGAL_GENERATION, committed, 1, 0, subject=IN_GROUP),
    Case("expelled-members", ErrorCode.UNKNOWN_MEMBER_ID, heartbeats, 1, 0, subject=IN_GROUP),
    Case(
        "inconsistent-group-protocols",
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        heartbeats,
        1,
        0,
        subject=IN_GROUP,
    ),
    Case(
        "static-members-fighting",
        ErrorCode.FENCED_INSTANCE_ID,
        heartbeats,
        1,
        0,
        subject=IN_GROUP,
    ),
    Case(
        "authentication-failures",
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        authenticated,
        1,
        0,
        subject=("client", "tester"),
    ),
    Case("authorization-failures", ErrorCode.TOPIC_AUTHORIZATION_FAILED, fetched, 1, 0),
    Case("too-few-in-sync-replicas", ErrorCode.NOT_ENOUGH_REPLICAS, produced, 1, 0),
    Case("broker-errors", ErrorCode.CORRUPT_MESSAGE, produced, 1, 0, subject=("client", "tester")),
    Case(
        "disk-failures", ErrorCode.KAFKA_STORAGE_ERROR, produced, 1, 0, subject=("client", "tester")
    ),
    Case("rejected-records", ErrorCode.INVALID_RECORD, produced, 1, 0),
    Case("refused-members", ErrorCode.GROUP_MAX_SIZE_REACHED, heartbeats, 1, 0, subject=IN_GROUP),
    Case(
        "refused-changes", ErrorCode.POLICY_VIOLATION, metadata, 2, 1, subject=("client", "tester")
    ),
    Case(
        "refused-transactions",
        ErrorCode.INVALID_TXN_STATE,
        ended,
        1,
        0,
        subject=("transactional_id", "tx"),
    ),
    Case("rejected-records", ErrorCode.INVALID_TIMESTAMP, produced, 1, 0),
    Case("request-timeouts", ErrorCode.REQUEST_TIMED_OUT, produced, 1, 0),
    Case(
        "coordinator-unavailable",
        ErrorCode.NOT_COORDINATOR,
        heartbeats,
        12,
        9,
        0.3,
        IN_GROUP,
    ),
    Case("oversize-records", ErrorCode.MESSAGE_TOO_LARGE, produced, 1, 0),
    Case("sequence-errors", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, produced, 1, 0),
    Case("duplicate-sequences", ErrorCode.DUPLICATE_SEQUENCE_NUMBER, produced, 1, 0),
    Case(
        "fenced-producers",
        ErrorCode.PRODUCER_FENCED,
        ended,
        3,
        2,
        subject=("transactional_id", "tx"),
    ),
    Case(
        "unsupported-versions",
        ErrorCode.UNSUPPORTED_VERSION,
        heartbeats,
        1,
        0,
        subject=("client", "tester"),
    ),
    Case(
        "api-versions-fallback",
        ErrorCode.UNSUPPORTED_VERSION,
        versions,
        50,
        49,
        subject=("client", "tester"),
    ),
    Case("unknown-topics", ErrorCode.INCONSISTENT_TOPIC_ID, fetched, 7, 4, 1),
    Case(
        "unstable-offsets", ErrorCode.UNSTABLE_OFFSET_COMMIT, offsets_fetched, 10, 9, 0.3, IN_GROUP
    ),
    Case("late-acknowledgements", ErrorCode.INVALID_RECORD_STATE, acknowledged, 1, 0, 0, IN_GROUP),
    Case(
        "expired-transactional-ids", ErrorCode.INVALID_PRODUCER_ID_MAPPING, adding, 1, 0, 0, OF_ID
    ),
    Case(
        "refused-registrations",
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        registered,
        6,
        4,
        1.5,
        OF_BROKER,
    ),
    Case(
        "refused-delegation-tokens",
        ErrorCode.DELEGATION_TOKEN_EXPIRED,
        renewed,
        1,
        0,
        0,
        OF_CLIENT,
    ),
    Case("invalid-requests", ErrorCode.INVALID_REQUIRED_ACKS, produced, 3, 2, 0, OF_CLIENT),
    Case("refused-changes", ErrorCode.NON_EMPTY_GROUP, described, 2, 1, 0, OF_CLIENT),
    Case("refused-members", ErrorCode.STREAMS_TOPOLOGY_FENCED, streaming, 1, 0, 0, IN_GROUP),
    Case("refused-transactions", ErrorCode.TRANSACTION_ABORTABLE, ended, 1, 0, 0, OF_ID),
    Case("other-errors", ErrorCode.SHARE_SESSION_LIMIT_REACHED, shared, 11, 9, 0.2, OF_CLIENT),
    Case(
        "other-errors", ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_fetched, 11, 9, 0.2, OF_CLIENT
    ),
    Case("other-errors", ErrorCode.GROUP_ID_NOT_FOUND, described, 11, 9, 0.2, OF_CLIENT),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.code.name}")
def test_enough_errors_are_a_finding(case: Case, tmp_path: Path) -> None:
    by_rule = rules(case.write(case.code, case.errors, case.every), tmp_path)
    assert list(by_rule) == [case.rule]
    finding = by_rule[case.rule]
    key, value = case.subject
    assert finding["subject"][key] == value
    assert finding["count"] == case.errors
    assert case.code.name in finding["filter"]
    assert len(finding["packets"]) == min(case.errors, 6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.code.name}")
def test_fewer_errors_are_none(case: Case, tmp_path: Path) -> None:
    story = case.write(case.code, case.fewer, case.every)
    case_without_errors = case.write(0, case.errors, case.every)
    assert rules(case_without_errors, tmp_path) == {}
    if case.fewer:
        assert rules(story, tmp_path) == {}


def test_nodes_without_a_leader_of_the_quorum(tmp_path: Path) -> None:
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    story = Story()
    for _ in range(12):
        story.exchange(
            "Fetch",
            17,
            topics=[{**topic, "partitions": [{"partition": 0}]}],
            response={
                "responses": [
                    {**topic, "partitions": [{"errorCode": int(ErrorCode.NOT_LEADER_OR_FOLLOWER)}]}
                ]
            },
        ).wait(0.2)
    finding = rules(story, tmp_path)["stale-metadata"]
    usual = rules(produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, 12, 0.2), tmp_path)["stale-metadata"]
    assert finding["subject"]["topic"] == "__cluster_metadata"
    assert "controller" in finding["cause"]
    assert finding["advice"] != usual["advice"]


@pytest.mark.parametrize(
    ("rule", "code", "write", "times"),
    [
        ("stale-metadata", ErrorCode.NOT_LEADER_OR_FOLLOWER, produced, 200),
        ("authentication-failures", ErrorCode.SASL_AUTHENTICATION_FAILED, authenticated, 5),
        ("static-members-fighting", ErrorCode.FENCED_INSTANCE_ID, heartbeats, 3),
        ("offset-resets", ErrorCode.OFFSET_OUT_OF_RANGE, fetched, 50),
        ("unstable-offsets", ErrorCode.UNSTABLE_OFFSET_COMMIT, offsets_fetched, 300),
    ],
)
def test_many_errors_are_critical(
    rule: str, code: int, write: Callable[[int, int, float], Story], times: int, tmp_path: Path
) -> None:
    every = 0.1
    assert rules(write(code, times, every), tmp_path)[rule]["severity"] == "critical"
    less = rules(write(code, times - 1, every), tmp_path)[rule]
    assert less["severity"] != "critical"


def test_a_transaction_waits_for_the_markers_of_the_one_before(tmp_path: Path) -> None:
    story = adding(ErrorCode.CONCURRENT_TRANSACTIONS, 60, 0.02)
    finding = rules(story, tmp_path)["concurrent-transactions"]
    assert finding["subject"] == {"client": "tester", "transactional_id": "tx"}
    assert (finding["severity"], finding["count"]) == ("warning", 60)
    assert 1.1e9 < finding["cost"]["time_ns"] < 1.3e9
    endless = adding(ErrorCode.CONCURRENT_TRANSACTIONS, 40, 1)
    assert rules(endless, tmp_path)["concurrent-transactions"]["severity"] == "critical"


def test_a_retry_for_each_transaction_is_normal(tmp_path: Path) -> None:
    story = Story()
    for _ in range(200):
        for code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE):
            add_partition(story, code).wait(0.02)
    assert rules(story, tmp_path) == {}


def test_every_error_has_a_rule_or_is_normal() -> None:
    covered = frozenset[int]().union(*(rule.error_codes for rule in RULES))
    assert frozenset(ErrorCode) - covered == NORMAL


@pytest.mark.parametrize("code", sorted(NORMAL))
def test_errors_with_which_nothing_is_wrong(code: int, tmp_path: Path) -> None:
    assert rules(described(code, 100, 0.2), tmp_path) == {}


def test_errors_in_a_moment_are_an_election(tmp_path: Path) -> None:
    """Fifty partitions whose leader moved: as many errors, within a second."""
    assert rules(produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, 50), tmp_path) == {}
