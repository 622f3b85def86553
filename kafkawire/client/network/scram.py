"""SCRAM: proves knowledge of a password without sending it (RFC 5802, RFC 7677; KIP-84).

The server must prove that it knows the password too; the nonce is an argument; a server
message is validated before anything is computed from it.

    client-first  n,,n=USER,r=NONCE
    server-first  r=NONCE+MORE,s=SALT,i=ITERATIONS
    client-final  c=biws,r=NONCE+MORE,p=PROOF
    server-final  v=SIGNATURE   or   e=ERROR
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final

from ...configs.scram import HASHES, ITERATIONS
from ...errors import LocalProtocolError, RemoteProtocolError

MIN_ITERATIONS: Final = ITERATIONS.start
"""Fewer make brute-forcing a captured exchange too cheap; it is also Kafka's minimum."""
MAX_ITERATIONS: Final = 1_000_000
"""More would let a hostile server keep this process busy."""
GS2_HEADER: Final = "n,,"
MAX_MESSAGE_BYTES: Final = 16_384


class Scram:
    """The client side of one exchange.

    nonce: printable text without a comma, never used twice. extensions: pairs that Kafka adds to
    the client's first message (`tokenauth=true` for a delegation token, KIP-48).
    """

    rejection = ""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        nonce: str,
        extensions: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        suffix = "".join(f",{name}={value}" for name, value in extensions)
        self._first = f"n={escaped(username)},r={nonce}{suffix}"
        self._signature: bytes | None = None
        self._steps = iter((self._prove, self._verify_server))

    def first(self) -> bytes:
        """Return the client's first message."""
        return (GS2_HEADER + self._first).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """Respond to a server message; None when the server is verified and the exchange complete.

        Raises RemoteProtocolError for an invalid message or an error of the server.
        """
        step = next(self._steps, None)
        if step is None:
            raise RemoteProtocolError("SCRAM: server message after the end of the exchange")
        if len(challenge) > MAX_MESSAGE_BYTES:
            raise RemoteProtocolError(
                f"SCRAM: server message of {len(challenge)} bytes is too long"
            )
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise RemoteProtocolError("SCRAM: server message is not valid UTF-8") from None
        return step(text)

    def _prove(self, challenge: str) -> bytes:
        received = attributes(challenge)
        if "m" in received:
            raise RemoteProtocolError("SCRAM: unknown mandatory extension")
        nonce, salt = received.get("r", ""), decoded(received, "s")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise RemoteProtocolError("SCRAM: server nonce does not start with the client nonce")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations(received))
        without_proof = f"c={b64encode(GS2_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first},{challenge},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        mask = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, mask, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _verify_server(self, challenge: str) -> None:
        received = attributes(challenge)
        if "e" in received:
            raise RemoteProtocolError(f"SCRAM: server error: {received['e']}")
        assert self._signature is not None
        if not hmac.compare_digest(decoded(received, "v"), self._signature):
            raise RemoteProtocolError("SCRAM: invalid server signature")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._hash).digest()


def escaped(username: str) -> str:
    """Escape `=` and `,` in a username."""
    if not username:
        raise LocalProtocolError("SCRAM: empty username")
    return username.replace("=", "=3D").replace(",", "=2C")


def attributes(message: str) -> dict[str, str]:
    """Split `a=1,b=2`; the first of repeated attributes wins."""
    values: dict[str, str] = {}
    for part in message.split(","):
        name, equals, value = part.partition("=")
        if len(name) != 1 or not equals:
            raise RemoteProtocolError("SCRAM: malformed server message")
        values.setdefault(name, value)
    return values


def decoded(received: dict[str, str], name: str) -> bytes:
    """Return the base64 value of an attribute; RemoteProtocolError if missing or malformed."""
    try:
        value = b64decode(received[name], validate=True)
    except KeyError:
        raise RemoteProtocolError(f"SCRAM: attribute {name}= is missing") from None
    except binascii.Error:
        raise RemoteProtocolError(f"SCRAM: attribute {name}= is not valid base64") from None
    if not value:
        raise RemoteProtocolError(f"SCRAM: attribute {name}= is empty")
    return value


def iterations(received: dict[str, str]) -> int:
    """Parse the iteration count, between the safe minimum and the affordable maximum."""
    text = received.get("i", "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_ITERATIONS)):
        raise RemoteProtocolError("SCRAM: attribute i= is not an iteration count")
    count = int(text)
    if not MIN_ITERATIONS <= count <= MAX_ITERATIONS:
        raise RemoteProtocolError(
            f"SCRAM: {count} iterations, expected {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    return count
