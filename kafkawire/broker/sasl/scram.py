"""SCRAM-SHA-256 and SCRAM-SHA-512, the server's side (RFC 5802, RFC 7677).

Law: the password is not kept, nor is it sent; the proof shows the client's key without telling it.

    client  n,,n=USER,r=NONCE                 server  r=NONCE+OURS,s=SALT,i=ITERATIONS
    client  c=biws,r=NONCE+OURS,p=PROOF       server  v=SIGNATURE

    salted = PBKDF2(password, salt, iterations)   stored = H(HMAC(salted, "Client Key"))
    PROOF = HMAC(salted, "Client Key") XOR HMAC(stored, both first messages and the last)
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...errors import RemoteProtocolError

ITERATIONS: Final = 4096
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Credential(NamedTuple):
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def credential(mechanism: str, password: str, salt: bytes, iterations: int) -> Credential:
    """Derive what is kept of a password."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Credential(salt, iterations, stored_key, hmac.digest(salted, b"Server Key", name))


@dataclass(slots=True)
class Scram:
    """One exchange. look_up: the credential of a user, None for nobody; nonce: our part of it."""

    mechanism: str
    look_up: Callable[[str], Credential | None]
    nonce: str
    user: str = ""
    _credential: Credential | None = None
    _nonce: str = ""
    _said: bytes = b""

    def step(self, token: bytes) -> tuple[bytes, bool]:
        """Take the client's message: (ours, whether it is proven).

        Raises RemoteProtocolError with the reason.
        """
        if self._credential is None:
            return self._first(token), False
        return self._last(token), True

    def _first(self, token: bytes) -> bytes:
        header, _, bare = token.partition(b",")
        _, _, bare = bare.partition(b",")
        if header not in (b"n", b"y") or not bare:
            raise RemoteProtocolError("not a SCRAM client's first message without channel binding")
        fields = parsed(bare)
        if "n" not in fields or not fields.get("r"):
            raise RemoteProtocolError("a SCRAM first message needs a user and a nonce")
        self.user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        found = self.look_up(self.user)
        if found is None:
            raise RemoteProtocolError("Authentication failed: invalid credentials")
        self._credential = found
        self._nonce = fields["r"] + self.nonce
        salt = b64encode(found.salt).decode()
        answer = f"r={self._nonce},s={salt},i={found.iterations}".encode()
        self._said = bare + b"," + answer
        return answer

    def _last(self, token: bytes) -> bytes:
        assert self._credential is not None
        bare, _, proof = token.rpartition(b",p=")
        fields = parsed(bare)
        if fields.get("r") != self._nonce or fields.get("c") is None:
            raise RemoteProtocolError("a SCRAM final message with another nonce")
        try:
            shown = b64decode(proof, validate=True)
        except NotBase64:
            raise RemoteProtocolError("a SCRAM proof that is not base64") from None
        name, said = HASHES[self.mechanism], self._said + b"," + bare
        signature = hmac.digest(self._credential.stored_key, said, name)
        if len(shown) != len(signature):
            raise RemoteProtocolError("a SCRAM proof of another length")
        client_key = bytes(a ^ b for a, b in zip(shown, signature, strict=True))
        stored_key = hashlib.new(name, client_key).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise RemoteProtocolError("Authentication failed: invalid credentials")
        return b"v=" + b64encode(hmac.digest(self._credential.server_key, said, name))


def parsed(message: bytes) -> Mapping[str, str]:
    """Read `a=1,b=2`; RemoteProtocolError for what is not that."""
    try:
        parts = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError:
        raise RemoteProtocolError("a SCRAM message that is not UTF-8") from None
    if any(len(name) != 1 or sign == "" for name, sign, _ in parts):
        raise RemoteProtocolError("a SCRAM message that is not of name=value pairs")
    return {name: value for name, _, value in parts}
