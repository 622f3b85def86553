"""The logins with which a node connects to others: to brokers, and to controllers.

Each is of the listener that the node connects to: its security protocol, the mechanism that is
configured for it, and `username` and `password` of that mechanism's `sasl.jaas.config`. With
OAUTHBEARER, that or other keys say where tokens come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..broker.security.jaas import JAAS, module_of
from ..broker.security.listener_tokens import values_of
from ..broker.security.protocols import SecurityProtocol
from ..client.network.oauthbearer import FromTokenProvider
from ..client.network.sasl import MECHANISMS, Credentials
from ..client.security import (
    CLIENT_ID,
    CLIENT_SECRET,
    ENDPOINT,
    SCOPE,
    TIME_KEYS,
    TokenEndpoint,
    login_times,
)
from ..client.unsecured_login import UnsecuredLogin, unsecured_login
from ..configs import prefixed
from ..sasl.endpoints import FileEndpoint, endpoint
from ..sasl.oauthbearer import OAUTHBEARER

BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
DEFAULT_MECHANISM: Final = "GSSAPI"
CREDENTIALS: Final = {CLIENT_ID: "clientId", CLIENT_SECRET: "clientSecret", SCOPE: "scope"}
"""Key -> the option of the login module that may take its place."""


class Login(NamedTuple):
    """How a node connects to a listener of others.

    credentials: None without SASL. tokens: what they come from; None without OAUTHBEARER.
    """

    listener: str = ""
    credentials: Credentials | FromTokenProvider | None = None
    tokens: TokenEndpoint | UnsecuredLogin | None = None


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
    if mechanism not in MECHANISMS:
        expected = ", ".join(MECHANISMS)
        raise ValueError(f"{mechanism_key}: {mechanism} is not supported: expected {expected}")
    module = module_of(static, listener, mechanism)
    options = {} if module is None else module.options
    if mechanism == OAUTHBEARER:
        return Login(listener, FromTokenProvider(), _tokens(static, listener, options))
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        key = prefixed(listener, JAAS, mechanism)
        raise ValueError(f"{key}: expected username and password, to connect to other nodes")
    return Login(listener, Credentials(mechanism, user, password))


def _tokens(
    static: Mapping[str, str], listener: str, options: Mapping[str, str]
) -> TokenEndpoint | UnsecuredLogin:
    """Return where tokens come from: a file, a server, or options for tokens without signature."""
    value = values_of(static, listener)
    url = value(ENDPOINT)
    source = ENDPOINT if url else prefixed(listener, JAAS, OAUTHBEARER)
    try:
        if not url:
            return unsecured_login(options)
        where = endpoint(url)
        if isinstance(where, FileEndpoint):
            return TokenEndpoint(where)
        credentials = (value(key) or options.get(name, "") for key, name in CREDENTIALS.items())
        client_id, secret, scope = credentials
        if not client_id or not secret:
            raise ValueError(f"requires {CLIENT_ID} and {CLIENT_SECRET}")
        times = login_times({key: int(value(key)) for key in TIME_KEYS if value(key)})
        return TokenEndpoint(where, client_id, secret, scope, times)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
