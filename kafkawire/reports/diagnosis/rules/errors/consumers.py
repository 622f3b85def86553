"""Rules about errors of consumers and share consumers that do not concern their membership."""

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

CONSUMER_ERRORS: Final = (
    ErrorRule(
        name="unstable-offsets",
        description=(
            "Consumers that join a group wait for the end of a transaction that commits offsets "
            "of the group: they do not consume until it is committed or aborted."
        ),
        by=By.GROUP,
        error_codes=frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT}),
        thresholds=(
            errors_threshold(10, "a client asks every 100 ms, and a transaction ends soon"),
            seconds_threshold(2, "transactions take a fraction of a second as a rule"),
            critical_threshold(300, "half a minute in which the partitions are not consumed"),
        ),
        cause=(
            "A producer that processes the records of the group stopped before it ended its "
            "transaction, or takes long; the coordinator aborts it after transaction.timeout.ms."
        ),
        advice=(
            "Look for open transactions (kafkawire transactions) and for processes that ended; "
            "lower transaction.timeout.ms of the producers, so that others take over sooner."
        ),
        reference="KIP-447",
    ),
    ErrorRule(
        name="late-acknowledgements",
        description=(
            "A share consumer acknowledges records that it no longer has: they were, or will be, "
            "delivered to another consumer, and are processed twice."
        ),
        by=By.GROUP,
        error_codes=frozenset({ErrorCode.INVALID_RECORD_STATE}),
        thresholds=(
            errors_threshold(1, "a consumer that acknowledges in time gets none"),
            critical_threshold(20, "most of the work may be done twice"),
        ),
        cause=(
            "Processing takes longer than the acquisition lock of the records "
            "(group.share.record.lock.duration.ms, 30 seconds by default)."
        ),
        advice=(
            "Take fewer records at once (max.poll.records), acknowledge or renew them sooner, or "
            "raise share.record.lock.duration.ms of the group."
        ),
        reference="KIP-932, KIP-1222",
    ),
)
