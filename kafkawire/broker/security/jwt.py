"""Reads a JSON Web Token in compact form (RFC 7519), whose sender is not known yet.

Time and memory are in proportion to its length. No part of a token is in an error.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

BASE64_URL: Final = re.compile("[A-Za-z0-9_-]*={0,2}")
INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
LONGEST_TOKEN: Final = 64 * 1024
"""Characters of a token; more are refused unread."""
LAST_MS: Final = 2**63 - 1
"""The end of time in fields of the protocol."""


class TokenRejected(Exception):
    """A token that is not valid.

    status, scope: of the error in RFC 7628 (section 3.2.2); scope "" for none. The text of the
    exception is for the operator.
    """

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class ValidToken(NamedTuple):
    """What a valid token says. expires_ms: milliseconds since 1970."""

    principal: str
    expires_ms: int


TokenValidator = Callable[[str, int], ValidToken]
"""(token, milliseconds since 1970) -> what it says. Raises TokenRejected."""


class Claims(NamedTuple):
    """The header of a token, its claims, and whether it has a signature."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    is_signed: bool

    def seconds(self, name: str, *, required: bool) -> float | None:
        """Return a claim that is a time in seconds since 1970; None if there is none."""
        value = self.claims.get(name)
        if value is None:
            if required:
                raise TokenRejected(f"no claim {name!r}")
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenRejected(f"claim {name!r} is not a number")
        try:
            return float(value)
        except OverflowError:
            raise TokenRejected(f"claim {name!r} is out of range") from None

    def principal(self, name: str) -> str:
        """Return the claim that names the principal, which may not be blank."""
        value = self.claims.get(name)
        if not isinstance(value, str) or not value.strip():
            raise TokenRejected("the claim of the principal is not a text, or blank")
        return value


def parse(token: str) -> Claims:
    """Parse a token, whose signature is not checked. Raises TokenRejected."""
    if len(token) > LONGEST_TOKEN:
        raise TokenRejected(f"more than {LONGEST_TOKEN} characters")
    parts = token.split(".", 3)
    if len(parts) != 3:
        raise TokenRejected("expected three parts")
    header, claims, signature = parts
    return Claims(_object(header, "header"), _object(claims, "claims"), bool(signature))


def milliseconds(seconds: float) -> int:
    """Return a time of a claim in milliseconds, rounded, as far as there are so many."""
    return min(max(math.floor(min(seconds * 1000 + 0.5, 1e19)), 0), LAST_MS)


def _object(part: str, name: str) -> dict[str, Any]:
    """Decode a JSON object."""
    padded = part.rstrip("=")
    is_base64 = BASE64_URL.fullmatch(part) and len(padded) % 4 != 1
    if not is_base64 or (padded != part and len(part) % 4):
        raise TokenRejected(f"{name}: malformed base64url")
    try:
        text = b64decode(padded + "=" * (-len(padded) % 4), altchars=b"-_").decode()
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_not_a_number, parse_float=_finite
        )
    except (ValueError, RecursionError):
        raise TokenRejected(f"{name}: malformed JSON") from None
    if not isinstance(value, dict):
        raise TokenRejected(f"{name}: not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name twice, of which readers take different ones."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name twice")
    return members


def _not_a_number(_text: str) -> NoReturn:
    raise ValueError("not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("out of range")
    return number
