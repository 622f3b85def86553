"""Rules about errors of producers."""

from __future__ import annotations

from typing import Final

from kafkawire.protocol.error_code import ErrorCode

from ...error_rule import (
    By,
    ErrorRule,
    critical_threshold,
    errors_threshold,
)
from ...finding import Confidence, Severity

PRODUCER_ERRORS: Final = (
    ErrorRule(
        name="sequence-errors",
        description=(
            "A broker rejects batches of an idempotent producer because sequence numbers are "
            "missing, or because it no longer has the producer's state: records were lost or "
            "are delivered again."
        ),
        by=By.TOPIC,
        error_codes=frozenset(
            {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}
        ),
        thresholds=(
            errors_threshold(1, "a healthy idempotent producer gets none"),
            critical_threshold(10, "the producer does not recover"),
        ),
        cause=(
            "A batch before this one failed, records were lost with an unclean election, or the "
            "state of the producer expired (transactional.id.expiration.ms, "
            "producer.id.expiration.ms)."
        ),
        advice="Look for elections and for batches that failed before; check the producer's log.",
        confidence=Confidence.MEDIUM,
    ),
    ErrorRule(
        name="duplicate-sequences",
        description="A producer sends a batch again that the broker has already appended.",
        by=By.TOPIC,
        severity=Severity.NOTICE,
        error_codes=frozenset({ErrorCode.DUPLICATE_SEQUENCE_NUMBER}),
        thresholds=(errors_threshold(1, "a retry after a lost request gets no such error"),),
        cause="The response to the first attempt was late or lost.",
        advice="Compare request.timeout.ms of the producer with the latency of Produce.",
    ),
    ErrorRule(
        name="oversize-records",
        description="A broker rejects records because they are larger than the topic allows.",
        by=By.TOPIC,
        error_codes=frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}),
        thresholds=(
            errors_threshold(1, "each one is a batch that was rejected"),
            critical_threshold(20, "the producer sends the same batch again and again"),
        ),
        cause="max.request.size of the producer is larger than max.message.bytes of the topic.",
        advice=(
            "Raise max.message.bytes of the topic (message.max.bytes of the broker), or lower "
            "batch.size and max.request.size of the producer; compression counts before the "
            "check."
        ),
    ),
    ErrorRule(
        name="rejected-records",
        description=(
            "A broker rejects records because of what they are: without a key in a compacted "
            "topic, with a timestamp that the topic does not allow, or compressed with a codec "
            "that the request's version does not have."
        ),
        by=By.TOPIC,
        error_codes=frozenset(
            {
                ErrorCode.INVALID_RECORD,
                ErrorCode.INVALID_TIMESTAMP,
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            }
        ),
        thresholds=(
            errors_threshold(1, "each one is a batch that was rejected"),
            critical_threshold(20, "the producer sends such records again and again"),
        ),
        cause=(
            "INVALID_RECORD: records without a key in a topic with cleanup.policy=compact. "
            "INVALID_TIMESTAMP: their time differs by more than message.timestamp.before.max.ms "
            "or message.timestamp.after.max.ms."
        ),
        advice=(
            "Give records keys and times in milliseconds, or change the topic; the producer does "
            "not retry, its application has to handle the error."
        ),
        reference="KIP-467, KIP-937",
    ),
    ErrorRule(
        name="refused-transactions",
        description=(
            "A coordinator refuses a request of a transactional producer: its timeout is longer "
            "than the broker allows, or the transaction is not in the state for it."
        ),
        by=By.TRANSACTIONAL_ID,
        error_codes=frozenset(
            {
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                ErrorCode.INVALID_TXN_STATE,
                ErrorCode.TRANSACTION_ABORTABLE,
            }
        ),
        thresholds=(
            errors_threshold(1, "a producer that is configured correctly gets none"),
            critical_threshold(10, "the producer goes on without success"),
        ),
        cause=(
            "INVALID_TRANSACTION_TIMEOUT: transaction.timeout.ms of the producer is longer than "
            "transaction.max.timeout.ms of the broker, 15 minutes by default. "
            "INVALID_TXN_STATE: the transaction had ended, for "
            "example after its timeout. "
            "TRANSACTION_ABORTABLE: a broker could not verify that the transaction is open."
        ),
        advice=(
            "Compare transaction.timeout.ms with the limit of the broker; let the application "
            "close the producer after such an error and create a new one."
        ),
        reference="KIP-98, KIP-360, KIP-890, KIP-1050",
    ),
    ErrorRule(
        name="fenced-producers",
        description=(
            "A transactional producer was replaced by another one with the same "
            "transactional.id, and goes on. One fenced producer after a fail-over is what "
            "fencing is for."
        ),
        by=By.TRANSACTIONAL_ID,
        error_codes=frozenset(
            {
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.INVALID_PRODUCER_EPOCH,
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            }
        ),
        thresholds=(
            errors_threshold(
                3, "a producer that is fenced once gets one error, or one per request"
            ),
            critical_threshold(30, "two producers keep fencing each other"),
        ),
        cause=(
            "Two processes have the same transactional.id, or a transaction exceeded its timeout."
        ),
        advice=(
            "Give each process its own transactional.id; compare transaction.timeout.ms with "
            "how long transactions take (kafkawire transactions)."
        ),
        confidence=Confidence.MEDIUM,
    ),
    ErrorRule(
        name="expired-transactional-ids",
        description=(
            "A coordinator does not know the producer id of a transactional producer, or has "
            "another one for its transactional.id: the transaction fails."
        ),
        by=By.TRANSACTIONAL_ID,
        error_codes=frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING}),
        thresholds=(
            errors_threshold(1, "a producer that commits now and then gets none"),
            critical_threshold(10, "the producer goes on without success"),
        ),
        cause=(
            "The producer was idle for longer than transactional.id.expiration.ms of the broker "
            "(7 days by default), the partition of __transaction_state lost records, or the client "
            "states a producer id that it never had, such as 0 instead of -1."
        ),
        advice=(
            "Let the application close the producer after this error and create a new one; raise "
            "transactional.id.expiration.ms if producers are idle for so long."
        ),
        reference="KIP-98, KIP-360",
    ),
)
