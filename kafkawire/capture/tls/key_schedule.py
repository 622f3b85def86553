"""Derives the keys of records from the secrets of a key log.

Functions of their arguments alone; they need nothing but hashes. `records.py` decrypts.

    TLS 1.3   traffic secret --HKDF-Expand-Label--> key, iv; next secret (RFC 8446, 7.1 to 7.3)
    TLS 1.2   pre-master secret --PRF--> master secret --PRF--> key block (RFC 5246, 5, 6.3, 8.1)
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

from .suites import Aead

MASTER_BYTES: Final = 48
IV: Final = 12


class Keys(NamedTuple):
    """The key of one direction, and its IV (of TLS 1.2 the implicit part of it)."""

    key: bytes
    iv: bytes

    def __repr__(self) -> str:
        return "<keys>"


def expand_label(secret: bytes, label: bytes, length: int, hash_name: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    full = b"tls13 " + label
    info = length.to_bytes(2) + bytes([len(full)]) + full + b"\0"
    out = block = b""
    count = 0
    while len(out) < length:
        count += 1
        block = hmac.digest(secret, block + info + bytes([count]), hash_name)
        out += block
    return out[:length]


def traffic_keys(secret: bytes, aead: Aead) -> Keys:
    """Derive the keys of a traffic secret of TLS 1.3."""
    key = expand_label(secret, b"key", aead.key, aead.hash)
    return Keys(key, expand_label(secret, b"iv", IV, aead.hash))


def next_secret(secret: bytes, aead: Aead) -> bytes:
    """Derive the traffic secret after a KeyUpdate (RFC 8446, 7.2)."""
    return expand_label(secret, b"traffic upd", len(secret), aead.hash)


def prf(secret: bytes, label: bytes, seed: bytes, length: int, hash_name: str) -> bytes:
    """The pseudorandom function of TLS 1.2 (RFC 5246, 5)."""
    seed = label + seed
    out, turn = b"", seed
    while len(out) < length:
        turn = hmac.digest(secret, turn, hash_name)
        out += hmac.digest(secret, turn + seed, hash_name)
    return out[:length]


def master_secret(premaster: bytes, randoms: bytes, aead: Aead) -> bytes:
    """Derive a master secret; randoms: those of client and server."""
    return prf(premaster, b"master secret", randoms, MASTER_BYTES, aead.hash)


def extended_master_secret(premaster: bytes, session_hash: bytes, aead: Aead) -> bytes:
    """Derive an extended master secret (RFC 7627).

    session_hash: of the handshake messages up to ClientKeyExchange.
    """
    return prf(premaster, b"extended master secret", session_hash, MASTER_BYTES, aead.hash)


def key_block(
    master: bytes, client_random: bytes, server_random: bytes, aead: Aead
) -> tuple[Keys, Keys]:
    """Derive the keys of client and server in TLS 1.2 (RFC 5246, 6.3); AEADs have no MAC keys."""
    key, iv = aead.key, aead.fixed_iv
    seed = server_random + client_random
    block = prf(master, b"key expansion", seed, 2 * (key + iv), aead.hash)
    ivs = block[2 * key :]
    return Keys(block[:key], ivs[:iv]), Keys(block[key : 2 * key], ivs[iv:])
