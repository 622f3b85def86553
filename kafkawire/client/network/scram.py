"""SCRAM: proving that one knows a password without sending it (RFC 5802, RFC 7677; KIP-84).

Law: the server must prove that it knows the password too, before it is believed; a nonce comes in
as an argument; what the server says is checked before anything is computed from it.

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

from ...errors import LocalProtocolError, RemoteProtocolError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS: Final = 4096
"""Fewer make a captured exchange too cheap to guess at; it is also Kafka's own minimum."""
MOST_ITERATIONS: Final = 1_000_000
"""More would keep this process busy for as long as a hostile server likes."""
GS2_HEADER: Final = "n,,"
LONGEST: Final = 16_384


class Scram:
    """One exchange, from the client's side.

    nonce: printable text without a comma, never used twice. extensions: pairs that Kafka adds to
    the client's first message (`tokenauth=true` for a delegation token, KIP-48).
    """

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
        said = "".join(f",{name}={value}" for name, value in extensions)
        self._first = f"n={escaped(username)},r={nonce}{said}"
        self._signature: bytes | None = None
        self._steps = iter((self._prove, self._believe))

    def first(self) -> bytes:
        """Give the client's first message."""
        return (GS2_HEADER + self._first).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """Answer what the server said; None when it has proved itself and all is done.

        Raises RemoteProtocolError where the server broke the rules or refused.
        """
        step = next(self._steps, None)
        if step is None:
            raise RemoteProtocolError("SCRAM: the server went on after the end")
        if len(challenge) > LONGEST:
            raise RemoteProtocolError(f"SCRAM: a message of {len(challenge)} bytes")
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise RemoteProtocolError("SCRAM: a message that is not UTF-8") from None
        return step(text)

    def _prove(self, challenge: str) -> bytes:
        said = attributes(challenge)
        if "m" in said:
            raise RemoteProtocolError("SCRAM: the server demands an extension that is not known")
        nonce, salt = said.get("r", ""), decoded(said, "s")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise RemoteProtocolError("SCRAM: the server's nonce does not continue ours")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations(said))
        without_proof = f"c={b64encode(GS2_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first},{challenge},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        mask = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, mask, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _believe(self, challenge: str) -> None:
        said = attributes(challenge)
        if "e" in said:
            raise RemoteProtocolError(f"SCRAM: the server refused: {said['e']}")
        assert self._signature is not None
        if not hmac.compare_digest(decoded(said, "v"), self._signature):
            raise RemoteProtocolError("SCRAM: the server does not know the password")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._hash).digest()


def escaped(username: str) -> str:
    """Write a name as SCRAM does: `=` and `,` have a meaning there."""
    if not username:
        raise LocalProtocolError("SCRAM: the username is empty")
    return username.replace("=", "=3D").replace(",", "=2C")


def attributes(message: str) -> dict[str, str]:
    """Split `a=1,b=2`; of an attribute that comes twice the first stands."""
    found: dict[str, str] = {}
    for part in message.split(","):
        name, equals, value = part.partition("=")
        if len(name) != 1 or not equals:
            raise RemoteProtocolError("SCRAM: a message that is not a list of attributes")
        found.setdefault(name, value)
    return found


def decoded(said: dict[str, str], name: str) -> bytes:
    try:
        value = b64decode(said[name], validate=True)
    except KeyError:
        raise RemoteProtocolError(f"SCRAM: the server's {name}= is missing") from None
    except binascii.Error:
        raise RemoteProtocolError(f"SCRAM: the server's {name}= is not base64") from None
    if not value:
        raise RemoteProtocolError(f"SCRAM: the server's {name}= is empty")
    return value


def iterations(said: dict[str, str]) -> int:
    """Read the number of iterations, between what is safe and what is affordable."""
    text = said.get("i", "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MOST_ITERATIONS)):
        raise RemoteProtocolError("SCRAM: the server's i= is no count of iterations")
    count = int(text)
    if not FEWEST_ITERATIONS <= count <= MOST_ITERATIONS:
        raise RemoteProtocolError(
            f"SCRAM: {count} iterations; {FEWEST_ITERATIONS} to {MOST_ITERATIONS} are taken"
        )
    return count
