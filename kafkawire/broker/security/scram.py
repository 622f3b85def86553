"""SCRAM-SHA-256 and SCRAM-SHA-512, on the server's side (RFC 5802, RFC 7677).

The password is neither stored nor sent; the proof does not reveal the client key.

    client  n,,n=USER,r=NONCE                 server  r=NONCE+SERVER,s=SALT,i=ITERATIONS
    client  c=biws,r=NONCE+SERVER,p=PROOF     server  v=SIGNATURE

    salted = PBKDF2(password, salt, iterations)   stored = H(HMAC(salted, "Client Key"))
    PROOF = HMAC(salted, "Client Key") XOR HMAC(stored, auth message)
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ...configs.scram import HASHES, NUMBERS
from ...errors import RemoteProtocolError
from .scram_messages import client_final, client_first

if TYPE_CHECKING:
    from ...metadata import MetadataImage

SALT_SIZE: Final = 24
"""Bytes of the salt of a new credential."""


class Credential(NamedTuple):
    """The SCRAM credential of a user, derived from the password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class TokenCredential(NamedTuple):
    """The SCRAM credential of a delegation token. expires_ms: milliseconds since 1970."""

    owner: str
    credential: Credential
    expires_ms: int


def credential(mechanism: str, password: str, salt: bytes, iterations: int) -> Credential:
    """Derive the credential of a password."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Credential(salt, iterations, stored_key, hmac.digest(salted, b"Server Key", name))


def user_credential(image: MetadataImage, mechanism: str, user: str) -> Credential | None:
    """Return the SCRAM credential that a user has in the metadata; None for none."""
    record = image.scram_credentials.get((user, NUMBERS[mechanism]))
    if record is None:
        return None
    return Credential(record.salt, record.iterations, record.stored_key, record.server_key)


@dataclass(slots=True)
class Scram:
    """One authentication.

    look_up: returns the credential of a user, None if unknown. look_up_token: that of a delegation
    token, by its id. nonce: the server's part. token: that the client authenticates with, if any.
    lenient_nonce: whether the final message may repeat the client's part of the nonce, as
    librdkafka 2.0 does and Kafka accepted before it compared nonces (CVE-2024-56128).
    """

    mechanism: str
    look_up: Callable[[str], Credential | None]
    look_up_token: Callable[[str], TokenCredential | None]
    nonce: str
    lenient_nonce: bool = False
    user: str = ""
    token: TokenCredential | None = None
    _credential: Credential | None = None
    _nonce: str = ""
    _header: bytes = b""
    _auth_message: bytes = b""

    def step(self, token: bytes) -> tuple[bytes, bool]:
        """Process a client message: (server message, whether the client is authenticated).

        Raises RemoteProtocolError.
        """
        if self._credential is None:
            return self._first(token), False
        return self._last(token), True

    def _first(self, token: bytes) -> bytes:
        first = client_first(token)
        user, credential = self._find(first.user, first.token)
        if first.authzid not in ("", first.user):
            raise RemoteProtocolError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user, self._credential = user, credential
        self._header = first.header
        self._nonce = first.nonce + self.nonce
        salt = b64encode(credential.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={credential.iterations}".encode()
        self._auth_message = first.bare + b"," + server_first
        return server_first

    def _find(self, name: str, is_token: bool) -> tuple[str, Credential]:
        """Return the user that authenticates, and the credential."""
        if not is_token:
            credential = self.look_up(name)
            if credential is None:
                raise RemoteProtocolError("Authentication failed: invalid credentials")
            return name, credential
        token = self.look_up_token(name)
        if token is None:
            raise RemoteProtocolError(f"Token Authentication failed: Invalid tokenId : {name}")
        self.token = token
        return token.owner, token.credential

    def _last(self, token: bytes) -> bytes:
        assert self._credential is not None
        final = client_final(token)
        if final.binding != self._header:
            raise RemoteProtocolError("SCRAM channel binding does not match the GS2 header")
        same = final.nonce == self._nonce
        if not same and not (self.lenient_nonce and final.nonce.endswith(self._nonce)):
            raise RemoteProtocolError("invalid nonce in the SCRAM client-final-message")
        name, auth_message = HASHES[self.mechanism], self._auth_message + b"," + final.bare
        signature = hmac.digest(self._credential.stored_key, auth_message, name)
        if len(final.proof) != len(signature):
            raise RemoteProtocolError("invalid length of the SCRAM proof")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        stored_key = hashlib.new(name, client_key).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise RemoteProtocolError("Authentication failed: invalid credentials")
        return b"v=" + b64encode(hmac.digest(self._credential.server_key, auth_message, name))
