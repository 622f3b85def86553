"""What the outermost client raises.

Law: as in `kafkawire.errors`: attributes for programs, a text for people, and it pickles.

    KafkaWireError
    `-- ClientError
        |-- ConfigurationError(key, reason)    a setting that is unknown or wrong
        |-- BrokerError(code, detail)          a broker answered with an error code
        |-- RequestFailed(reason, detail)      there is no answer
    |-- ClientFailed(detail)               an error inside the client itself: it is closed
        `-- ClientClosed(what)                 used after its end
"""

from __future__ import annotations

from ..errors import KafkaWireError
from ..protocol.error_code import ErrorCode
from .requests import RETRIABLE, Reason


class ClientError(KafkaWireError):
    """A client could not do what it was asked."""

    @property
    def retriable(self) -> bool:
        """Whether the same may succeed later."""
        return False


class ConfigurationError(ClientError, ValueError):
    """A setting that is not known, or a value that it cannot have."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


class BrokerError(ClientError):
    """A broker answered with an error; detail: what it was about, and what the broker said."""

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
    """A request without an answer; the broker may have done what was asked all the same."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value

    @property
    def retriable(self) -> bool:
        return self.reason in RETRIABLE


class ClientFailed(ClientError):
    """An unexpected error inside the client, which closed it; `__cause__` is that error."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"unexpected error inside the client: {self.detail}"


class ClientClosed(ClientError):
    """The client was closed before, or while, it was asked."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} is closed"
