"""Settings of a client's network."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .backoff import Backoff
from .connection_states import ConnectionSettings


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Settings of a client's network; times in seconds.

    rebootstrap: go back to the bootstrap servers when no known broker is reachable (KIP-899), or
    when a broker requires it (KIP-1102).
    bootstrap_timeout_s: how long to try the bootstrap servers before requests fail; None: as long
    as the requests' own timeouts. bootstrap_attempts: after how many failed attempts at each of
    them, within that time, requests fail.
    """

    connection: ConnectionSettings
    reconnect: Backoff
    retry: Backoff
    metadata_max_age_s: float
    idle_s: float
    auto_create_topics: bool = False
    rebootstrap: bool = True
    bootstrap_timeout_s: float | None = None
    bootstrap_attempts: float = inf
