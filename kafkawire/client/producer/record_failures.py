"""Makes the failures of records and the exceptions that users get for them."""

from __future__ import annotations

from typing import Final

from ...protocol.error_code import ErrorCode
from ..cluster import Topic
from ..failures import (
    BrokerError,
    ClientClosed,
    ClientError,
    ProducerFenced,
    RequestFailed,
    TransactionAbortable,
    TransactionAborted,
    TransactionError,
    TransactionFatal,
)
from ..requests import Reason, error_of
from .events import Failed, Failure, Send, TransactionFailed

FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


def unexpected(error: Exception) -> Failure:
    """Make the failure for an unexpected exception."""
    detail = f"{type(error).__name__}: {error}"
    return Failure(ErrorCode.NONE, Reason.INVALID_REQUEST, detail)


def fatal(topic: Topic | None) -> Failure | None:
    """Return why no record of a topic can ever be sent; None if it may be."""
    code = ErrorCode.NONE if topic is None else error_of(topic.error)
    if not code or code.retriable or topic is None or topic.partitions:
        return None
    return Failure(code, None, f"topic {topic.name}")


def failed(record: Send, failure: Failure) -> Failed:
    """Fail one record that is in no batch."""
    partition = -1 if record.partition is None else record.partition
    return Failed(record.topic, partition, [record.token], failure)


def raised(failure: Failure) -> ClientError:
    """Make the exception for a failure."""
    if failure.reason is Reason.CLOSED:
        return ClientClosed("the producer")
    if failure.reason is Reason.ABORTED:
        return TransactionAborted(failure.code, failure.reason.value)
    if failure.reason is not None:
        return RequestFailed(failure.reason, failure.detail)
    return BrokerError(failure.code, failure.detail)


def transaction_error(effect: TransactionFailed) -> ClientError:
    """Make the exception for a call that is about a transaction."""
    failure = effect.failure
    if failure.reason in (Reason.CLOSED, Reason.ABORTED):
        return raised(failure)
    kind: type[TransactionError] = TransactionFatal if effect.fatal else TransactionAbortable
    if effect.fatal and failure.code in FENCED:
        kind = ProducerFenced
    parts = [failure.reason.value] if failure.reason is not None else []
    return kind(failure.code, ": ".join([*parts, failure.detail]))
