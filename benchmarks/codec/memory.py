"""Measures the memory of a decoded MetadataResponse with 240 partitions: kafkawire and kio."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from ..measure import Figure, figure
from .bodies import Body, metadata_response
from .peers import kio, own

COPIES = 20


def held(decode: Callable[[], object]) -> float:
    """Measure the KiB of a decoded message, by tracing allocations."""
    kept = [decode()]  # caches filled by the first decode are not part of the message
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept += [decode() for _ in range(COPIES)]
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / COPIES / 1024
    finally:
        tracemalloc.stop()


def run(rounds: int) -> list[Figure]:
    """Measure; KiB a message."""
    body = Body(metadata_response(), 9)
    figures = []
    for name, bind in (("kafkawire", own), ("kio", kio)):
        decode = bind(body.name, body.version, body.data).decode
        values = [held(decode) for _ in range(rounds)]
        figures.append(figure("memory", f"{body.name} v{body.version}", name, "KiB", values))
    return figures
