"""The rule about errors that no other rule looks at: none of them passes in silence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkawire.protocol.error_code import ErrorCode

from ...error_rule import By, ErrorRule, RuleDefinition, errors_threshold, seconds_threshold
from ...finding import Confidence, Severity

NORMAL: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.MEMBER_ID_REQUIRED,  # assigns the member id (KIP-394)
        ErrorCode.REBALANCE_IN_PROGRESS,  # rebalances have rules of their own
        ErrorCode.NEW_LEADER_ELECTED,  # elections have, too
        ErrorCode.OPERATION_NOT_ATTEMPTED,  # another operation of the same request failed
        ErrorCode.ELECTION_NOT_NEEDED,
    }
)
"""Errors with which nothing is wrong, or with which something else is."""


def other_errors(rules: Iterable[RuleDefinition]) -> ErrorRule:
    """Return the rule about the errors of which these rules have none."""
    covered = frozenset[int]().union(*(rule.error_codes for rule in rules))
    return ErrorRule(
        name="other-errors",
        description=(
            "A client keeps getting errors that no other rule looks at. Errors that are normal in "
            "the protocol are not counted."
        ),
        by=By.CLIENT,
        error_codes=frozenset(ErrorCode) - covered - NORMAL,
        thresholds=(
            errors_threshold(10, "a client gives up on an error, or recovers after a few retries"),
            seconds_threshold(1, "errors of one moment have one cause, which is over"),
        ),
        cause="Kafka's documentation of the error says what it means.",
        advice=(
            "Look at the requests (kafkawire decode with the filter of this finding), and at the "
            "logs of the client and the broker at these times."
        ),
        severity=Severity.NOTICE,
        confidence=Confidence.LOW,
    )
