"""The features of a cluster (KIP-584) that clients act on."""

from __future__ import annotations

from typing import Final

TRANSACTIONS: Final = "transaction.version"
UNSERVED: Final = frozenset({"group.version", "share.version", "streams.version"})
"""Features whose APIs no broker of kafkawire serves: none of them says that they are finalized.

Brokers of Kafka in the same cluster may serve them, so nodes support their levels.
"""
