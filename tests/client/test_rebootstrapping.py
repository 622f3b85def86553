"""A broker may require its clients to use their bootstrap servers again (KIP-1102)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.network.network import Network, NetworkEffect
from kafkawire.client.network.transport import BytesReceived, Connect, ConnectionMade, Write
from kafkawire.client.requests import RequestMetadataUpdate
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kafkawire.primitives import Message
from kafkawire.protocol.error_code import ErrorCode

from .clients import network
from .peers import frames, respond, versions
from .test_connection import TABLE

SERVED = versions(TABLE | {ApiKey.METADATA: (0, 13)})


class Brokers:
    """Accept all connections, and respond to Metadata with one broker, `broker1`.

    metadata_error: the error code of the next responses to Metadata.
    hosts: what the client has connected to, in order.
    """

    def __init__(self, machine: Network) -> None:
        self.metadata_error = ErrorCode.NONE
        self.hosts: list[str] = []
        self._machine = machine

    def on_effects(self, effects: Sequence[NetworkEffect], now: float) -> None:
        """Respond until the client has nothing more to send at that time."""
        pending = list(effects)
        while pending:
            effect = pending.pop(0)
            match effect:
                case Connect(connection=connection, host=host):
                    self.hosts.append(host)
                    pending += self._machine.handle(ConnectionMade(connection), now)
                case Write(connection=connection):
                    for request in frames([effect]):
                        received = BytesReceived(
                            connection, respond(request, self._response(request.api_key))
                        )
                        pending += self._machine.handle(received, now)
                case _:
                    pass

    def _response(self, key: int | None) -> Message:
        if key == ApiKey.API_VERSIONS:
            return SERVED
        return MetadataResponse(
            error_code=self.metadata_error,
            brokers=[MetadataResponseBroker(node_id=1, host="broker1", port=9092)],
        )


@pytest.mark.parametrize(
    ("error", "strategy", "hosts"),
    [
        (ErrorCode.NONE, "rebootstrap", ["front", "broker1"]),
        (ErrorCode.REBOOTSTRAP_REQUIRED, "rebootstrap", ["front", "broker1", "front"]),
        (ErrorCode.REBOOTSTRAP_REQUIRED, "none", ["front", "broker1"]),
    ],
)
def test_bootstrap_servers_are_used_again(
    error: ErrorCode, strategy: str, hosts: list[str]
) -> None:
    config: dict[str, Setting] = {"metadata.recovery.strategy": strategy}
    machine = network(Random(1), [("front", 9092)], config)
    brokers = Brokers(machine)
    for now, code in ((0.0, ErrorCode.NONE), (1.0, ErrorCode.NONE), (2.0, error)):
        brokers.metadata_error = code
        brokers.on_effects(machine.handle(RequestMetadataUpdate(), now), now)
    brokers.metadata_error = ErrorCode.NONE
    brokers.on_effects(machine.advance(3.0), 3.0)
    assert brokers.hosts == hosts
