"""Accepts the clients of a listener while its broker has slots for them, as Kafka's acceptor.

A client without a slot (`max.connections`) is not read from, and none is accepted after it until
it has one: the others wait in the backlog of the socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from .transport import Address, ServerConnection

LOG: Final = logging.getLogger("kafkawire.node")
AT_ONCE: Final = 32
"""Clients that are accepted in one iteration of the event loop."""
RETRY_S: Final = 1.0
"""Seconds until clients are accepted again after an error, such as too many open files."""
ITERATIONS: Final = 3
"""Iterations of the event loop until an accepted client is in `connections`."""
Client = tuple[socket.socket, Any]


class Acceptor:
    """Accepts the clients of a socket that is bound, until `stop`.

    connection_of: returns the connection of a client.
    """

    def __init__(
        self, sock: socket.socket, connection_of: Callable[[Address], ServerConnection]
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._connection_of = connection_of
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._task = self._loop.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and close the socket; clients accepted before have connections then."""
        self._stopping = True
        with suppress(NotImplementedError):  # a proactor event loop
            self._loop.remove_reader(self._sock.fileno())
        for _ in range(ITERATIONS):
            await asyncio.sleep(0)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._sock.close()

    async def _run(self) -> None:
        while not self._stopping:
            try:
                clients = await self._clients()
            except ConnectionAbortedError:  # the client has closed the connection already
                continue
            except OSError as error:
                LOG.error("clients cannot be accepted: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            await asyncio.gather(*(self._serve(*each) for each in clients))

    async def _clients(self) -> list[Client]:
        """Wait for a client; return it, and others that have connected."""
        clients: list[Client] = [await self._loop.sock_accept(self._sock)]
        while len(clients) < AT_ONCE:
            try:
                client, address = self._sock.accept()
            except OSError:  # none is left; another error comes again
                break
            client.setblocking(False)
            clients.append((client, address))
        return clients

    async def _serve(self, client: socket.socket, address: Any) -> None:
        """Begin to serve a client; return when it has a slot."""
        connection = self._connection_of((str(address[0]), address[1]))
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError:  # the client has closed the connection already
            client.close()
        else:
            await connection.slot.wait()
