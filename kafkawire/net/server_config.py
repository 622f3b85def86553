"""The configuration of a cluster: brokers, topics, listeners, and Kafka's broker keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from ..broker.apis import between_brokers
from ..broker.bounds import DEFAULT_BOUNDS, Bounds
from ..broker.configs import Settings
from ..broker.releases import LATEST, versions_of
from ..broker.security.protocols import SecurityProtocol
from ..configs.topic_names import topic_name_error
from ..display import did_you_mean

if TYPE_CHECKING:
    import ssl

HOST: Final = "127.0.0.1"
QUICK: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Default settings of the pytest fixtures: no initial rebalance delay."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of a cluster in memory, or of one of nodes.

    topics: name -> partitions. ports: one per broker, 0 for any; () for any port each. settings:
    Kafka's broker keys. passwords: user -> password, where `sasl.enabled.mechanisms` is set. tls:
    for all listeners of clients. seed: of random numbers and ids, None for a random one. bounds:
    limits for which Kafka has no key.
    zookeeper: in memory, whether brokers of a release before 2.8 elect a controller and connect to
    each other; not with TLS or SASL. directories: of nodes, how many log directories each has.

    Raises ValueError for what is not valid.
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
    directories: int = 1

    def __post_init__(self) -> None:
        for name, (is_valid, expected) in EXPECTED.items():
            value = getattr(self, name)
            if not is_valid(value):
                raise ValueError(f"{name}={value!r}: expected {expected}")
        for topic in self.topics:
            reason = topic_name_error(topic)
            if reason is not None:
                raise ValueError(f"topics: {reason}")
        Settings(self.settings)
        versions_of(self.release)
        if not self.zookeeper:
            return

        between_brokers(self.release)
        if self.tls is not None or "sasl.enabled.mechanisms" in self.settings:
            raise ValueError("zookeeper: brokers connect to each other without TLS and SASL only")

    def refuse(self, name: str, reason: str) -> None:
        """Raise ValueError if a field has another value than its default."""
        if getattr(self, name) != getattr(DEFAULT, name):
            raise ValueError(f"{name}={getattr(self, name)!r}: {reason}")


def client_listener(config: ServerConfig) -> str:
    """Return the name of the listener of clients: its security protocol."""
    sasl = bool(config.settings.get("sasl.enabled.mechanisms"))
    return SecurityProtocol.with_(sasl=sasl, tls=config.tls is not None).name


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _maps_text_to(is_value: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and is_value(each) for name, each in value.items())
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


EXPECTED: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "brokers": (_is_count, "a number from 1"),
    "directories": (_is_count, "a number from 1"),
    "topics": (_maps_text_to(_is_count), "names with their numbers of partitions"),
    "settings": (_maps_text_to(_is_text), "Kafka's keys with their values as text"),
    "passwords": (_maps_text_to(_is_text), "users with their passwords"),
    "release": (_is_text, "the name of a release, such as '2.8'"),
}
"""Field -> what a valid value is."""
FIELDS: Final = tuple(each.name for each in fields(ServerConfig))
RENAMED: Final = {"nodes": "brokers"}
"""Former names of fields."""
DEFAULT: Final = ServerConfig()


def read_marker(marker: str, arguments: Mapping[str, Any]) -> ServerConfig:
    """Return the configuration that a pytest marker has. ValueError names the marker."""
    for name in arguments:
        if name not in FIELDS:
            former = RENAMED.get(name)
            hint = did_you_mean(name, FIELDS) if former is None else f"; did you mean {former!r}?"
            raise ValueError(f"unknown argument {name!r} of the marker {marker}{hint}")
    try:
        return ServerConfig(**arguments)
    except ValueError as error:
        raise ValueError(f"marker {marker}: {error}") from None
