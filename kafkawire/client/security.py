"""Reads what secures a client's connections from checked configuration.

A key that the protocol or the SASL mechanism does not use is an error, not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..sasl.oauthbearer import OAUTHBEARER
from .failures import ConfigurationError
from .network.oauthbearer import FromTokenProvider, OAuthBearerToken, TokenProvider
from .network.sasl import WITH_PASSWORD, Credentials

__all__ = ["OAuthBearerToken", "TokenProvider", "credentials", "secure", "token_provider"]

PASSWORD_KEYS: Final = ("sasl.username", "sasl.password")
TOKEN_KEYS: Final = ("sasl.oauth.token.provider",)
KEYS_OF_MECHANISM: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(WITH_PASSWORD, PASSWORD_KEYS),
    OAUTHBEARER: TOKEN_KEYS,
}
"""The keys that a SASL mechanism requires; those of others are errors."""


def secure(values: Mapping[str, object]) -> bool:
    """Return whether connections use TLS."""
    return str(values["security.protocol"]).endswith("SSL")


def credentials(values: Mapping[str, object]) -> Credentials | FromTokenProvider | None:
    """Return the SASL credentials; None for a protocol without SASL."""
    keys = (*PASSWORD_KEYS, *TOKEN_KEYS)
    if not str(values["security.protocol"]).startswith("SASL"):
        for name in ("sasl.mechanism", *keys):
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
    required = KEYS_OF_MECHANISM[str(mechanism)]
    for name in keys:
        if name in required and values[name] is None:
            raise ConfigurationError(name, f"required with sasl.mechanism {mechanism}")
        if name not in required and values[name] is not None:
            raise ConfigurationError(name, f"not used with sasl.mechanism {mechanism}")
    if mechanism == OAUTHBEARER:
        return FromTokenProvider()
    return Credentials(str(mechanism), str(values["sasl.username"]), str(values["sasl.password"]))


def token_provider(values: Mapping[str, object]) -> TokenProvider | None:
    """Return the token provider; None for other mechanisms than OAUTHBEARER."""
    provider = values["sasl.oauth.token.provider"]
    assert provider is None or callable(provider)
    return provider
