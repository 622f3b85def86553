"""Rules about error codes: enough errors are a finding, fewer are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkawire.protocol.error_code import ErrorCode

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


@pytest.mark.parametrize(
    ("rule", "code", "write", "times"),
    [
        ("stale-metadata", ErrorCode.NOT_LEADER_OR_FOLLOWER, produced, 200),
        ("authentication-failures", ErrorCode.SASL_AUTHENTICATION_FAILED, authenticated, 5),
        ("static-members-fighting", ErrorCode.FENCED_INSTANCE_ID, heartbeats, 3),
        ("offset-resets", ErrorCode.OFFSET_OUT_OF_RANGE, fetched, 50),
    ],
)
def test_many_errors_are_critical(
    rule: str, code: int, write: Callable[[int, int, float], Story], times: int, tmp_path: Path
) -> None:
    every = 0.1
    assert rules(write(code, times, every), tmp_path)[rule]["severity"] == "critical"
    less = rules(write(code, times - 1, every), tmp_path)[rule]
    assert less["severity"] != "critical"


def test_errors_in_a_moment_are_an_election(tmp_path: Path) -> None:
    """Fifty partitions whose leader moved: as many errors, within a second."""
    assert rules(produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, 50), tmp_path) == {}
