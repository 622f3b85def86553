"""Plans the listeners of brokers: their ports, the addresses that clients are shown, and TLS.

Without `listeners`, a broker has one for clients, whose name is its security protocol. Brokers
reach each other on one without SASL and TLS, which is added, unless a key names another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..broker.configs import Settings
from ..broker.releases import LATEST
from ..broker.security.listeners import (
    ADVERTISED,
    INTER_BROKER,
    LISTENERS,
    PROTOCOLS,
    ListenerSettings,
    check_advertised,
    listener_settings,
)
from ..broker.security.protocols import SecurityProtocol
from ..display import host_and_port
from ..node.properties import BROKER, REPLICATION
from ..raft import Endpoint

if TYPE_CHECKING:
    import ssl

SASL: Final = "sasl.enabled.mechanisms"
KEYSTORE: Final = "ssl.keystore.location"
NO_ENDPOINT: Final = Endpoint("", "", 0)


class Site(NamedTuple):
    """Where the brokers of a configuration listen, as far as no key says so.

    ports: of the clients of each broker, 0 or absent for any. tls: of listeners without a
    certificate in the keys.
    """

    brokers: int
    host: str
    ports: Sequence[int]
    release: str
    tls: ssl.SSLContext | None


class PlannedListener(NamedTuple):
    """A listener of all brokers.

    ports: of each broker, 0 or absent for any. advertised: the address that clients of the first
    broker are shown, port 0 for its own; others have the ports after it. None for where it listens.
    is_registered: whether the cluster knows of it.
    """

    name: str
    host: str
    ports: Sequence[int] = ()
    advertised: Endpoint | None = None
    tls: ssl.SSLContext | None = None
    is_registered: bool = True

    def port(self, broker: int) -> int:
        """Return the port of a broker, 0 for any. broker: its position, from 0."""
        return self.ports[broker] if broker < len(self.ports) else 0

    def shown(self, broker: int, host: str, port: int) -> Endpoint:
        """Return the address that clients of a broker are shown. host, port: where it listens."""
        _, to_clients, first = self.advertised or NO_ENDPOINT
        return Endpoint(self.name, to_clients or host, first + broker if first else port)


class ListenerPlan(NamedTuple):
    """The listeners of each broker.

    listeners: those that have ports anyway; perhaps that of controllers, too. inter_broker,
    controller: names. protocols: of `listeners`. is_configured: whether keys say where.
    """

    listeners: tuple[PlannedListener, ...]
    inter_broker: str
    controller: str
    protocols: Mapping[str, SecurityProtocol]
    is_configured: bool

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the listeners of clients; the first is the one of `bootstrap`."""
        return tuple(each.name for each in self.listeners if each.name != self.controller)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the listeners of brokers, the one between brokers first."""
        return tuple(dict.fromkeys((self.inter_broker, *self.clients)))

    @property
    def has_controller(self) -> bool:
        """Whether the listener of controllers is configured."""
        return any(each.name == self.controller for each in self.listeners)

    def listener(self, name: str, host: str) -> PlannedListener:
        """Return a listener; one that is not configured has any port."""
        named = (each for each in self.listeners if each.name == name)
        return next(named, PlannedListener(name, host))

    def properties(self, bound: Sequence[Endpoint], shown: Sequence[Endpoint]) -> dict[str, str]:
        """Return the keys of a broker with its ports, if its listeners are configured."""
        if not self.is_configured:
            return {}
        planned = [each.name for each in self.listeners]
        registered = [each.name for each in self.listeners if each.is_registered]
        return {
            LISTENERS: _text([each for each in bound if each.name in planned]),
            ADVERTISED: _text([each for each in shown if each.name in registered]),
        }


def _text(endpoints: Sequence[Endpoint]) -> str:
    return ",".join(f"{name}://{host_and_port(host, port)}" for name, host, port in endpoints)


def listener_plan(settings: Settings, site: Site) -> ListenerPlan:
    """Plan the listeners. Raises ValueError, which names the key, for what is not possible."""
    keys = listener_settings(settings.effective)
    addresses = _addresses(settings, keys, site)
    planned = []
    protocols = {}
    for name, host, ports in addresses:
        tls = None
        protocols[name] = keys.protocols.get(name, SecurityProtocol.of_listener(name))
        if protocols[name].has_tls:
            from .brokers.tls_contexts import listener_tls  # imported only with TLS

            tls = listener_tls(settings, name, site.tls)
        advertised = None if keys.advertised is None else keys.advertised.get(name)
        is_registered = keys.advertised is None or advertised is not None
        is_registered &= name != keys.controller
        host = host or site.host
        planned.append(PlannedListener(name, host, ports, advertised, tls, is_registered))
    names = [each.name for each in planned]
    check_advertised(keys, names)
    _check_ports(planned, site.brokers)
    between = _inter_broker(keys, names, site.release)
    protocols.setdefault(keys.controller, _protocol(keys, keys.controller))
    is_configured = bool(keys.listeners or keys.advertised)
    return ListenerPlan(tuple(planned), between, keys.controller, protocols, is_configured)


def _protocol(keys: ListenerSettings, name: str) -> SecurityProtocol:
    """Return the protocol of a listener that nodes reach each other on."""
    return keys.protocols.get(name, SecurityProtocol.PLAINTEXT)


def _addresses(
    settings: Settings, keys: ListenerSettings, site: Site
) -> list[tuple[str, str, Sequence[int]]]:
    """Return name, host and ports of what is configured, or of the listener of clients."""
    if not keys.listeners:
        protocol = SecurityProtocol.with_(
            sasl=bool(settings.items(SASL)),
            tls=site.tls is not None or bool(settings.text(KEYSTORE)),
        )
        return [(protocol.name, site.host, site.ports)]
    return [
        (name, host, tuple(range(port, port + site.brokers)) if port else ())
        for name, host, port in keys.listeners
    ]


def _check_ports(planned: Sequence[PlannedListener], brokers: int) -> None:
    """Check that no two listeners of all brokers have the same port."""
    taken: dict[tuple[str, int], str] = {}
    for broker in range(brokers):
        for each in planned:
            port = each.port(broker)
            if port > 65535:
                raise ValueError(f"{LISTENERS}: {each.name} has no port for broker {broker + 1}")
            other = taken.setdefault((each.host, port), each.name) if port else each.name
            if other != each.name:
                reason = f"{other} and {each.name} both have port {port}: broker N has the port"
                raise ValueError(f"{LISTENERS}: {reason} N - 1 after that of the first")


def _inter_broker(keys: ListenerSettings, names: Sequence[str], release: str) -> str:
    """Return the name of the listener between brokers."""
    plain = keys.protocols.get(BROKER, SecurityProtocol.PLAINTEXT) is SecurityProtocol.PLAINTEXT
    default = BROKER if release == LATEST and plain else REPLICATION
    name = keys.inter_broker or default
    if name not in (default, *names):
        raise ValueError(f"{INTER_BROKER}: no listener {name}: {', '.join(names)}")
    if name in names and name != default and release != LATEST:
        reason = f"brokers of release {release} reach each other on {default}"
        raise ValueError(f"{INTER_BROKER}: {reason}, which has the newest versions")
    if _protocol(keys, name) is not SecurityProtocol.PLAINTEXT and name not in names:
        raise ValueError(f"{INTER_BROKER}: no listener {name}: {', '.join(names)}")
    return name


def check_in_memory(plan: ListenerPlan) -> None:
    """Raise ValueError for SASL or TLS between nodes of one process."""
    for key, name in ((INTER_BROKER, plan.inter_broker), (PROTOCOLS, plan.controller)):
        protocol = plan.protocols.get(name, SecurityProtocol.PLAINTEXT)
        if protocol is not SecurityProtocol.PLAINTEXT:
            reason = "nodes of one process reach each other without SASL and TLS only"
            raise ValueError(f"settings: {key}: {name} has {protocol.name}: {reason}")


def check_authentication(plan: ListenerPlan, *, passwords: object, tls: object) -> None:
    """Raise ValueError, which names the field, for passwords or TLS that no listener has."""
    protocols = [plan.protocols[each] for each in plan.clients]
    if passwords and not any(each.has_sasl for each in protocols):
        raise ValueError(f"passwords: no listener in {LISTENERS} has SASL")
    if tls is not None and not any(each.has_tls for each in protocols):
        raise ValueError(f"tls: no listener in {LISTENERS} has TLS")
