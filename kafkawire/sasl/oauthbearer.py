r"""The messages of SASL OAUTHBEARER (RFC 7628, KIP-255), and what may be in them.

client  n,a=AUTHZID,\x01auth=Bearer TOKEN\x01NAME=VALUE\x01\x01
server  empty, or JSON with the reason ─▶ client  \x01
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ..errors import RemoteProtocolError

OAUTHBEARER: Final = "OAUTHBEARER"
B64TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750, section 2.1."""
EXTENSION_NAME: Final = re.compile("[A-Za-z]+")
EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]*")
RESERVED: Final = "auth"
"""The name of the token itself among the pairs (RFC 7628, section 3.1)."""
SCHEME: Final = "Bearer"
SEPARATOR: Final = "\x01"
ACKNOWLEDGEMENT: Final = SEPARATOR.encode()
"""What the client sends once it has the reason of a rejection (RFC 7628, section 3.2.3)."""
GS2_HEADER: Final = re.compile(r"n,(?:a=(?P<authzid>(?:[^=,\x00\x80-\U0010ffff]|=2C|=3D)+))?,")
"""Of RFC 5801, without channel binding."""
INVALID: Final = "invalid OAUTHBEARER client first message"


class InitialResponse(NamedTuple):
    """The first message of a client.

    authzid: the authorization id, "" for none. extensions: by name (KIP-342). Neither the token
    nor an extension is in its repr.
    """

    token: str
    authzid: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"InitialResponse(authzid={self.authzid!r}, extensions={sorted(self.extensions)})"


def initial_response(token: str, extensions: Mapping[str, str]) -> bytes:
    """Return the first message of a client."""
    pairs = {RESERVED: f"{SCHEME} {token}", **extensions}
    joined = "".join(f"{name}={value}{SEPARATOR}" for name, value in pairs.items())
    return f"n,,{SEPARATOR}{joined}{SEPARATOR}".encode()


def parse_initial_response(data: bytes) -> InitialResponse:
    """Parse the first message of a client. Raises RemoteProtocolError, which has no part of it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError(f"{INVALID}: not valid UTF-8") from None
    header = GS2_HEADER.match(text)
    if header is None:
        raise RemoteProtocolError(f"{INVALID}: expected a GS2 header without channel binding")
    body = text[header.end() :]
    if not (body.startswith(SEPARATOR) and body.endswith(SEPARATOR) and len(body) > 1):
        raise RemoteProtocolError(f"{INVALID}: expected pairs between separators")
    pairs = _pairs(body[1:-1])
    scheme, _, token = pairs.pop(RESERVED, "").partition(" ")
    token = token.lstrip(" ")
    if scheme.lower() != SCHEME.lower() or not B64TOKEN.fullmatch(token):
        raise RemoteProtocolError(f"{INVALID}: expected {RESERVED}={SCHEME} and a token")
    authzid = (header["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return InitialResponse(token, authzid, pairs)


def _pairs(text: str) -> dict[str, str]:
    """Parse pairs, each with a separator after it."""
    pairs: dict[str, str] = {}
    *lines, rest = text.split(SEPARATOR)
    for line in lines:
        name, equals, value = line.partition("=")
        is_pair = equals and EXTENSION_NAME.fullmatch(name) and EXTENSION_VALUE.fullmatch(value)
        if not is_pair or not value:
            raise RemoteProtocolError(f"{INVALID}: expected NAME=VALUE in printable ASCII")
        if name in pairs:
            raise RemoteProtocolError(f"{INVALID}: a name twice")
        pairs[name] = value
    if rest:
        raise RemoteProtocolError(f"{INVALID}: no separator at the end")
    return pairs
