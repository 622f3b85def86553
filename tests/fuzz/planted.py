"""A broker with planted faults: ours, behind a proxy that changes what it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto

from kafkawire.protocol.frame import SIZE

HOST = "127.0.0.1"
MOST = 1 << 20


class Fault(Enum):
    """What the proxy does with a request; RESPOND: lets the broker respond."""

    RESPOND = auto()
    HANG = auto()
    CLOSE = auto()
    CRASH = auto()


Wrong = Callable[[bytes], Fault]
Change = Callable[[bytes, bytes], bytes]


class Planted:
    """The proxy."""

    def __init__(self, bootstrap: str, wrong: Wrong, change: Change) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._broker = host, int(port)
        self._wrong = wrong
        self._change = change
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> str:
        """Listen; return the bootstrap servers."""
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        return f"{HOST}:{self._server.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """Close everything, as a crash does."""
        assert self._server is not None
        self._server.close()
        for each in self._writers:
            each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        from_broker, to_broker = await asyncio.open_connection(*self._broker)
        try:
            while True:
                frame = await _frame(reader)
                match self._wrong(frame):
                    case Fault.RESPOND:
                        to_broker.write(frame)
                        writer.write(self._change(frame, await _frame(from_broker)))
                    case Fault.HANG:
                        await reader.read()
                        return
                    case Fault.CLOSE:
                        return
                    case Fault.CRASH:
                        self.stop()
                        return
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            to_broker.close()
            writer.close()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(SIZE)
    length = int.from_bytes(size, "big", signed=True)
    if not 0 <= length <= MOST:
        raise OSError(f"a frame of {length} bytes")
    return size + await reader.readexactly(length)


def responds(_: bytes) -> Fault:
    """Let the broker respond to every request."""
    return Fault.RESPOND


def unchanged(_: bytes, response: bytes) -> bytes:
    """Leave responses as they are."""
    return response


@contextlib.asynccontextmanager
async def planted(
    bootstrap: str, wrong: Wrong = responds, change: Change = unchanged
) -> AsyncIterator[str]:
    """Run a proxy before a broker; yield its bootstrap servers.

    wrong: what is done with a request. change: (request, response) -> response.
    """
    proxy = Planted(bootstrap, wrong, change)
    try:
        yield await proxy.start()
    finally:
        proxy.stop()
