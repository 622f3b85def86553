"""Rules about errors of group members."""

from __future__ import annotations

from typing import Final

from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

from ...error_rule import (
    By,
    ErrorRule,
    critical_threshold,
    errors_threshold,
)
from ...finding import Confidence

MEMBERSHIP_ERRORS: Final = (
    ErrorRule(
        name="expelled-members",
        description=(
            "The coordinator no longer has a member that sends heartbeats or rejoins: it was "
            "removed because its session expired or it did not rejoin in time."
        ),
        by=By.GROUP,
        apis=frozenset(
            {
                ApiKey.HEARTBEAT,
                ApiKey.JOIN_GROUP,
                ApiKey.SYNC_GROUP,
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                ApiKey.SHARE_GROUP_HEARTBEAT,
                ApiKey.STREAMS_GROUP_HEARTBEAT,
            }
        ),
        error_codes=frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}),
        thresholds=(errors_threshold(1, "a member that leaves by itself gets no such error"),),
        cause=(
            "No heartbeat reached the coordinator for session.timeout.ms: the process was "
            "paused (garbage collection, CPU limits), or the network failed."
        ),
        advice=(
            "Look for pauses of the client before the error; session.timeout.ms should be at "
            "least three times heartbeat.interval.ms (45 s and 3 s by default since Kafka 3.0, "
            "KIP-735)."
        ),
        reference="KIP-735",
        confidence=Confidence.MEDIUM,
        with_silence=True,
    ),
    ErrorRule(
        name="zombie-commits",
        description=(
            "A member commits offsets although the group no longer has it: its records are "
            "processed again by another member."
        ),
        by=By.GROUP,
        apis=frozenset({ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT}),
        error_codes=frozenset(
            {
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.STALE_MEMBER_EPOCH,
                ErrorCode.FENCED_MEMBER_EPOCH,
            }
        ),
        thresholds=(
            errors_threshold(1, "each rejected commit means records that are processed twice"),
            critical_threshold(50, "a member that is never up to date makes no progress"),
        ),
        cause=(
            "The member was removed, and went on working: it was paused, or did not poll in time."
        ),
        advice=(
            "Look at what `expelled-members`, `poll-timeouts` and `rebalance-storm` report of the "
            "group; if it did not poll in time, lower max.poll.records or raise "
            "max.poll.interval.ms."
        ),
        confidence=Confidence.MEDIUM,
    ),
    ErrorRule(
        name="inconsistent-group-protocols",
        description=(
            "A member is refused because it has no assignor in common with the other members, "
            "or because it uses the classic protocol in a group of the consumer protocol."
        ),
        by=By.GROUP,
        error_codes=frozenset({ErrorCode.INCONSISTENT_GROUP_PROTOCOL}),
        thresholds=(
            errors_threshold(1, "members with a common assignor never get it"),
            critical_threshold(5, "the member keeps trying to join"),
        ),
        cause=(
            "partition.assignment.strategy differs between members, for example eager and "
            "cooperative."
        ),
        advice=(
            "Give all members a common assignor first; change to cooperative assignors in two "
            "rolling restarts."
        ),
        reference="KIP-429",
    ),
    ErrorRule(
        name="refused-members",
        description=(
            "A coordinator refuses a member because of its configuration: its session timeout is "
            "outside of what the broker allows, the group is full, or its name, assignor, regular "
            "expression or topology (Kafka Streams) is not valid."
        ),
        by=By.GROUP,
        error_codes=frozenset(
            {
                ErrorCode.INVALID_SESSION_TIMEOUT,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.INVALID_GROUP_ID,
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
                ErrorCode.STREAMS_TOPOLOGY_FENCED,
            }
        ),
        thresholds=(
            errors_threshold(1, "the same member is refused again until it is changed"),
            critical_threshold(5, "the member keeps trying to join, and consumes nothing"),
        ),
        cause=(
            "INVALID_SESSION_TIMEOUT: session.timeout.ms is not between "
            "group.min.session.timeout.ms and group.max.session.timeout.ms. "
            "GROUP_MAX_SIZE_REACHED: the group has group.max.size members. "
            "STREAMS_TOPOLOGY_FENCED: the group has members of a newer version of the application."
        ),
        advice="Change the key of the client, or the limit of the broker.",
        reference="KIP-389, KIP-848, KIP-1071",
    ),
    ErrorRule(
        name="static-members-fighting",
        description=(
            "Two processes use the same group.instance.id and expel each other from the group."
        ),
        by=By.GROUP,
        error_codes=frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}),
        thresholds=(
            errors_threshold(1, "a process that is replaced properly never gets this error"),
            critical_threshold(3, "one replacement fences one process; more mean that both go on"),
        ),
        cause="Two processes have the same group.instance.id.",
        advice="Give each process its own group.instance.id, for example the name of its pod.",
        reference="KIP-345",
    ),
)
