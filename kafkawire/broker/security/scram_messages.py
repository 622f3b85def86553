"""Parses the first and the final message of a SCRAM client (RFC 5802 section 7).

Attributes are in the order of the grammar, each once; anything else is an error.

    first  gs2-cbind-flag "," ["a=" saslname] "," "n=" saslname ",r=" nonce *("," extension)
    final  "c=" base64(gs2-header) ",r=" nonce *("," extension) ",p=" base64
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from typing import Final, NamedTuple

from ...errors import RemoteProtocolError

NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
EXTENSIONS: Final = r"(?:,[A-Za-z]=[^\x00,]+)*"
OF_KAFKA: Final = r"(?:,(?:[A-Za-z]=[^\x00,]+|tokenauth=(?:true|false)))*"
TOKEN: Final = "tokenauth=true"
FIRST: Final = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<authzid>{NAME}))?,)"
    rf"(?P<bare>n=(?P<user>{NAME}),r=(?P<nonce>{NONCE})(?P<extensions>{OF_KAFKA}))"
)
FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>[^,]+),r=(?P<nonce>{NONCE}){EXTENSIONS}),p=(?P<proof>[^,]+)"
)


class ClientFirst(NamedTuple):
    """header: the GS2 header with its commas; bare: the rest; authzid: "" for none.

    token: whether the user is the id of a delegation token, by an extension of Kafka.
    """

    header: bytes
    bare: bytes
    user: str
    nonce: str
    authzid: str
    token: bool


class ClientFinal(NamedTuple):
    """binding: the channel binding data; bare: the message without its proof."""

    bare: bytes
    binding: bytes
    nonce: str
    proof: bytes


def client_first(data: bytes) -> ClientFirst:
    """Parse the client-first-message. Raises RemoteProtocolError."""
    text = _text(data)
    if text.startswith("p="):
        raise RemoteProtocolError("SCRAM channel binding is not supported")
    match = FIRST.fullmatch(text)
    if match is None:
        raise RemoteProtocolError("malformed SCRAM client-first-message")
    return ClientFirst(
        match["header"].encode(),
        match["bare"].encode(),
        _name(match["user"]),
        match["nonce"],
        _name(match["authzid"] or ""),
        TOKEN in match["extensions"].split(","),
    )


def client_final(data: bytes) -> ClientFinal:
    """Parse the client-final-message. Raises RemoteProtocolError."""
    match = FINAL.fullmatch(_text(data))
    if match is None:
        raise RemoteProtocolError("malformed SCRAM client-final-message")
    return ClientFinal(
        match["bare"].encode(),
        _base64(match["binding"], "channel binding"),
        match["nonce"],
        _base64(match["proof"], "proof"),
    )


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError("SCRAM message is not valid UTF-8") from None


def _name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise RemoteProtocolError(f"SCRAM {what} is not valid base64") from None
