"""Validates tokens that are signed with a key of a JSON Web Key Set (RFC 7515, RFC 7517).

joserfc, of the extra `oauth`, checks signatures. Only algorithms with a public key are accepted:
who knows the set cannot sign, and no key is ever taken for the secret of an HMAC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ...errors import RemoteProtocolError
from ...extras import requires
from .jwt import LONGEST_TOKEN, Claims, TokenRejected, ValidToken, milliseconds, parse

if TYPE_CHECKING:
    from joserfc.jwk import Key

KEY_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""Algorithm -> the type of its keys."""


class KeySource(Protocol):
    """The keys of a set, which may change."""

    def current(self) -> Sequence[Key]:
        """Return the keys. Raises ValueError where there are none."""

    def missing(self, key_id: str) -> None:
        """Handle a token whose key is not in the set."""


class Expectations(NamedTuple):
    """What the claims of a token must be.

    audience: one of these, or any if empty. issuer: "" for any. clock_skew_ms: by how much the
    clocks of others may differ. scope_claim, principal_claim: names of claims.
    """

    audience: tuple[str, ...] = ()
    issuer: str = ""
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    clock_skew_ms: int = 30_000

    def check(self, jwt: Claims, now_ms: int) -> ValidToken:
        """Check the claims of a token whose signature is valid. Raises TokenRejected."""
        expires = jwt.seconds("exp", required=True)
        issued = jwt.seconds("iat", required=True)
        begins = jwt.seconds("nbf", required=False)
        assert expires is not None
        assert issued is not None
        if now_ms - self.clock_skew_ms >= int(expires) * 1000:
            raise TokenRejected("expired")
        if begins is not None and int(begins) * 1000 > now_ms + self.clock_skew_ms:
            raise TokenRejected("not valid yet")
        if int(expires) < int(issued) or (begins is not None and int(expires) < int(begins)):
            raise TokenRejected("expires before it is issued, or valid")
        if self.issuer and jwt.claims.get("iss") != self.issuer:
            raise TokenRejected("another issuer")
        if self.audience and not _texts(jwt.claims.get("aud"), "aud") & {*self.audience}:
            raise TokenRejected("another audience")
        scope = _texts(jwt.claims.get(self.scope_claim), "of the scope")
        if any(not item.strip() for item in scope):
            raise TokenRejected("a blank item in the scope")
        principal = jwt.principal(self.principal_claim).strip()
        return ValidToken(principal, milliseconds(int(expires)))


def _texts(value: Any, name: str) -> set[str]:
    """Return the items of a claim that is a text or a list of different texts."""
    items = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise TokenRejected(f"the claim {name} is neither a text nor a list of texts")
    if len(set(items)) != len(items):
        raise TokenRejected(f"the claim {name} has a text twice")
    return set(items)


def public_keys(content: bytes) -> Sequence[Key]:
    """Return the public keys of a set, in JSON.

    Raises ValueError for what is not a set with at least one; MissingPackage.
    """
    with requires("joserfc", "oauth"):
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

    try:
        keys = json.loads(content)["keys"]
        public = [key for key in keys if key["kty"] in KEY_TYPES.values()]
        return KeySet.import_key_set({"keys": public}).keys
    except (JoseError, KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("not a JSON Web Key Set with public keys") from None


class SignedTokens:
    """Validates signed tokens.

    keys: those that tokens may be signed with. Raises MissingPackage.
    """

    def __init__(self, keys: KeySource, expectations: Expectations) -> None:
        with requires("joserfc", "oauth"):
            from joserfc.jws import JWSRegistry

        registry = JWSRegistry(algorithms=[*KEY_TYPES], strict_check_header=False)
        registry.max_header_length = registry.max_payload_length = LONGEST_TOKEN
        registry.max_signature_length = LONGEST_TOKEN
        self._registry = registry
        self._expectations = expectations
        self._keys = keys

    def __call__(self, token: str, now_ms: int) -> ValidToken:
        """Return what a token says. now_ms: milliseconds since 1970. Raises TokenRejected."""
        from joserfc.errors import JoseError
        from joserfc.jws import deserialize_compact

        jwt = parse(token)
        key = self._key(jwt.header)
        try:
            deserialize_compact(token, key, registry=self._registry)
        except (JoseError, TypeError, ValueError):
            raise TokenRejected("invalid signature or header") from None
        return self._expectations.check(jwt, now_ms)

    def _key(self, header: Mapping[str, Any]) -> Key:
        """Return the key that a token is signed with: the first that its header allows."""
        algorithm, key_id = header.get("alg"), header.get("kid")
        expected = KEY_TYPES.get(algorithm) if isinstance(algorithm, str) else None
        if expected is None:
            raise TokenRejected("algorithm without a public key")
        try:
            keys = self._keys.current()
        except ValueError as error:
            raise RemoteProtocolError(f"OAUTHBEARER: key set: {error}") from None
        for key in keys:
            is_named = key_id is None or key.get("kid") == key_id
            for_signatures = key.get("use") in (None, "sig")
            for_algorithm = key.get("alg") in (None, algorithm)
            if key.key_type == expected and is_named and for_signatures and for_algorithm:
                return key
        if isinstance(key_id, str):
            self._keys.missing(key_id)
        raise TokenRejected("no such key")
