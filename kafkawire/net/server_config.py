"""The configuration of a server: brokers, topics, listeners, and Kafka's broker keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..broker.bounds import DEFAULT_BOUNDS, Bounds
from ..broker.releases import LATEST

if TYPE_CHECKING:
    import ssl

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of a server.

    topics: name -> partitions. ports: one per broker, 0 for any; () for any port each. settings:
    Kafka's broker keys. passwords: user -> password, where `sasl.enabled.mechanisms` is set. tls:
    for all listeners. seed: of random numbers and ids, None for a random one. bounds: limits for
    which Kafka has no key. zookeeper: whether brokers of a release before 2.8 elect a controller
    and connect to each other; not with TLS or SASL.
    """

    brokers: int = 1
    topics: Mapping[str, int] = field(default_factory=dict)
    host: str = HOST
    ports: Sequence[int] = ()
    release: str = LATEST
    settings: Mapping[str, str] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    seed: int | None = None
    racks: Sequence[str] = ()
    bounds: Bounds = DEFAULT_BOUNDS
    zookeeper: bool = False

    def __post_init__(self) -> None:
        if not self.zookeeper:
            return
        from ..broker.apis import between_brokers  # imported only where needed

        between_brokers(self.release)
        if self.tls is not None or "sasl.enabled.mechanisms" in self.settings:
            raise ValueError("zookeeper: brokers connect to each other without TLS and SASL only")


DEFAULT: Final = ServerConfig()
