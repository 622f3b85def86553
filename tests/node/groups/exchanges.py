"""The requests of a client on one connection of a simulated cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkawire import decode_frame, encode_frame
from kafkawire.client.network import transport
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Message

from ..network import CLIENT, REQUEST_TIMEOUT, Callback, Network

Observer = Callable[[Message], None]
"""Called with a response when its broker sends it, whether it arrives or not."""


@dataclass
class InFlight:
    """A request without its response. callback: None once it was called."""

    api_key: int
    version: int
    callback: Callback | None
    observer: Observer | None
    response: Message | None = None

    def finish(self) -> None:
        """Call back, once."""
        callback, self.callback = self.callback, None
        if callback is not None:
            callback(self.response)


class Exchanges:
    """The requests and responses of a connection. server: the node at its other end.

    write, disconnect: what sends bytes to the server, and closes the connection.
    """

    def __init__(
        self,
        network: Network,
        server: int,
        write: Callable[[bytes], None],
        disconnect: Callable[[], None],
    ) -> None:
        self.server = server
        self.is_open = True
        self._network = network
        self._write = write
        self._disconnect = disconnect
        self._unsent: deque[InFlight] = deque()
        """Requests whose response was not sent yet."""
        self._under_way: deque[InFlight] = deque()
        """Those whose response was sent, and did not arrive yet."""

    def send(
        self,
        version: int,
        body: Message,
        callback: Callback,
        timeout: float = REQUEST_TIMEOUT,
        observer: Observer | None = None,
    ) -> None:
        """Send a request; the callback gets its response, or None if it does not come."""
        name, network = type(body).__name__, self._network
        api_key = REGISTRY.get(name).api_key
        assert api_key is not None
        in_flight = InFlight(api_key, version, callback, observer)
        self._unsent.append(in_flight)
        network.log(f"{CLIENT} -> {self.server} {name}")
        self._write(encode_frame(body, version, 1, client_id="simulated"))

        def expire() -> None:
            if in_flight.callback is not None:
                self.close()
                in_flight.response = None
                in_flight.finish()

        network.at(network.now + timeout, expire)

    def close(self) -> None:
        """Close the connection."""
        if self.is_open:
            self.is_open = False
            self._disconnect()

    def sent(self, data: bytes) -> None:
        """Take note of a response that the server sends."""
        in_flight = self._unsent.popleft()
        frame = decode_frame(data, response_to=(in_flight.api_key, in_flight.version))
        in_flight.response = frame.body
        self._under_way.append(in_flight)
        if in_flight.observer is not None and frame.body is not None:
            in_flight.observer(frame.body)

    def handle(self, event: Any) -> None:
        """Handle a response that arrives, or the end of the connection."""
        if isinstance(event, transport.BytesReceived):
            self._under_way.popleft().finish()
            return
        self.is_open = False
        for in_flight in (*self._under_way, *self._unsent):
            in_flight.response = None
            in_flight.finish()
