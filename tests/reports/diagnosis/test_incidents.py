"""Incidents that real clients had at a real Kafka: the diagnosis names each one first."""

from __future__ import annotations

from typing import Final

import pytest

from kafkawire.reports.diagnosis.registry import RULES
from tests.cli.reports import report
from tests.conftest import FIXTURES, ROOT

FOLDER: Final = FIXTURES / "incidents"
HEALTHY: Final = "healthy"
"""Producers, groups and transactions with which nothing is wrong."""
WHO: Final[dict[str, dict[str, object]]] = {
    "tiny-batches": {"client": "checkout", "topic": "orders"},
    "acks-mixed": {"client": "legacy", "topic": "payments"},
    "commit-rate": {"client": "invoicing", "group": "billing"},
    "tiny-fetches": {"client": "alerting"},
    "poll-timeouts": {"client": "thumbnails", "group": "billing"},
    "rebalance-storm": {"group": "billing"},
    "static-members-fighting": {"group": "billing"},
    "expelled-members": {"client": "paused", "group": "billing"},
    "unknown-topics": {"client": "audit", "topic": "audti"},
    "offset-resets": {"client": "archive", "topic": "logs"},
    "oversize-records": {"client": "scanner", "topic": "documents"},
    "inconsistent-group-protocols": {"client": "weekly", "group": "billing"},
    "growing-lag": {"group": "billing", "topic": "measurements"},
    "read-committed-stalled": {"client": "auditor", "topic": "ledgers"},
    "authentication-failures": {"client": "intruder"},
    "authorization-failures": {"client": "curious", "topic": "salaries"},
    "throttling": {"client": "exporter", "api": "Produce"},
    "metadata-storm": {"client": "dashboard"},
    "connection-churn": {"client": "mailer"},
    "many-connections": {"client": "resizer"},
    "broker-stalls": {},
    "unanswered-requests": {"client": "trader"},
    "slow-responses": {"client": "trader", "api": "Produce"},
    "aborted-transactions": {"client": "mover", "transactional_id": "mover-1"},
    "long-transactions": {"client": "month-end", "transactional_id": "month-end-1"},
    "fenced-producers": {"transactional_id": "worker"},
    "commit-rate-aiokafka": {"client": "receipting", "group": "billing-asyncio"},
    "poll-timeouts-aiokafka": {"client": "transcoder", "group": "billing-asyncio"},
    "rebalance-storm-aiokafka": {"group": "billing-asyncio"},
    "tiny-batches-java": {"client": "tracker", "topic": "clicks"},
    "commit-rate-java": {"client": "counter", "group": "visitors"},
    "expelled-members-java": {"client": "billing-java", "group": "billing"},
    "tls-handshakes": {"address": "127.0.0.1"},
    "failed-connections": {"address": "127.0.0.1"},
    "zero-windows": {"client": "thumbnailer"},
    "too-few-in-sync-replicas": {"client": "notary", "topic": "deeds"},
    "under-replicated": {"topic": "minutes"},
    "coordinator-unavailable": {"client": "payroll", "group": "wages"},
    "stale-metadata": {"client": "booking", "topic": "flights"},
    "slow-broker": {"api": "Produce"},
    "slow-partition": {"topic": "meters", "partition": 0, "api": "Produce"},
    "head-of-line-blocking": {"client": "exchange"},
    "request-timeouts": {"client": "bookmaker", "topic": "bets"},
    "connection-resets": {"client": "gate"},
    "log-truncation": {"topic": "orders-placed", "partition": 0},
    "sequence-errors": {"client": "shop", "topic": "orders-paid"},
    "hanging-transactions": {"client": "executor", "transactional_id": "executor-1"},
    "long-rebalances": {"group": "rendering"},
    "short-timeouts": {"client": "bidder", "api": "Produce"},
    "capture-loss": {},
    "produce-retries": {"client": "teller-machine", "topic": "withdrawals"},
    "broker-errors": {"client": "telegraph"},
    "disk-failures": {"client": "vault"},
    "unsupported-versions": {"client": "dancer"},
    "rejected-records": {"client": "removals", "topic": "addresses"},
    "refused-members": {"client": "hurdler", "group": "athletes"},
    "refused-transactions": {"client": "surveyor", "transactional_id": "survey-1"},
    "refused-changes": {"client": "deployer"},
    "rejected-requests": {"client": "phonograph", "api": "Produce"},
    "rejected-requests-consumer": {"client": "minstrel", "api": "ListOffsets"},
    "damaged-captures": {},
    "retransmissions": {"address": "192.0.2.1"},
    "broker-clocks": {},
    "stale-brokers": {},
    "old-versions": {"client": "mainframe"},
    "expired-transactional-ids": {"client": "envoy", "transactional_id": "envoy-1"},
    "concurrent-transactions": {"client": "relay", "transactional_id": "relay-1"},
    "unstable-offsets": {"client": "successor", "group": "bookkeeping"},
    "late-acknowledgements": {"client": "dispenser", "group": "pharmacy"},
    "refused-registrations": {"client": "3"},
    "refused-delegation-tokens": {"client": "concierge"},
    "invalid-requests": {"client": "typewriter"},
}
"""Incident, which begins with the name of its rule -> whom the first finding is about.

That of stalls is about the broker, whose port changes.
"""

NOTICES: Final[dict[str, dict[str, object]]] = {
    "hot-keys": {"topic": "carts"},
    "unkeyed-skew": {"client": "gateway", "topic": "audit", "partition": 0},
    "leader-elections": {"broker_id": 2},
    "other-rack": {"client": "projector"},
    "compression": {"topic": "access-log"},
    "hot-partitions": {"topic": "regions", "partition": 4},
    "record-timestamps": {"client": "sensor", "topic": "readings"},
    "clock-offset": {"client": "turnstile"},
    "one-way-captures": {},
    "eager-beside-cooperative": {"group": "stores"},
    "network-latency": {"client": "overseas", "address": "192.0.2.1"},
    "small-segments": {"address": "192.0.2.1"},
    "copied-connections": {},
    "undecoded-connections": {"address": "127.0.0.1"},
    "other-errors": {"client": "janitor"},
}
"""Incidents in which nothing fails -> whom the only finding is about."""


WITHOUT_INCIDENT: Final = {"duplicate-sequences"}
"""No Kafka from 2.8 to 4.4 returns it: docs/diagnose.md."""
VARIANTS: Final = ("-aiokafka", "-java", "-consumer")
"""How the names of incidents end that are a rule's second or third."""
FALLBACK: Final = "api-versions-fallback"
"""A client that connects all the time: only then does the fallback matter."""
CONVERSION: Final = "down-conversion"
"""A consumer with versions of which later releases have none: the first finding is about these."""
SHUTDOWN: Final = "controlled-shutdowns"
"""A broker is restarted: nothing is wrong, and its leaders move."""
ZOMBIE: Final = "zombie-commits"
"""A member that was expelled: its commits are the second of two equal findings."""


def test_every_incident_is_known() -> None:
    names = {path.name.partition(".")[0] for path in FOLDER.glob("*.pcap.gz")}
    assert names == {*WHO, *NOTICES, HEALTHY, SHUTDOWN, ZOMBIE, FALLBACK, CONVERSION}


def test_a_broker_that_is_restarted() -> None:
    findings = report("diagnose", FOLDER / f"{SHUTDOWN}.pcap.gz")["findings"]
    assert {one["severity"] for one in findings} == {"notice"}
    assert [(one["rule"], one["subject"]) for one in findings] == [
        (SHUTDOWN, {"broker_id": 3}),
        ("under-replicated", {"topic": "parcels"}),
        ("leader-elections", {"broker_id": 3}),
    ]


def test_a_newer_client_that_connects_all_the_time() -> None:
    findings = report("diagnose", FOLDER / f"{FALLBACK}.pcap.gz")["findings"]
    assert [one["rule"] for one in findings] == ["connection-churn", "metadata-storm", FALLBACK]
    assert {one["subject"]["client"] for one in findings} == {"greeter"}


def test_a_consumer_for_which_the_broker_converts() -> None:
    findings = report("diagnose", FOLDER / f"{CONVERSION}.pcap.gz")["findings"]
    assert [one["rule"] for one in findings] == ["old-versions", CONVERSION]
    assert {one["subject"]["client"] for one in findings} == {"archivist"}
    assert findings[1]["subject"]["topic"] == "memoranda"


def test_commits_of_an_expelled_member() -> None:
    findings = report("diagnose", FOLDER / f"{ZOMBIE}.pcap.gz")["findings"]
    assert [one["rule"] for one in findings] == ["expelled-members", ZOMBIE]
    assert {one["severity"] for one in findings} == {"warning"}
    for one in findings:
        assert one["subject"] == {"client": "sleeper", "group": "beds"}


@pytest.mark.parametrize("name", NOTICES)
def test_the_only_finding_is_the_notice(name: str) -> None:
    (only,) = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"]
    assert (only["rule"], only["severity"]) == (name, "notice")
    assert NOTICES[name].items() <= only["subject"].items()


def test_a_broker_that_throttles_stops_reading() -> None:
    """The quota closes the broker's receive window, which the headers of TCP show."""
    findings = report("diagnose", FOLDER / "throttling.pcap.gz")["findings"]
    (finding,) = [one for one in findings if one["rule"] == "zero-windows"]
    assert finding["subject"]["client"] == "exporter"
    assert finding["cost"]["time_ns"] > 10 * 10**9


@pytest.mark.parametrize("name", WHO)
def test_the_first_finding_is_the_incident(name: str) -> None:
    first = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"][0]
    assert first["rule"] == rule_of(name)
    assert WHO[name].items() <= first["subject"].items()
    assert first["severity"] != "notice"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rebalance-storm", "partition.assignment.strategy=cooperative-sticky"),
        ("tiny-fetches", "fetch.wait.max.ms"),
        ("authentication-failures", "sasl.username and sasl.password"),
        ("oversize-records", "message.max.bytes instead of max.request.size"),
    ],
)
def test_the_advice_has_the_names_of_the_library(name: str, key: str) -> None:
    first = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"][0]
    assert f"In librdkafka: {key}" in first["advice"]


@pytest.mark.parametrize("name", ["rebalance-storm-aiokafka", "late-acknowledgements"])
def test_other_libraries_have_other_names(name: str) -> None:
    first = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"][0]
    assert "librdkafka" not in first["advice"]


def test_healthy_traffic_has_no_findings() -> None:
    assert report("diagnose", FOLDER / f"{HEALTHY}.pcap.gz")["findings"] == []


def test_every_rule_has_an_incident_or_a_reason() -> None:
    incidents = {*map(rule_of, WHO), *NOTICES, SHUTDOWN, ZOMBIE, FALLBACK, CONVERSION}
    assert incidents | WITHOUT_INCIDENT == {rule.name for rule in RULES}
    assert not incidents & WITHOUT_INCIDENT
    page = " ".join((ROOT / "docs" / "diagnose.md").read_text().split())
    assert f"for {len(incidents)} of the {len(RULES)} rules" in page
    for rule in WITHOUT_INCIDENT:
        assert f"`{rule}` has none" in page


def rule_of(incident: str) -> str:
    """Return the rule whose incident a capture has."""
    for variant in VARIANTS:
        incident = incident.removesuffix(variant)
    return incident
