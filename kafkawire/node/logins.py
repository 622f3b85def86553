"""The logins with which a node connects to others: to brokers, and to controllers.

Each is of the listener that the node connects to: its security protocol, the mechanism that is
configured for it, and `username` and `password` of that mechanism's `sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..broker.security.jaas import JAAS, module_of
from ..broker.security.protocols import SecurityProtocol
from ..client.network.sasl import WITH_PASSWORD, Credentials
from ..configs import prefixed

BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
DEFAULT_MECHANISM: Final = "GSSAPI"


class Login(NamedTuple):
    """How a node connects to a listener of others. credentials: None without SASL."""

    listener: str = ""
    credentials: Credentials | None = None


NO_LOGIN: Final = Login()


def login(
    static: Mapping[str, str], listener: str, protocol: SecurityProtocol, mechanism_key: str
) -> Login:
    """Return how to connect to a listener. Raises ValueError, which names the key.

    mechanism_key: that has the mechanism.
    """
    if not protocol.has_sasl:
        return Login(listener)
    mechanism = static.get(mechanism_key) or DEFAULT_MECHANISM
    if mechanism not in WITH_PASSWORD:
        expected = ", ".join(WITH_PASSWORD)
        raise ValueError(f"{mechanism_key}: {mechanism} is not supported: expected {expected}")
    module = module_of(static, listener, mechanism)
    options = {} if module is None else module.options
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        key = prefixed(listener, JAAS, mechanism)
        raise ValueError(f"{key}: expected username and password, to connect to other nodes")
    return Login(listener, Credentials(mechanism, user, password))
