"""The settings of a transaction coordinator, by Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """The settings of a coordinator, in seconds; expiration_ms: transactional.id.expiration.ms.

    epoch_ms: milliseconds since 1970 at `now` 0. ids: how many transactional ids it keeps at most.
    append_timeout: after which a request fails whose record is not committed.
    """

    epoch_ms: int = 0
    abort_interval: float = 10.0
    expire_interval: float = 3600.0
    expiration_ms: int = 604_800_000
    append_timeout: float = 5.0
    ids: int = 10_000
