"""Incidents that real clients had at a real Kafka: the diagnosis names each one first."""

from __future__ import annotations

from typing import Final

import pytest

from tests.cli.reports import report
from tests.conftest import FIXTURES

FOLDER: Final = FIXTURES / "incidents"
HEALTHY: Final = "healthy"
"""Producers, groups and transactions with which nothing is wrong."""
WHO: Final = {
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
}
"""Incident, which begins with the name of its rule -> whom the first finding is about.

That of stalls is about the broker, whose port changes.
"""

NOTICES: Final = {
    "hot-keys": {"topic": "carts"},
    "unkeyed-skew": {"client": "gateway", "topic": "audit", "partition": 0},
}
"""Incidents in which nothing fails -> whom the only finding is about."""


def test_every_incident_is_known() -> None:
    names = {path.name.partition(".")[0] for path in FOLDER.glob("*.pcap.gz")}
    assert names == {*WHO, *NOTICES, HEALTHY}


@pytest.mark.parametrize("name", NOTICES)
def test_the_only_finding_is_the_notice(name: str) -> None:
    (only,) = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"]
    assert (only["rule"], only["severity"]) == (name, "notice")
    assert NOTICES[name] == only["subject"]


def test_a_broker_that_throttles_stops_reading() -> None:
    """The quota closes the broker's receive window, which the headers of TCP show."""
    findings = report("diagnose", FOLDER / "throttling.pcap.gz")["findings"]
    (finding,) = [one for one in findings if one["rule"] == "zero-windows"]
    assert finding["subject"]["client"] == "exporter"
    assert finding["cost"]["time_ns"] > 10 * 10**9


@pytest.mark.parametrize("name", WHO)
def test_the_first_finding_is_the_incident(name: str) -> None:
    first = report("diagnose", FOLDER / f"{name}.pcap.gz")["findings"][0]
    assert first["rule"] == name.removesuffix("-aiokafka").removesuffix("-java")
    assert WHO[name].items() <= first["subject"].items()
    assert first["severity"] != "notice"


def test_healthy_traffic_has_no_findings() -> None:
    assert report("diagnose", FOLDER / f"{HEALTHY}.pcap.gz")["findings"] == []
