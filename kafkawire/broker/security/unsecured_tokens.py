"""Validates tokens without a signature, as Kafka does by default with OAUTHBEARER (KIP-255).

Anyone may write such a token: they are for tests alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .jwt import INSUFFICIENT_SCOPE, TokenRejected, ValidToken, milliseconds, parse

PREFIX: Final = "unsecuredValidator"
"""How the options of the login module begin."""
PRINCIPAL_CLAIM: Final = f"{PREFIX}PrincipalClaimName"
SCOPE_CLAIM: Final = f"{PREFIX}ScopeClaimName"
REQUIRED_SCOPE: Final = f"{PREFIX}RequiredScope"
CLOCK_SKEW_MS: Final = f"{PREFIX}AllowableClockSkewMs"


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """Validates tokens whose algorithm is `none`.

    required_scope: every item of it. clock_skew_ms: by how much the clocks of others may differ.
    """

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    def __call__(self, token: str, now_ms: int) -> ValidToken:
        """Return what a token says. now_ms: milliseconds since 1970. Raises TokenRejected."""
        jwt = parse(token)
        header, claims, is_signed = jwt
        if header.get("alg") != "none":
            raise TokenRejected("algorithm other than none")
        if is_signed:
            raise TokenRejected("a signature with algorithm none")
        scope = _scope(claims.get(self.scope_claim))
        expires = jwt.seconds("exp", required=True)
        issued = jwt.seconds("iat", required=False)
        assert expires is not None
        principal = jwt.principal(self.principal_claim)
        if issued is not None and issued * 1000 > now_ms + self.clock_skew_ms:
            raise TokenRejected("issued in the future")
        if now_ms - self.clock_skew_ms >= expires * 1000:
            raise TokenRejected("expired")
        if issued is not None and expires <= issued:
            raise TokenRejected("expires before it is issued")
        if not scope.issuperset(self.required_scope):
            listed = f"[{', '.join(self.required_scope)}]"
            raise TokenRejected("required scope missing", INSUFFICIENT_SCOPE, listed)
        return ValidToken(principal, milliseconds(expires))


def unsecured_tokens(options: Mapping[str, str]) -> UnsecuredTokens:
    """Read the options of the login module. Raises ValueError, which names the option."""
    texts = {name: text.strip() for name, text in options.items() if text.strip()}
    default = UnsecuredTokens()
    skew = texts.get(CLOCK_SKEW_MS, "0")
    if not (skew.isascii() and skew.isdecimal() and int(skew[:12]) < 2**31):
        raise ValueError(f"{CLOCK_SKEW_MS}: expected milliseconds")
    required = tuple(texts.get(REQUIRED_SCOPE, "").split())
    if any(not item.isascii() or '"' in item or "\\" in item for item in required):
        raise ValueError(f"{REQUIRED_SCOPE}: expected items of RFC 6749, with blanks between them")
    return UnsecuredTokens(
        texts.get(PRINCIPAL_CLAIM, default.principal_claim),
        texts.get(SCOPE_CLAIM, default.scope_claim),
        required,
        int(skew),
    )


def _scope(value: Any) -> frozenset[str]:
    """Return the items of a scope: one text is one item, as in Kafka."""
    items = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(items, list):
        raise TokenRejected("the claim of the scope is neither a text nor a list")
    return frozenset(item.strip() for item in items if isinstance(item, str) and item.strip())
