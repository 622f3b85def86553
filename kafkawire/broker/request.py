"""A request being processed, and the result of its handler.

A request is data. A delayed operation blocks nothing: it is completed later by its `reply_to`.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from ..messages.api_key import ApiKey
from ..messages.fetch_request import FetchRequest
from ..messages.produce_request import ProduceRequest
from ..primitives import Message
from ..replication.fetch_params import REPLICA_STATE_FROM

NODE_CLIENT_ID: Final = "kafkawire-node-"
"""How the client ids of nodes begin, where they are clients of each other."""
ANONYMOUS: Final = "ANONYMOUS"
"""The user of a connection without authentication."""


class Request(NamedTuple):
    """A decoded request. reply_to: id for the response; at: arrival time in seconds.

    user: the name of the principal.
    """

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
    user: str = ANONYMOUS

    @property
    def expects_response(self) -> bool:
        """Whether the protocol has a response to it: not to a Produce with acks=0."""
        body = self.body
        return not (isinstance(body, ProduceRequest) and body.acks == 0)

    @property
    def is_from_follower(self) -> bool:
        """Whether it is a Fetch of another broker."""
        body = self.body
        if not isinstance(body, FetchRequest):
            return False
        of_state = self.version >= REPLICA_STATE_FROM
        return (body.replica_state.replica_id if of_state else body.replica_id) >= 0

    @property
    def is_from_node(self) -> bool:
        """Whether another node of the cluster sent it, and not a client."""
        return self.is_from_follower or (self.client_id or "").startswith(NODE_CLIENT_ID)


class Outcome(Enum):
    """The result of a handler that returns no response."""

    DELAYED = "delayed"
    """A delayed operation: the response is sent later."""
    NO_RESPONSE = "no response"
    """The protocol has no response (acks=0)."""


DELAYED: Final = Outcome.DELAYED
NO_RESPONSE: Final = Outcome.NO_RESPONSE

M = TypeVar("M", bound=Message)
UNTIL_METADATA: Final = -1
"""What a Work yields to go on when the metadata has changed; it gets False if that takes too long,
and True otherwise.
"""
Work = Generator[int, bool | None, M | Outcome]
"""A large request processed in several time slices: yields how many elements it has processed since
the last yield, and returns the response, or delays it.
"""
HandlerResult = Message | Outcome | Work[Message]
