"""What a client's network is told."""

from __future__ import annotations

from dataclasses import dataclass

from .backoff import Backoff
from .connection_states import ConnectionSettings


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What a client's network is told once; times in seconds.

    rebootstrap: go back to the addresses it began with when no known broker can be reached
    (KIP-899).
    """

    connection: ConnectionSettings
    reconnect: Backoff
    retry: Backoff
    metadata_max_age_s: float
    idle_s: float
    auto_create_topics: bool = False
    rebootstrap: bool = True
