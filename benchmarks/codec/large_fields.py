"""Encodes a Produce request of 2 MB of records: joined, in pieces, and as a frame; and memcpy.

A message's records are one bytes object, as a record batch is when it is sent.
"""

from __future__ import annotations

from typing import Final

import kafkawire
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

from ..measure import Figure, interleave

BYTES: Final = 2_000_000
VERSION: Final = 9


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds a message, and microseconds of one copy of its records."""
    records = bytes(range(250)) * (BYTES // 250)
    part = PartitionProduceData(index=0, records=records)
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part])])
    cases = {
        "memcpy": lambda: bytearray(records),
        "encode": lambda: message.encode(VERSION),
        "encode_frame": lambda: kafkawire.encode_frame(message, VERSION, 1, client_id="me"),
        "encode_buffers": lambda: message.encode_buffers(VERSION),
    }
    return interleave("large fields", f"ProduceRequest v{VERSION}, {BYTES:,} bytes", cases, rounds)
