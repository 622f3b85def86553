"""A request that a broker works on.

Law: it is data. While it is parked nothing else waits for it: whoever can answer does so by
`reply_to`.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Final, NamedTuple

from ..messages.api_key import ApiKey
from ..messages.produce_request import ProduceRequest
from ..primitives import Message


class Request(NamedTuple):
    """A decoded request. reply_to: what it is answered by; at: when it came, in seconds."""

    reply_to: int
    connection: int
    node_id: int
    api_key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    body: Message
    at: float
    size: int = 0

    @property
    def expects_response(self) -> bool:
        """Whether the protocol has an answer to it: not to a Produce with acks=0."""
        body = self.body
        return not (isinstance(body, ProduceRequest) and body.acks == 0)


class Outcome(Enum):
    """What a handler gives where it gives no answer."""

    DELAYED = "parked"
    """Somebody answers later."""
    NO_RESPONSE = "no answer"
    """The protocol has none (acks=0)."""


DELAYED: Final = Outcome.DELAYED
NO_RESPONSE: Final = Outcome.NO_RESPONSE

Work = Generator[int, None, Message]
"""A request of many elements, served piece by piece: yields how many elements it has served since,
so that others have their turn in between, and returns the response.
"""
HandlerResult = Message | Outcome | Work
