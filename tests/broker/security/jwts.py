"""Makes tokens of OAUTHBEARER, valid and not, for tests: without a signature, and with one."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any, Final

from joserfc import jws
from joserfc.jwk import ECKey, KeySet, RSAKey

ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "kafka"


def part(value: object) -> str:
    """Encode a part of a token: text and bytes as they are, other values as JSON."""
    data = value if isinstance(value, bytes) else None
    if data is None:
        data = (value if isinstance(value, str) else json.dumps(value)).encode()
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def unsecured(claims: object, header: object = {"alg": "none"}, signature: str = "") -> str:
    """Make a token without a valid signature."""
    return f"{part(header)}.{part(claims)}.{signature}"


class Issuer:
    """Signs tokens with the keys of a set: `rsa` and `ec`, whose ids are those by default."""

    def __init__(self, rsa: str = "rsa", ec: str = "ec") -> None:
        self.rsa = RSAKey.generate_key(2048, {"kid": rsa, "use": "sig"})
        self.ec = ECKey.generate_key("P-256", {"kid": ec, "use": "sig"})
        self.other = RSAKey.generate_key(2048, {"kid": "other"})
        """Is not in the set."""

    def jwks(self) -> str:
        """Return the set, of public keys, as JSON."""
        return json.dumps(KeySet([self.rsa, self.ec]).as_dict())

    def sign(self, claims: object, algorithm: str = "RS256", **header: Any) -> str:
        """Sign claims. header: more parameters of it."""
        keys: dict[str, Any] = {"R": self.rsa, "P": self.rsa, "E": self.ec}
        key = header.pop("key", None) or keys[algorithm[0]]
        protected = {"alg": algorithm, "kid": key.kid, **header}
        named = {name: value for name, value in protected.items() if value is not None}
        payload = claims if isinstance(claims, str | bytes) else json.dumps(claims)
        registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        return jws.serialize_compact(named, payload, key, registry=registry)


def claims(now: float, **more: Any) -> dict[str, Any]:
    """Return the claims of a valid token; None removes one. now: seconds since 1970."""
    values = {
        "sub": "alice",
        "iat": int(now) - 60,
        "exp": int(now) + 3600,
        "iss": ISSUER,
        "aud": AUDIENCE,
        **more,
    }
    return {name: value for name, value in values.items() if value is not None}
