"""The configuration of a cluster: brokers, topics, listeners, and Kafka's broker keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from ..broker.apis import between_brokers
from ..broker.bounds import DEFAULT_BOUNDS, Bounds
from ..broker.configs import Settings
from ..broker.releases import LATEST, versions_of
from ..broker.security.listeners import ADVERTISED, LISTENERS, listener_settings
from ..broker.security.server import MECHANISMS
from ..broker.security.settings import check_security
from ..configs import config_texts
from ..configs.topic_names import topic_name_error
from ..display import did_you_mean, plural
from .listeners import SASL, ListenerPlan, Site, check_authentication, listener_plan

if TYPE_CHECKING:
    import ssl

HOST: Final = "127.0.0.1"
QUICK: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
}
"""Default settings of the pytest fixtures: members get their partitions soon."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of a cluster in memory, or of one of nodes.

    topics: name -> partitions. ports: one per broker, 0 for any; () for any port each. racks: one
    per broker, or (). settings: Kafka's broker keys; values as text, or the Python values that they
    stand for. passwords: user -> password; clients need SASL then, with any of `MECHANISMS` unless
    `sasl.enabled.mechanisms` is set. tls: for listeners without a certificate in `settings`;
    clients need TLS then, unless `listeners` is set. seed: of random numbers and ids, None for a
    random one. bounds: limits for which Kafka has no key.
    zookeeper: in memory, whether brokers of a release before 2.8 elect a controller and connect to
    each other; not with TLS or SASL. directories: of nodes, how many log directories each has.

    Raises ValueError for what is not valid.
    """

    brokers: int = 1
    topics: Mapping[str, int] = field(default_factory=dict)
    host: str = HOST
    ports: Sequence[int] = ()
    release: str = LATEST
    settings: Mapping[str, Any] = field(default_factory=dict)
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
                shown = name if name in SECRET else f"{name}={value!r}"
                raise ValueError(f"{shown}: expected {expected}")
        for name in PER_BROKER:
            count = len(getattr(self, name))
            if count not in (0, self.brokers):
                wanted = f"one for each of {plural(self.brokers, 'broker')}, or none"
                raise ValueError(f"{name}: {plural(count, 'value')}; expected {wanted}")
        for topic in self.topics:
            reason = topic_name_error(topic)
            if reason is not None:
                raise ValueError(f"topics: {reason}")
        object.__setattr__(self, "settings", self._effective_settings())
        versions_of(self.release)
        self._check_listeners()
        if not self.zookeeper:
            return

        between_brokers(self.release)
        if self.tls is not None or SASL in self.settings:
            raise ValueError("zookeeper: brokers connect to each other without TLS and SASL only")
        if self.listeners().is_configured:
            raise ValueError(f"zookeeper: not with {LISTENERS} and {ADVERTISED} of settings")

    def _effective_settings(self) -> dict[str, str]:
        """Return the settings as text, with what the passwords imply."""
        try:
            settings = config_texts(self.settings)
            Settings(settings)
            check_security(settings)
        except ValueError as error:
            raise ValueError(f"settings: {error}") from None
        keys = listener_settings(settings)
        has_sasl = any(keys.protocol(each.name).has_sasl for each in keys.listeners)
        if self.passwords or has_sasl:
            settings.setdefault(SASL, ",".join(MECHANISMS))
        return settings

    def _check_listeners(self) -> None:
        if LISTENERS in self.settings and self.ports:
            raise ValueError(f"ports: {LISTENERS} of settings has the ports")
        try:
            plan = self.listeners()
        except ValueError as error:
            raise ValueError(f"settings: {error}") from None
        check_authentication(plan, passwords=self.passwords, tls=self.tls)

    def listeners(self) -> ListenerPlan:
        """Plan the listeners of the brokers."""
        site = Site(self.brokers, self.host, self.ports, self.release, self.tls)
        return listener_plan(Settings(self.settings), site)

    def refuse(self, name: str, reason: str) -> None:
        """Raise ValueError if a field has another value than its default."""
        if getattr(self, name) != getattr(DEFAULT, name):
            raise ValueError(f"{name}={getattr(self, name)!r}: {reason}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _maps_text_to(is_value: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and is_value(each) for name, each in value.items())
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _lists(is_value: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, Sequence) and not isinstance(value, str) and all(map(is_value, value))
    )


def _is_port(value: object) -> bool:
    return type(value) is int and 0 <= value <= 65535


def _is_tls(value: object) -> bool:
    return value is None or hasattr(value, "wrap_bio")  # without the import of ssl


EXPECTED: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "brokers": (_is_count, "a number from 1"),
    "directories": (_is_count, "a number from 1"),
    "topics": (_maps_text_to(_is_count), "names with numbers of partitions, as {'orders': 1}"),
    "settings": (
        _maps_text_to(lambda _: True),
        "Kafka's keys with values, as {'num.partitions': 3}",
    ),
    "passwords": (
        _maps_text_to(_is_text),
        "users with their passwords, as {'alice': 'her password'}",
    ),
    "release": (_is_text, "the name of a release, such as '2.8'"),
    "host": (_is_text, "an address to listen on"),
    "ports": (_lists(_is_port), "a list of ports, 0 for any"),
    "racks": (_lists(_is_text), "a list of the names of racks"),
    "tls": (_is_tls, "an ssl.SSLContext"),
    "seed": (lambda value: value is None or type(value) is int, "a number or None"),
    "bounds": (lambda value: isinstance(value, Bounds), "a kafkawire.broker.Bounds"),
    "zookeeper": (lambda value: isinstance(value, bool), "True or False"),
}
"""Field -> what a valid value is."""
SECRET: Final = frozenset({"passwords"})
"""Fields whose values no error shows."""
PER_BROKER: Final = ("ports", "racks")
"""Fields with a value for each broker, or none."""
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
