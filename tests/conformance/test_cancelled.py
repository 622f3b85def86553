"""A connection whose task is cancelled, as by an interrupted run."""

from __future__ import annotations

import asyncio

from kafkawire.conformance.connection import Connection

TURNS = 8
"""More turns of the event loop than a write takes."""


async def sends_without_end(connection: Connection) -> None:
    while True:
        await connection.write(b"request")
        await asyncio.sleep(0)


async def cancelled_in_every_turn() -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1")
    address = server.sockets[0].getsockname()
    connection = Connection(*await asyncio.open_connection(*address), address, 30, None)
    try:
        for turns in range(1, TURNS):
            sending = asyncio.create_task(sends_without_end(connection))
            for _ in range(turns):
                await asyncio.sleep(0)
            sending.cancel()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            assert sending.cancelled(), turns
    finally:
        connection.close()
        server.close()
        for writer in writers:
            writer.close()


def test_a_write_ends_when_its_task_is_cancelled_in_any_turn_of_the_event_loop() -> None:
    asyncio.run(cancelled_in_every_turn())
