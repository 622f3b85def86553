"""The subscription of clients to push metrics of their own (KIP-714): to none.

It follows from the id of the client's instance alone, so that every broker knows it and none
stores it.
"""

from __future__ import annotations

from typing import Final

from ..records import Compression
from ..records.checksum import crc32c

COMPRESSION_TYPES: Final = (
    Compression.ZSTD,
    Compression.LZ4,
    Compression.GZIP,
    Compression.SNAPPY,
)
"""The accepted codecs, the preferred one first."""
PUSH_INTERVAL_MS: Final = 300_000
TELEMETRY_MAX_BYTES: Final = "telemetry.max.bytes"
FINGERPRINT: Final = f"[]{PUSH_INTERVAL_MS}".encode()
"""What Kafka computes the checksum of: the metrics, as Java shows a list, and the interval."""


def subscription_id(client_instance_id: bytes) -> int:
    """Return the id of the subscription of a client's instance, an int32.

    It is CRC-32C of the subscription, XOR the hash of the UUID, as in Kafka's ClientMetricsManager.
    """
    checksum = crc32c(FINGERPRINT, 0, len(FINGERPRINT))
    for start in range(0, len(client_instance_id), 4):
        checksum ^= int.from_bytes(client_instance_id[start : start + 4], "big")
    return int.from_bytes(checksum.to_bytes(4, "big"), "big", signed=True)
