"""Finds out which side of a connection is the client, or which other protocol it has.

Law: a side that is known from a SYN or a port is checked, any other is proven by the content. All
searches of a connection together are linear in its bytes.

    held bytes of both sides --a proven request--> client
       |--they begin like another protocol, or there are too many--> protocol
       `--responses that can be nothing else, and no byte of the other side--> client
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from librt.strings import read_i32_be

from ...primitives import Limits
from ..frames.apis import KAFKA_APIS, Apis
from ..frames.detection import looks_like_request, scan_request
from ..frames.framing import Stream
from ..frames.other_protocols import has_tls_records, signature
from .inference import walk_responses

SIZE: Final = 4
MAX_HELD: Final = 1 << 20
"""Bytes held of a direction that is undetected or out of sync; older ones are given up."""


class Detected(NamedTuple):
    """The side that is the client, or the name of another protocol; both None if undecided."""

    client: int | None = None
    protocol: str | None = None


UNDECIDED: Final = Detected()


@final
class ClientDetection:
    """Searches the streams of both sides of a connection."""

    def __init__(
        self, streams: tuple[Stream, Stream], limits: Limits, apis: Apis = KAFKA_APIS
    ) -> None:
        self._streams = streams
        self._limits = limits
        self._apis = apis
        self._walked = 0
        self._searched = [0, 0]
        self._retry_at = [0, 0]

    def detect(self, client: int | None, *, last: bool) -> Detected:
        """Search the held bytes. client: the side that is the client if it is one.

        last: also if few bytes arrived since the last attempt.
        """
        for side in (0, 1) if client is None else (client,):
            stream = self._streams[side]
            end = stream.position + stream.held
            if not stream.held or (end < self._retry_at[side] and not last):
                continue
            self._retry_at[side] = end + retry_bytes(stream.held)
            data = stream.peek()
            if self._sends_requests(side, client, data):
                return Detected(client=side)
            protocol = signature(data)
            if protocol is not None:
                return Detected(protocol=protocol)
            if self.sends_only_responses(side, client):
                stream.in_sync = True
                return Detected(client=1 - side)
        full = sum(stream.held for stream in self._streams) > MAX_HELD
        if (full or last) and any(has_tls_records(stream.peek()) for stream in self._streams):
            return Detected(protocol="TLS: the handshake was not captured")
        if full:
            return Detected(protocol="not recognised")
        return UNDECIDED

    def sends_only_responses(self, side: int, client: int | None) -> bool:
        """Whether a side sends responses, if the other side was not captured.

        One of its first frames can then only be a certain response.
        """
        stream, other = self._streams[side], self._streams[1 - side]
        if other.position or other.held or side == client:
            return False
        start = max(0, self._walked - stream.position)
        walked = walk_responses(stream.peek(), start, self._limits, self._apis)
        self._walked = stream.position + walked.end
        return walked.certain

    def _sends_requests(self, side: int, client: int | None, data: bytes) -> bool:
        limit, stream = self._limits.max_frame_bytes, self._streams[side]
        if stream.in_sync and client is not None:
            return looks_like_request(data, 0, limit, self._apis)
        start = max(0, self._searched[side] - stream.position)
        found, resume = scan_request(data, limit, start, self._apis)
        self._searched[side] = stream.position + resume
        if found is None:
            return False
        self._retry_at[side] = stream.position + bytes_for_retry(data, found.at)
        return found.proven


def retry_bytes(held: int) -> int:
    """Return how many more bytes to wait for before all held bytes are searched again.

    They are a share of the held ones, so that all searches together are linear in the bytes.
    """
    return 1 + (held >> 4)


def bytes_for_retry(data: bytes, at: int) -> int:
    """Return how many bytes to hold before a frame that may begin at `at` is checked again.

    That is half as many more of it, or all of it.
    """
    held = len(data)
    if held - at < SIZE:
        return held + 1
    end = at + SIZE + int(read_i32_be(data, at))
    wanted = held + 1 + ((held - at) >> 1)
    return min(wanted, end) if end > held else held + 1
