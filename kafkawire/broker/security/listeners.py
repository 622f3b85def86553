"""Reads the listeners of a broker from Kafka's keys: `listeners` and those beside it.

listeners=INTERNAL://:9092,EXTERNAL://:9094
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...configs import list_items, listener_key
from ...display import did_you_mean
from ...raft import Endpoint
from .protocols import SecurityProtocol

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
INTER_BROKER: Final = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROLLERS: Final = "controller.listener.names"
CONTROLLER: Final = "CONTROLLER"
"""The default name of the listener of controllers."""
URL: Final = re.compile(
    r"(?P<name>\w+)://(?:\[(?P<ipv6>[0-9a-fA-F:.%]+)\]|(?P<host>[-\w.%]*)):(?P<port>[0-9]{1,5})"
)
EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})


class ListenerSettings(NamedTuple):
    """What the keys say; names are in upper case.

    listeners: where the broker listens, () if the key is not set; port 0: any. advertised: what
    clients are shown, None for the same. protocols: of all names that may be used. inter_broker:
    the listener between brokers, "" if it is not set. controller: that of controllers.
    """

    listeners: tuple[Endpoint, ...]
    advertised: Mapping[str, Endpoint] | None
    protocols: Mapping[str, SecurityProtocol]
    inter_broker: str
    controller: str

    def protocol(self, name: str) -> SecurityProtocol:
        """Return the protocol of a listener. Raises ValueError if it has none."""
        protocol = self.protocols.get(name)
        if protocol is None:
            raise ValueError(f"{PROTOCOLS}: no security protocol for listener {name}")
        return protocol


def listener_settings(static: Mapping[str, str]) -> ListenerSettings:
    """Read the keys. Raises ValueError, which names the key, for what is not valid."""
    [controller, *others] = list_items(static.get(CONTROLLERS, CONTROLLER).upper()) or (CONTROLLER,)
    if others:
        raise ValueError(f"{CONTROLLERS}: expected one name")
    protocols = _protocols(static.get(PROTOCOLS), controller)
    listeners = _endpoints(LISTENERS, static.get(LISTENERS, ""))
    advertised = None
    if static.get(ADVERTISED):
        advertised = {each.name: each for each in _endpoints(ADVERTISED, static[ADVERTISED])}
    settings = ListenerSettings(listeners, advertised, protocols, _inter_broker(static), controller)
    if listeners:
        _check(settings, static)
    return settings


def _check(settings: ListenerSettings, static: Mapping[str, str]) -> None:
    """Check what the keys say about each other."""
    names = [each.name for each in settings.listeners]
    for name in names:
        settings.protocol(name)
    advertised = names if settings.advertised is None else list(settings.advertised)
    check_advertised(settings, names)
    between = settings.inter_broker
    if between and (between not in advertised or between == settings.controller):
        hint = did_you_mean(between, [each for each in advertised if each != settings.controller])
        raise ValueError(f"{INTER_BROKER}: {between} is not an advertised listener{hint}")
    for key in static:
        parsed = listener_key(key)
        if parsed is not None and parsed.listener not in (*names, settings.controller):
            hint = did_you_mean(parsed.listener, names)
            raise ValueError(f"{key}: {LISTENERS} has no listener {parsed.listener}{hint}")
    if set(names) == {settings.controller}:
        raise ValueError(f"{LISTENERS}: only the listener of controllers")


def check_advertised(settings: ListenerSettings, names: Iterable[str]) -> None:
    """Check that only listeners of brokers are advertised, at addresses that clients can use."""
    brokers = [each for each in names if each != settings.controller]
    for name, endpoint in (settings.advertised or {}).items():
        if name not in brokers:
            hint = did_you_mean(name, brokers)
            raise ValueError(f"{ADVERTISED}: {name} is not a listener of clients{hint}")
        if not endpoint.host:
            raise ValueError(f"{ADVERTISED}: {name} has no host")
    shown = settings.listeners if settings.advertised is None else settings.advertised.values()
    for endpoint in shown:
        if endpoint.host in EVERY_ADDRESS and endpoint.name in brokers:
            reason = f"clients cannot connect to {endpoint.host}"
            raise ValueError(f"{ADVERTISED}: needs an address of {endpoint.name}: {reason}")


def _endpoints(key: str, text: str) -> tuple[Endpoint, ...]:
    """Parse a list of listeners."""
    endpoints: list[Endpoint] = []
    for each in list_items(text):
        match = URL.fullmatch(each)
        if match is None or int(match["port"]) > 65535:
            raise ValueError(f"{key}: invalid listener {each!r}: expected NAME://HOST:PORT")
        endpoint = Endpoint(
            match["name"].upper(), match["ipv6"] or match["host"] or "", int(match["port"])
        )
        for other in endpoints:
            if other.name == endpoint.name:
                raise ValueError(f"{key}: {endpoint.name} twice")
            if key == LISTENERS and endpoint.port and other[1:] == endpoint[1:]:
                names = f"{other.name} and {endpoint.name}"
                raise ValueError(f"{key}: {names} have the same port {endpoint.port}")
        endpoints.append(endpoint)
    return tuple(endpoints)


def _protocols(text: str | None, controller: str) -> dict[str, SecurityProtocol]:
    """Parse the map; without one, names of protocols have these, controllers PLAINTEXT."""
    if text is None:
        return {controller: SecurityProtocol.PLAINTEXT, **SecurityProtocol.__members__}
    protocols: dict[str, SecurityProtocol] = {}
    for each in list_items(text):
        name, _, protocol = (part.strip().upper() for part in each.partition(":"))
        if protocol not in SecurityProtocol.__members__ or not name:
            expected = f"NAME:PROTOCOL, one of {', '.join(SecurityProtocol.__members__)}"
            raise ValueError(f"{PROTOCOLS}: invalid entry {each!r}: expected {expected}")
        if name in protocols:
            raise ValueError(f"{PROTOCOLS}: {name} twice")
        protocols[name] = SecurityProtocol[protocol]
    return protocols


def _inter_broker(static: Mapping[str, str]) -> str:
    name, protocol = static.get(INTER_BROKER, ""), static.get(INTER_BROKER_PROTOCOL, "")
    if name and protocol:
        raise ValueError(f"{INTER_BROKER}: not allowed together with {INTER_BROKER_PROTOCOL}")
    if protocol and protocol not in SecurityProtocol.__members__:
        expected = ", ".join(SecurityProtocol.__members__)
        raise ValueError(f"{INTER_BROKER_PROTOCOL}: expected one of {expected}")
    return (name or protocol).upper()
