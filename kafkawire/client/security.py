"""Reads what secures a client's connections from checked configuration.

A key that the protocol or the SASL mechanism does not use is an error, not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..sasl.endpoints import Endpoint, HttpEndpoint
from ..sasl.oauthbearer import OAUTHBEARER
from .failures import ConfigurationError
from .network.oauthbearer import FromTokenProvider, OAuthBearerToken, TokenProvider
from .network.sasl import Credentials

__all__ = ["OAuthBearerToken", "TokenProvider", "credentials", "secure", "token_source"]

PASSWORD_KEYS: Final = ("sasl.username", "sasl.password")
PROVIDER: Final = "sasl.oauth.token.provider"
TOKEN: Final = "sasl.oauth.token"
ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
TOKEN_KEYS: Final = (PROVIDER, TOKEN, ENDPOINT)
"""Where a token comes from: one of these."""
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
BACKOFF: Final = "sasl.login.retry.backoff.ms"
LONGEST_BACKOFF: Final = "sasl.login.retry.backoff.max.ms"
CONNECT_TIMEOUT: Final = "sasl.login.connect.timeout.ms"
READ_TIMEOUT: Final = "sasl.login.read.timeout.ms"
CREDENTIAL_KEYS: Final = (CLIENT_ID, CLIENT_SECRET, SCOPE)
TIME_KEYS: Final = {
    BACKOFF: "backoff_s",
    LONGEST_BACKOFF: "longest_backoff_s",
    CONNECT_TIMEOUT: "connect_s",
    READ_TIMEOUT: "read_s",
}
"""Key in milliseconds -> the field of `LoginTimes`."""
ENDPOINT_KEYS: Final = (*CREDENTIAL_KEYS, *TIME_KEYS)
"""What a token endpoint gets; a file needs none of it."""
SASL_KEYS: Final = (*PASSWORD_KEYS, *TOKEN_KEYS, *ENDPOINT_KEYS)


@dataclass(frozen=True, slots=True)
class LoginTimes:
    """The times of the requests for a token, in seconds.

    backoff_s: from a failure to the next request, twice as long after each. longest_backoff_s: for
    how long requests are sent again. connect_s, read_s: how long a connection and a response may
    take; 0 for what is usual.
    """

    backoff_s: float = 0.1
    longest_backoff_s: float = 10.0
    connect_s: float = 0.0
    read_s: float = 0.0


DEFAULT_TIMES: Final = LoginTimes()


def login_times(milliseconds: Mapping[str, int]) -> LoginTimes:
    """Return the times that are set, else the defaults. Raises ValueError.

    milliseconds: by the keys of `TIME_KEYS`.
    """
    times = LoginTimes(**{TIME_KEYS[key]: value / 1000 for key, value in milliseconds.items()})
    if min(times.backoff_s, times.connect_s, times.read_s) < 0:
        raise ValueError("a time is negative")
    if times.longest_backoff_s < times.backoff_s:
        raise ValueError(f"{LONGEST_BACKOFF} is less than {BACKOFF}")
    return times


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where tokens are, or who issues them for client credentials (RFC 6749, section 4.4).

    client_id, client_secret, scope: "" for a file; scope also for none. times: of requests.
    """

    endpoint: Endpoint
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    times: LoginTimes = DEFAULT_TIMES


TokenSource = TokenProvider | TokenEndpoint


def secure(values: Mapping[str, object]) -> bool:
    """Return whether connections use TLS."""
    return str(values["security.protocol"]).endswith("SSL")


def credentials(values: Mapping[str, object]) -> Credentials | FromTokenProvider | None:
    """Return the SASL credentials; None for a protocol without SASL."""
    if not str(values["security.protocol"]).startswith("SASL"):
        for name in ("sasl.mechanism", *SASL_KEYS):
            if values[name] is not None:
                raise ConfigurationError(
                    name, "requires security.protocol SASL_PLAINTEXT or SASL_SSL"
                )
        return None
    mechanism = values["sasl.mechanism"]
    if mechanism is None:
        raise ConfigurationError(
            "sasl.mechanism", "required with security.protocol SASL_PLAINTEXT or SASL_SSL"
        )
    if mechanism == OAUTHBEARER:
        _check(values, mechanism, (*TOKEN_KEYS, *ENDPOINT_KEYS), _required_for_tokens(values))
        return FromTokenProvider()
    _check(values, mechanism, PASSWORD_KEYS, PASSWORD_KEYS)
    return Credentials(str(mechanism), str(values["sasl.username"]), str(values["sasl.password"]))


def _required_for_tokens(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the keys that OAUTHBEARER requires, where there is one source of tokens."""
    sources = [name for name in TOKEN_KEYS if values[name] is not None]
    if not sources:
        others = " or ".join(TOKEN_KEYS[1:])
        raise ConfigurationError(
            PROVIDER, f"required with sasl.mechanism {OAUTHBEARER}, or {others}"
        )
    if len(sources) > 1:
        raise ConfigurationError(sources[1], f"not allowed together with {sources[0]}")
    if isinstance(values[ENDPOINT], HttpEndpoint):
        _times(values)
        return (CLIENT_ID, CLIENT_SECRET)
    for name in ENDPOINT_KEYS:
        if values[name] is not None:
            raise ConfigurationError(name, f"requires {ENDPOINT} with https://")
    return ()


def _times(values: Mapping[str, object]) -> LoginTimes:
    set_values = {name: values[name] for name in TIME_KEYS}
    try:
        return login_times({key: ms for key, ms in set_values.items() if isinstance(ms, int)})
    except ValueError as error:
        raise ConfigurationError(BACKOFF, str(error)) from None


def _check(
    values: Mapping[str, object],
    mechanism: object,
    used: tuple[str, ...],
    required: tuple[str, ...],
) -> None:
    """Raise ConfigurationError for a key that is missing, or that a mechanism does not use."""
    for name in SASL_KEYS:
        if name in required and values[name] is None:
            raise ConfigurationError(name, f"required with sasl.mechanism {mechanism}")
        if name not in used and values[name] is not None:
            raise ConfigurationError(name, f"not used with sasl.mechanism {mechanism}")


def token_source(values: Mapping[str, object]) -> TokenSource | None:
    """Return where tokens come from; None for other mechanisms than OAUTHBEARER."""
    provider, token, endpoint = (values[name] for name in TOKEN_KEYS)
    if isinstance(endpoint, Endpoint):
        client_id, secret, scope = (str(values[name] or "") for name in CREDENTIAL_KEYS)
        return TokenEndpoint(endpoint, client_id, secret, scope, _times(values))
    if isinstance(token, OAuthBearerToken):
        return lambda: token
    assert provider is None or callable(provider)
    return provider
