"""Runs a replica of `kafkawire.raft` on loopback sockets, against real controllers.

One thread of asyncio for all nodes of a test; the machine gets its time and its bytes here.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import Final

import kafkawire
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kafkawire.primitives import Message
from kafkawire.raft import (
    VERSIONS,
    Effect,
    Event,
    KafkaRaftClient,
    MemoryLog,
    Node,
    PersistQuorumState,
    RaftConfig,
    Reply,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
)

from .wire import HOST

FRAME_SECONDS: Final = 5.0


class RaftNode:
    """A replica with a server and a connection to each node that it sends to."""

    def __init__(self, config: RaftConfig) -> None:
        self.config = config
        self.log = MemoryLog()
        self.client = KafkaRaftClient(config, self.log, random.random)
        self.effects: list[Effect] = []
        self.quorum_state: str | None = None
        self._started = time.monotonic()
        self._last_reply = 0
        self._replies: dict[int, tuple[asyncio.StreamWriter, Message, int, int]] = {}
        self._connections: dict[
            tuple[str, int], tuple[asyncio.StreamReader, asyncio.StreamWriter]
        ] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def now(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._started

    async def start(self) -> None:
        """Listen and start."""
        if self.config.endpoints:
            self._server = await asyncio.start_server(
                self._serve, HOST, self.config.endpoints[0].port
            )
        self._carry_out(self.client.start(self.quorum_state, self.now))

    async def stop(self) -> None:
        """Close everything."""
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in self._connections.values():
            writer.close()

    def handle(self, event: Event) -> None:
        """Give the machine an event."""
        self._carry_out(self.client.handle(event, self.now))

    def _advance(self) -> None:
        self._carry_out(self.client.advance(self.now))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(correlation_id, node, request):
                    task = asyncio.ensure_future(self._send(correlation_id, node, request))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case Reply(reply_to, response):
                    self._reply(reply_to, response)
                case PersistQuorumState(text):
                    self.quorum_state = text
                case _:
                    self.effects.append(effect)
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.client.next_deadline()
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(deadline - self.now, 0.001), self._advance)

    # -- as a client

    async def _send(self, correlation_id: int, node: Node, request: Message) -> None:
        at = (node.host, node.port)
        try:
            if at not in self._connections:
                self._connections[at] = await asyncio.open_connection(*at)
            reader, writer = self._connections[at]
            version = VERSIONS[type(request).__name__][1]
            writer.write(kafkawire.encode_frame(request, version, correlation_id, client_id="raft"))
            api_key = kafkawire.REGISTRY.get(type(request).__name__).api_key
            assert api_key is not None
            async with asyncio.timeout(FRAME_SECONDS):
                data = await _frame(reader)
            frame = kafkawire.decode_frame(data, response_to=(api_key, version))
            assert frame.correlation_id == correlation_id
            body = frame.body
            assert body is not None
        except (OSError, EOFError, TimeoutError):
            connection = self._connections.pop(at, None)
            if connection is not None:
                connection[1].close()
            self.handle(RequestFailed(correlation_id))
            return
        self.handle(ResponseReceived(correlation_id, body))

    # -- as a server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, EOFError, asyncio.CancelledError):
            while True:
                self._request(await _frame(reader), writer)
        self._tasks.discard(task)
        writer.close()

    def _request(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        frame = kafkawire.decode_frame(data)
        request = frame.body
        assert request is not None
        self._last_reply += 1
        self._replies[self._last_reply] = (
            writer,
            request,
            frame.api_version,
            frame.correlation_id,
        )
        if isinstance(request, ApiVersionsRequest):
            self._reply(self._last_reply, _api_versions())
        else:
            self.handle(RequestReceived(self._last_reply, request, frame.api_version))

    def _reply(self, reply_to: int, response: Message) -> None:
        writer, _, version, correlation_id = self._replies.pop(reply_to)
        writer.write(kafkawire.encode_frame(response, version, correlation_id))


def _api_versions() -> Message:
    ranges = {kafkawire.REGISTRY.get(name).api_key: range for name, range in VERSIONS.items()}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=least, max_version=most)
            for key, (least, most) in ranges.items()
            if key is not None
        ],
        supported_features=[
            SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
        ],
    )


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))
