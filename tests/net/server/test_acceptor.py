"""Clients at a socket that wait until they are accepted, and errors of the socket."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from contextlib import ExitStack
from typing import Any, Final

import pytest

from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.brokers import acceptor as module
from kafkawire.net.brokers.acceptor import AT_ONCE, Acceptor
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...real.wire import Wire

pytestmark = pytest.mark.timeout(120)
REQUEST: Final = MetadataRequest(topics=[])


def test_clients_wait_in_the_backlog_of_the_socket() -> None:
    """Each is served in its turn; few of them are accepted before that."""
    number = 3 * AT_ONCE
    with ServerThread(ServerConfig(settings={"max.connections": "1"})) as server:
        with ExitStack() as stack:
            wires = [stack.enter_context(Wire(server.ports()[1])) for _ in range(number)]
            for at, wire in enumerate(wires):
                assert wire.exchange(REQUEST, 9, MetadataResponse).brokers
                assert len(server.server.connections) <= AT_ONCE + 1, at
                wire.socket.close()
        assert not server.closed
        until(lambda: not server.server.connections)


def test_a_waiting_client_that_has_gone_leaves_its_turn_to_the_next() -> None:
    with (
        ServerThread(ServerConfig(settings={"max.connections": "1"})) as server,
        Wire(server.ports()[1]) as first,
        Wire(server.ports()[1]) as second,
        Wire(server.ports()[1]) as third,
    ):
        assert first.exchange(REQUEST, 9, MetadataResponse).brokers
        until(lambda: len(server.server.connections) > 1)  # the third may be in the backlog yet
        second.socket.close()
        first.socket.close()
        assert third.exchange(REQUEST, 9, MetadataResponse).brokers


class FailingSocket(socket.socket):
    """A socket whose first calls of `accept` fail."""

    def __init__(self, *errors: OSError) -> None:
        super().__init__()
        self.errors = list(errors)

    def accept(self) -> tuple[socket.socket, Any]:
        if self.errors:
            raise self.errors.pop(0)
        return super().accept()


def test_an_error_is_logged_and_clients_are_accepted_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)

    class Connection(asyncio.Protocol):
        slot = asyncio.Event()

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.close()

        def connection_lost(self, _error: Exception | None) -> None:
            self.slot.set()

    async def scenario() -> None:
        aborted = ConnectionAbortedError(errno.ECONNABORTED, "aborted")
        sock = FailingSocket(aborted, OSError(errno.EMFILE, "Too many open files"))
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        served = Connection()
        acceptor = Acceptor(sock, lambda _: served)  # type: ignore[arg-type,return-value]
        with socket.create_connection(sock.getsockname(), timeout=60):
            await served.slot.wait()
        await acceptor.stop()

    with caplog.at_level(logging.ERROR, "kafkawire.node"):
        asyncio.run(scenario())
    [record] = caplog.records
    assert "Too many open files" in record.getMessage()
