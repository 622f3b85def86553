"""The SCRAM mechanisms of Kafka (KIP-554): their numbers, hashes and iterations."""

from __future__ import annotations

from typing import Final

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Mechanism -> its number in requests and records."""
ITERATIONS: Final = range(4096, 16384 + 1)
"""How many iterations a credential may have."""
