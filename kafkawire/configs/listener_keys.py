"""The keys of one listener: `listener.name.`, its name in lower case, and a broker's key.

Some keys may have the name of a SASL mechanism, in lower case, before the broker's key.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .keys import BROKER_CONFIGS, ConfigKey, Update

PREFIX: Final = "listener.name."
PATTERN: Final = re.compile(re.escape(PREFIX) + r"(?P<listener>[^.]+)\.(?P<name>.+)")
GROUPS: Final = ("ssl.", "sasl.")
"""How the keys begin that a listener may have values of its own for."""
LIMITS: Final = frozenset({"max.connection.creation.rate", "max.connections"})
"""The keys that can be set while the broker runs."""
STORE: Final = ("location", "password", "type")
STORES: Final = frozenset(
    {
        "ssl.key.password",
        *(f"ssl.{store}.{of}" for store in ("keystore", "truststore") for of in STORE),
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
    }
)
"""The keys that can be set for one broker while it runs, but for a listener only."""
SINGLE: Final = LIMITS | {"connections.max.reauth.ms"}
"""The others."""
UPDATES: Final = ((LIMITS, Update.CLUSTER_WIDE), (STORES, Update.PER_BROKER))
MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi")
OF_MECHANISM: Final = frozenset(
    {
        "connections.max.reauth.ms",
        "sasl.jaas.config",
        "sasl.server.callback.handler.class",
        *(name for name in BROKER_CONFIGS if name.startswith("sasl.oauthbearer.")),
    }
)
"""Keys that each SASL mechanism of a listener may have a value of its own for."""


class ListenerKey(NamedTuple):
    """A key of a listener.

    listener: in upper case. name: of the broker's key. key: that one, with the update mode that it
    has for one listener. mechanism: the SASL mechanism that alone has the value, in upper case; ""
    for none.
    """

    listener: str
    name: str
    key: ConfigKey
    mechanism: str = ""


def prefixed(listener: str, name: str, mechanism: str = "") -> str:
    """Return the key that has the value of a broker's key for a listener.

    mechanism: that the value is for; "" for all.
    """
    of_mechanism = f"{mechanism.lower()}." if mechanism else ""
    return f"{PREFIX}{listener.lower()}.{of_mechanism}{name}"


def listener_key(text: str) -> ListenerKey | None:
    """Parse a key of a listener; None for one that is not."""
    match = PATTERN.fullmatch(text)
    if match is None:
        return None
    mechanism, _, name = match["name"].partition(".")
    if mechanism not in MECHANISMS or name not in OF_MECHANISM:
        mechanism, name = "", match["name"]
    key = BROKER_CONFIGS.get(name)
    if key is None or not (name in SINGLE or name.startswith(GROUPS)):
        return None
    update = next((mode for names, mode in UPDATES if name in names), Update.READ_ONLY)
    key = key._replace(update=update)
    return ListenerKey(match["listener"].upper(), name, key, mechanism.upper())
