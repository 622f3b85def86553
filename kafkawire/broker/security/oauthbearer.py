r"""SASL OAUTHBEARER on the server's side (RFC 7628, KIP-255), and who validates the tokens.

initial response ─▶ valid: empty, authenticated
└▶ not valid: JSON with the status ─▶ \x01 ─▶ failed
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...display import cut, printable
from ...errors import RemoteProtocolError
from ...sasl.endpoints import Endpoint, HttpEndpoint, endpoint
from ...sasl.oauthbearer import ACKNOWLEDGEMENT, parse_initial_response
from .jwt import TokenRejected, TokenValidator, ValidToken
from .unsecured_tokens import unsecured_tokens

if TYPE_CHECKING:
    from .signed_tokens import KeySource

HANDLER: Final = "sasl.server.callback.handler.class"
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
CLOCK_SKEW_S: Final = "sasl.oauthbearer.clock.skew.seconds"
SCOPE_CLAIM: Final = "sasl.oauthbearer.scope.claim.name"
PRINCIPAL_CLAIM: Final = "sasl.oauthbearer.sub.claim.name"
ANY_AUDIENCE: Final = "sasl.oauthbearer.allow.unverified.audience"
ANY_ISSUER: Final = "sasl.oauthbearer.allow.unverified.issuer"
PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
SIGNED: Final = f"{PACKAGE}OAuthBearerValidatorCallbackHandler"
UNSECURED: Final = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
LONGEST_NAME: Final = 200
"""Columns of a name of a client in an error."""


@dataclass(slots=True)
class OAuthBearer:
    """One authentication. rejected: of the token before, "" for none."""

    validate: TokenValidator
    rejected: str = ""

    def step(self, data: bytes, now_ms: int) -> tuple[bytes, ValidToken | None]:
        """Process a client message: (server message, the token once it is valid).

        now_ms: milliseconds since 1970. Raises RemoteProtocolError, without a part of the token.
        """
        if data == ACKNOWLEDGEMENT and self.rejected:
            raise RemoteProtocolError(self.rejected)
        first = parse_initial_response(data)
        try:
            token = self.validate(first.token, now_ms)
        except TokenRejected as error:
            self.rejected = _error(error)
            return self.rejected.encode(), None
        if first.authzid not in ("", token.principal):
            raise RemoteProtocolError(
                "Authentication failed: Client requested an authorization id "
                f"({shown(first.authzid)}) that is different from the token's principal name "
                f"({shown(token.principal)})"
            )
        return b"", token


def _error(error: TokenRejected) -> str:
    """Return the JSON of a rejection (RFC 7628, section 3.2.2), with Kafka's white space."""
    scope = f', "scope":{json.dumps(error.scope)}' if error.scope else ""
    return f'{{"status":{json.dumps(error.status)}{scope}}}'


def shown(name: str) -> str:
    """Return a name of a client as it may be in an error."""
    return cut(printable(name), LONGEST_NAME)


def key_endpoint(value: Callable[[str], str]) -> Endpoint | None:
    """Return where the keys of signed tokens are; None if tokens have no signature.

    value: returns that of a key, "" if unset. Raises ValueError, which names the key.
    """
    handler, url = value(HANDLER), value(JWKS_URL)
    if handler not in ("", SIGNED, UNSECURED):
        raise ValueError(f"{HANDLER}: expected {SIGNED} or {UNSECURED}")
    if handler == SIGNED and not url:
        raise ValueError(f"{JWKS_URL}: required with {HANDLER}={SIGNED}")
    if not url or handler == UNSECURED:
        return None
    try:
        return endpoint(url)
    except ValueError as error:
        raise ValueError(f"{JWKS_URL}: {error}") from None


def token_validator(
    value: Callable[[str], str], options: Mapping[str, str], keys: KeySource | None
) -> TokenValidator:
    """Return the validator that keys of a configuration describe.

    value: as above. options: of the login module. keys: those of a server, None if they were not
    fetched. Tokens are signed where there is a set of keys. Raises ValueError, which names the key;
    MissingPackage.
    """
    source = key_endpoint(value)
    if source is None:
        return unsecured_tokens(options)

    from .key_sets import KeyFile, UnknownKeys  # joserfc with signed tokens only
    from .signed_tokens import Expectations, SignedTokens

    audience = tuple(item.strip() for item in value(AUDIENCE).split(",") if item.strip())
    issuer = value(ISSUER)
    for key, has_value, unverified in (
        (AUDIENCE, bool(audience), ANY_AUDIENCE),
        (ISSUER, bool(issuer), ANY_ISSUER),
    ):
        if not has_value and value(unverified) != "true":
            raise ValueError(f"{key}: required with {JWKS_URL}, unless {unverified}=true")
    expectations = Expectations(
        audience,
        issuer,
        value(SCOPE_CLAIM),
        value(PRINCIPAL_CLAIM),
        int(value(CLOCK_SKEW_S)) * 1000,
    )
    if isinstance(source, HttpEndpoint):
        return SignedTokens(keys or UnknownKeys(), expectations)
    file = KeyFile(source.path)
    try:
        file.current()
    except ValueError as error:
        raise ValueError(f"{JWKS_URL}: {source.path}: {error}") from None
    return SignedTokens(file, expectations)
