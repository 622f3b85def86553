"""Finds the keys of a connection: from the key log, for a direction, an epoch and a generation.

A pickled session has no secrets: keys are derived again, from the key log of whoever reads it.

    TLS 1.3   HANDSHAKE --Finished--> TRAFFIC generation 0 --KeyUpdate--> generation 1, 2, ...
    TLS 1.2   TRAFFIC from ChangeCipherSpec on
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from .hellos import TLS12, TLS13, ClientHello, ServerHello
from .key_schedule import (
    Keys,
    extended_master_secret,
    key_block,
    master_secret,
    next_secret,
    traffic_keys,
)
from .keylog import (
    CLIENT_HANDSHAKE,
    CLIENT_TRAFFIC,
    MASTER,
    PREMASTER,
    SERVER_HANDSHAKE,
    SERVER_TRAFFIC,
    SESSION,
    KeyLog,
)
from .records import Opener
from .suites import SUITES


class Epoch(IntEnum):
    """Which secret protects records."""

    HANDSHAKE = 0
    TRAFFIC = 1


SECRETS: Final = {
    (True, Epoch.HANDSHAKE): CLIENT_HANDSHAKE,
    (True, Epoch.TRAFFIC): CLIENT_TRAFFIC,
    (False, Epoch.HANDSHAKE): SERVER_HANDSHAKE,
    (False, Epoch.TRAFFIC): SERVER_TRAFFIC,
}
"""Whether the client sends, and the epoch -> the label of the secret in a key log (TLS 1.3)."""


class KeyCache:
    """Derived secrets and openers; a pickled cache is empty."""

    def __init__(self) -> None:
        self.secrets: dict[tuple[bool, Epoch], tuple[int, bytes]] = {}
        self.openers: dict[tuple[bool, Epoch, int], Opener | None] = {}
        self.master: bytes | None = None

    def __repr__(self) -> str:
        return "<keys>"

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyCache, ()


class Session:
    """What both hellos negotiated, and its keys.

    session_hash: of the handshake up to ClientKeyExchange, for pre-master secrets of TLS 1.2.
    """

    def __init__(self, client: ClientHello, server: ServerHello) -> None:
        self.client = client
        self.server = server
        self.session_hash = b""
        self._cache = KeyCache()

    @property
    def is_13(self) -> bool:
        return self.server.version == TLS13

    def unsupported(self) -> str:
        """Return why no key log can decrypt the connection; empty if one can."""
        if self.server.version not in (TLS12, TLS13):
            return "only TLS 1.2 and 1.3 are decrypted"
        if self.server.suite not in SUITES:
            return "only AEAD cipher suites are decrypted"
        return ""

    def missing(self, key_log: KeyLog, from_client: bool) -> str:
        """Return what the key log lacks for a direction; empty if it has all."""
        random = self.client.random
        if self.is_13:
            label = SECRETS[from_client, Epoch.TRAFFIC]
            secret = key_log.secret(label, random)
        else:
            label = MASTER
            secret = self._known_master(key_log) or key_log.secret(PREMASTER, random)
        if not len(key_log):
            return "no keys were given"
        return "" if secret else f"the key log has no {label.decode()} of this connection"

    def has_handshake_keys(self, key_log: KeyLog, from_client: bool) -> bool:
        """Whether encrypted handshake messages can be decrypted."""
        label = SECRETS[from_client, Epoch.HANDSHAKE]
        return self.is_13 and key_log.secret(label, self.client.random) is not None

    def opener(
        self, key_log: KeyLog, from_client: bool, epoch: Epoch, generation: int
    ) -> Opener | None:
        """Return what decrypts the records of a direction; None if the key is not known."""
        wanted = from_client, epoch, generation
        openers = self._cache.openers
        if wanted not in openers:
            openers.pop((from_client, epoch, generation - 2), None)
            keys = (self._keys_13 if self.is_13 else self._keys_12)(key_log, wanted)
            aead = SUITES[self.server.suite]
            openers[wanted] = None if keys is None else Opener(aead, keys, self.server.version)
        return openers[wanted]

    def _keys_13(self, key_log: KeyLog, wanted: tuple[bool, Epoch, int]) -> Keys | None:
        from_client, epoch, generation = wanted
        aead = SUITES[self.server.suite]
        known_generation, secret = self._cache.secrets.get((from_client, epoch), (0, None))
        if secret is None or known_generation > generation:
            known_generation, secret = (
                0,
                key_log.secret(SECRETS[from_client, epoch], self.client.random),
            )
        if secret is None:
            return None
        while known_generation < generation:
            known_generation, secret = known_generation + 1, next_secret(secret, aead)
        self._cache.secrets[from_client, epoch] = known_generation, secret
        return traffic_keys(secret, aead)

    def _keys_12(self, key_log: KeyLog, wanted: tuple[bool, Epoch, int]) -> Keys | None:
        from_client, epoch, generation = wanted
        if epoch is not Epoch.TRAFFIC or generation:
            return None
        if self._cache.master is None:
            self._cache.master = self._master(key_log)
        master = self._cache.master
        if master is None:
            return None
        aead = SUITES[self.server.suite]
        ours, theirs = key_block(master, self.client.random, self.server.random, aead)
        return ours if from_client else theirs

    def _known_master(self, key_log: KeyLog) -> bytes | None:
        by_random = key_log.secret(MASTER, self.client.random)
        return by_random or key_log.secret(SESSION, self.server.session_id)

    def _master(self, key_log: KeyLog) -> bytes | None:
        random = self.client.random
        master = self._known_master(key_log)
        if master is not None:
            return master
        premaster = key_log.secret(PREMASTER, random)
        if premaster is None:
            return None
        aead = SUITES[self.server.suite]
        if self.server.extended_master_secret:
            return extended_master_secret(premaster, self.session_hash, aead)
        return master_secret(premaster, random + self.server.random, aead)
