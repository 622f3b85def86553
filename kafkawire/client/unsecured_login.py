"""Makes tokens of OAUTHBEARER without a signature, of the options of Java's login module (KIP-255).

    unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60"

Anyone may write such a token: they are for tests alone.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .network.oauthbearer import OAuthBearerToken

PREFIX: Final = "unsecuredLogin"
"""How the options of the login module begin."""
LIFETIME_S: Final = f"{PREFIX}LifetimeSeconds"
PRINCIPAL_CLAIM: Final = f"{PREFIX}PrincipalClaimName"
EXTENSION: Final = f"{PREFIX}Extension_"
DEFAULT_LIFETIME_S: Final = 3600.0
OF_THE_TOKEN: Final = frozenset({"iat", "exp"})
"""Claims that no option sets."""


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _items(text: str) -> list[str]:
    """Split a list, whose first character is its separator."""
    return text[1:].split(text[:1]) if text[1:] else []


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    f"{PREFIX}StringClaim_": str,
    f"{PREFIX}NumberClaim_": _number,
    f"{PREFIX}ListClaim_": _items,
}
"""Prefix of an option for a claim -> what reads its value."""


class UnsecuredLogin(NamedTuple):
    """What the options say. claims: besides the times. extensions: of SASL."""

    claims: Mapping[str, Any]
    lifetime_s: float
    extensions: Mapping[str, str]

    def token(self, now: float) -> OAuthBearerToken:
        """Make a token. now: seconds since 1970."""
        issued = math.floor(now * 1000) / 1000  # whole milliseconds, as the clocks of brokers
        expires = issued + self.lifetime_s
        claims = {**self.claims, "iat": issued, "exp": expires}
        parts = (_part({"alg": "none"}), _part(claims), "")
        return OAuthBearerToken(".".join(parts), expires, self.extensions)


def unsecured_login(options: Mapping[str, str]) -> UnsecuredLogin:
    """Read the options of the login module. Raises ValueError, which names the option."""
    claims: dict[str, Any] = {}
    extensions: dict[str, str] = {}
    for option, text in options.items():
        prefix = next((each for each in READERS if option.startswith(each)), None)
        if prefix is not None:
            name = option.removeprefix(prefix)
            if not name or name in claims or name in OF_THE_TOKEN:
                raise ValueError(f"{option}: a claim twice, or without a name")
            claims[name] = _value(READERS[prefix], option, text)
        elif option.startswith(EXTENSION):
            extensions[option.removeprefix(EXTENSION)] = text
    principal = options.get(PRINCIPAL_CLAIM, "sub")
    if not isinstance(claims.get(principal), str) or not claims[principal].strip():
        raise ValueError(f"expected {PREFIX}StringClaim_{principal}")
    lifetime_s = _value(_number, LIFETIME_S, options.get(LIFETIME_S, str(DEFAULT_LIFETIME_S)))
    if lifetime_s <= 0:
        raise ValueError(f"{LIFETIME_S}: expected more than 0")
    return UnsecuredLogin(claims, lifetime_s, extensions)


def _value(read: Callable[[str], Any], option: str, text: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{option}: expected a number") from None


def _part(value: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
