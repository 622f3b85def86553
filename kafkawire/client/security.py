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
ENDPOINT_KEYS: Final = (CLIENT_ID, CLIENT_SECRET, SCOPE)
"""What a token endpoint gets; a file needs none of it."""
SASL_KEYS: Final = (*PASSWORD_KEYS, *TOKEN_KEYS, *ENDPOINT_KEYS)


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where tokens are, or who issues them for client credentials (RFC 6749, section 4.4).

    client_id, client_secret, scope: "" for a file; scope also for none.
    """

    endpoint: Endpoint
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""


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
        return (CLIENT_ID, CLIENT_SECRET)
    for name in ENDPOINT_KEYS:
        if values[name] is not None:
            raise ConfigurationError(name, f"requires {ENDPOINT} with https://")
    return ()


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
        client_id, secret, scope = (str(values[name] or "") for name in ENDPOINT_KEYS)
        return TokenEndpoint(endpoint, client_id, secret, scope)
    if isinstance(token, OAuthBearerToken):
        return lambda: token
    assert provider is None or callable(provider)
    return provider
