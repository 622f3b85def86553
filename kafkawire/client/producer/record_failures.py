"""Makes the failures of records and the exceptions that users get for them."""

from __future__ import annotations

from ...protocol.error_code import ErrorCode
from ..cluster import Topic
from ..failures import BrokerError, ClientClosed, ClientError, RequestFailed
from ..requests import Reason, error_of
from .events import Failed, Failure, Send


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
    if failure.reason is not None:
        return RequestFailed(failure.reason, failure.detail)
    return BrokerError(failure.code, failure.detail)
