"""Writes frames to asyncio transports without joining their pieces.

A large piece is not copied while the socket takes its bytes.
"""

from __future__ import annotations

import asyncio


def write_buffers(transport: asyncio.WriteTransport, buffers: list[bytes]) -> None:
    """Write pieces in order; what comes after the end of the transport is dropped.

    Not `writelines`: before Python 3.12 it joins the pieces, later it does not always pause the
    protocol of a full transport. What a socket does not take at once, a transport slices: the
    slice of a `memoryview` is no copy.
    """
    if len(buffers) == 1:
        if not transport.is_closing():
            transport.write(buffers[0])
        return
    for buffer in buffers:
        if transport.is_closing():
            return
        transport.write(memoryview(buffer))
