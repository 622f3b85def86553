"""Sends a case on a connection, and reads what the broker does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from ..conformance.connection import Connection, Disconnected, Overdue
from ..errors import DecodeError
from ..messages.api_key import ApiKey
from ..messages.api_versions_request import ApiVersionsRequest
from ..protocol.frame import encode_frame
from .cases import FOLLOW_UP, Case, Expected
from .judgement import Ending, Observation

BRIEF_S: Final = 0.05
"""Seconds for what may follow a request whose end does not come."""
WITHOUT_FOLLOW_UP: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""After these only some requests are allowed on the connection."""
VERIFIED: Final = ApiVersionsRequest(client_software_name="kafkawire", client_software_version="1")


async def observe(connection: Connection, case: Case) -> Observation:
    """Send a case on a connection, and read what follows."""
    frames: list[bytes] = []
    followed = False
    ending = Ending.FRAMES
    try:
        await connection.write(case.data())
        match case.expected:
            case Expected.ANYTHING:
                connection.end()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BRIEF_S):
                        frames.append(await connection.read())
            case Expected.RESPONSE_OR_CLOSE:
                frames.append(await connection.read())
            case Expected.RESPONSE | Expected.NO_RESPONSE:
                if case.expected is Expected.RESPONSE:
                    frames.append(await connection.read())
                if case.api not in WITHOUT_FOLLOW_UP:
                    followed = True
                    await connection.write(encode_frame(VERIFIED, 0, FOLLOW_UP, client_id=""))
                    frames.append(await connection.read())
    except Disconnected:
        ending = Ending.CLOSED
    except Overdue:
        ending = Ending.SILENCE
    except DecodeError:
        ending = Ending.MALFORMED
    return Observation(tuple(frames), ending, followed, alive=True)
