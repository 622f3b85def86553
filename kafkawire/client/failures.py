"""Exceptions of the clients.

As in `kafkawire.errors`: attributes for programs, a text for people, and they pickle.

    KafkaWireError
    `-- ClientError
        |-- ConfigurationError(key, reason)    an unknown key or invalid value
        |-- SerializationFailed(topic, part, reason)   a serializer raised an exception
        |-- BrokerError(code, detail)          a broker responded with an error code
        |-- RequestFailed(reason, detail)      no response
        |-- TransactionError(code, detail)
        |   |-- TransactionAbortable           abort the transaction, then try again in a new one
        |   |-- TransactionAborted             the record or call was part of an aborted transaction
        |   `-- TransactionFatal               the producer can only be closed
        |       `-- ProducerFenced             another producer has the transactional id
        |-- ClientFailed(detail)               an error inside the client itself: it is closed
        `-- ClientClosed(what)                 the client is closed
            `-- AlreadyStarted(what)           the client was started before
"""

from __future__ import annotations

from ..errors import KafkaWireError
from ..protocol.error_code import ErrorCode
from .requests import RETRIABLE, Reason


class ClientError(KafkaWireError):
    """A call of a client failed."""

    @property
    def retriable(self) -> bool:
        """Whether a retry may succeed."""
        return False


class ConfigurationError(ClientError, ValueError):
    """An unknown configuration key, or an invalid value."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


class SerializationFailed(ClientError):
    """A serializer raised an exception, which is the cause; the record was not sent.

    part: of the record, key or value.
    """

    def __init__(self, topic: str, part: str, reason: str) -> None:
        super().__init__(topic, part, reason)
        self.topic = topic
        self.part = part
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot serialize the {self.part} of a record of {self.topic}: {self.reason}"


class BrokerError(ClientError):
    """A broker responded with an error; detail: the entity, and the broker's error message."""

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code.name}: {self.detail}" if self.detail else self.code.name

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class RequestFailed(ClientError):
    """A request without a response; the broker may have processed it nevertheless."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value

    @property
    def retriable(self) -> bool:
        return self.reason in RETRIABLE


class TransactionError(ClientError):
    """A transaction failed; code: the broker's error, NONE if the broker reported none."""

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return ": ".join([self.code.name] * (self.code is not ErrorCode.NONE) + [self.detail])


class TransactionAbortable(TransactionError):
    """The transaction cannot be committed: abort it; the next one may succeed (KIP-1050)."""


class TransactionAborted(TransactionError):
    """The transaction was aborted before the record was sent, or the call was complete."""


class TransactionFatal(TransactionError):
    """The producer can have no more transactions: close it."""


class ProducerFenced(TransactionFatal):
    """A newer producer has the transactional id, or the coordinator aborted the transaction."""


class ClientFailed(ClientError):
    """An unexpected error inside the client, which closed it; `__cause__` is that error."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"unexpected error inside the client: {self.detail}"


class ClientClosed(ClientError):
    """The client was closed before or during the call."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} is closed"


class AlreadyStarted(ClientClosed):
    """A client is started once; this one was started before."""

    def __str__(self) -> str:
        return f"{self.what} was already started"
