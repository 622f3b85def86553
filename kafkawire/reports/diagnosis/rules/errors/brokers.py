"""Rules about errors whose cause is a broker or the cluster."""

from __future__ import annotations

from typing import Final

from kafkawire.protocol.error_code import ErrorCode

from ...error_rule import (
    By,
    ErrorRule,
    critical_threshold,
    errors_threshold,
    seconds_threshold,
)
from ...finding import Confidence, Severity

BROKER_ERRORS: Final = (
    ErrorRule(
        name="too-few-in-sync-replicas",
        description=(
            "A leader rejects records with acks=all because fewer than min.insync.replicas are "
            "in sync."
        ),
        by=By.TOPIC,
        severity=Severity.CRITICAL,
        error_codes=frozenset(
            {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
        ),
        thresholds=(errors_threshold(1, "each one is a write that was rejected"),),
        cause="Brokers with replicas of the partition are down or too slow to stay in sync.",
        advice=(
            "Find the brokers that are missing in the ISR (kafka-topics.sh --describe "
            "--under-min-isr-partitions); compare min.insync.replicas with the replication "
            "factor."
        ),
    ),
    ErrorRule(
        name="coordinator-unavailable",
        description=(
            "The coordinator of a group or transactional id is elsewhere, not available or "
            "loading. A few errors after an election or at the first use are normal."
        ),
        by=By.GROUP,
        error_codes=frozenset(
            {
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.NOT_COORDINATOR,
            }
        ),
        thresholds=(
            errors_threshold(10, "the first use of a group causes a few"),
            seconds_threshold(2, "the first use of a cluster takes a second or two"),
            critical_threshold(
                300, "at the usual back-off of 100 ms, half a minute without progress"
            ),
        ),
        cause=(
            "The leader of the group's partition of __consumer_offsets (or __transaction_state) "
            "changed, is offline, or reads a long log."
        ),
        advice=(
            "Check the partitions of the internal topics: leaders, ISR, size (is "
            "log.cleaner.enable on?)."
        ),
        confidence=Confidence.MEDIUM,
    ),
    ErrorRule(
        name="broker-errors",
        description="A broker fails for reasons of its own: corrupt records, bugs.",
        by=By.BROKER,
        error_codes=frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CORRUPT_MESSAGE}),
        thresholds=(
            errors_threshold(1, "a healthy broker returns none"),
            critical_threshold(5, "the error persists"),
        ),
        cause=(
            "CORRUPT_MESSAGE: the checksum of a batch is wrong, in the log or on its way to the "
            "broker. UNKNOWN_SERVER_ERROR: a request met a bug."
        ),
        advice=(
            "Read the broker's log at these times; check a damaged log with kafka-dump-log.sh, and "
            "memory and network interfaces of hosts whose batches are damaged."
        ),
    ),
    ErrorRule(
        name="disk-failures",
        description=(
            "A log directory of a broker failed: its partitions are offline there, until the "
            "broker restarts with a disk that works."
        ),
        by=By.BROKER,
        severity=Severity.CRITICAL,
        error_codes=frozenset({ErrorCode.KAFKA_STORAGE_ERROR}),
        thresholds=(errors_threshold(1, "brokers return it for nothing else"),),
        cause="The broker met an I/O error in a log directory: a disk is full, damaged or gone.",
        advice=(
            "Read the broker's log at these times, and look at OfflineLogDirectoryCount; replace "
            "the disk or make room, and restart the broker."
        ),
        reference="KIP-112",
    ),
    ErrorRule(
        name="refused-registrations",
        description=(
            "A controller refuses the registration or the heartbeats of a broker or controller: "
            "the node does not become, or stay, part of the cluster."
        ),
        by=By.BROKER,
        error_codes=frozenset(
            {
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                ErrorCode.INVALID_REGISTRATION,
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                ErrorCode.STALE_BROKER_EPOCH,
                ErrorCode.INCONSISTENT_VOTER_SET,
            }
        ),
        thresholds=(
            errors_threshold(5, "a broker that restarts waits until its old session has ended"),
            seconds_threshold(5, "a controller that moves causes errors for a moment"),
            critical_threshold(50, "the node does not come up"),
        ),
        cause=(
            "DUPLICATE_BROKER_REGISTRATION: two processes have the same node.id. "
            "INCONSISTENT_CLUSTER_ID: the directory of the node is of another cluster. "
            "INVALID_REGISTRATION: the node lacks a feature of the cluster."
        ),
        advice="Read the log of the node and compare node.id, cluster.id and log.dirs.",
        confidence=Confidence.MEDIUM,
        reference="KIP-631, KIP-853",
    ),
    ErrorRule(
        name="request-timeouts",
        description=(
            "A broker returns REQUEST_TIMED_OUT: replicas did not acknowledge records, or a "
            "controller did not act, within the timeout of the request."
        ),
        by=By.TOPIC,
        error_codes=frozenset({ErrorCode.REQUEST_TIMED_OUT}),
        thresholds=(errors_threshold(1, "a timeout is thirty seconds by default"),),
        cause="Followers are slow or down, or the timeout of the request is very short.",
        advice=(
            "Compare request.timeout.ms of the client with the broker's latencies (kafkawire "
            "latency --by broker), and look for slow followers."
        ),
        confidence=Confidence.MEDIUM,
    ),
)
