"""The TLS of a broker's listeners, which may get other key stores and trust stores while it runs.

As in Kafka, the certificate of a listener keeps its subject and its alternative names, unless the
broker is started with `ssl.allow.dn.changes` or `ssl.allow.san.changes`; and nodes with the stores
before and nodes with those after can connect to the listener between brokers.

    change of configs ─▶ problem ─▶ stored ─▶ renew ─▶ connections that begin from then on
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from ...broker.configs import Settings
from ...configs import STORES, prefixed
from .tls_contexts import KEYSTORE, certificate_file, listener_tls, peer_tls

LOG: Final = logging.getLogger("kafkawire.node")
PEM_END: Final = "-----END CERTIFICATE-----"
X509_V_FLAG_NO_CHECK_TIME: Final = 0x200000
"""Of OpenSSL: certificates that have expired are valid, too."""
FLAGS: Final = ssl.VERIFY_X509_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME
FLIGHTS: Final = 8
"""More messages than two sides send in turn in a handshake."""
ALLOW_SUBJECTS: Final = "ssl.allow.dn.changes"
ALLOW_NAMES: Final = "ssl.allow.san.changes"


class Certificate(NamedTuple):
    """Whom the certificate of a listener is of."""

    subject: object
    names: frozenset[tuple[str, str]]


class Contexts(NamedTuple):
    """The contexts that stores lead to.

    server: of connections to the listener. peer: of those of this node to others, None where it has
    none. any_host: the same without a check of host names. certificate: None for that of a context
    of the caller.
    """

    server: ssl.SSLContext
    peer: ssl.SSLContext | None
    any_host: ssl.SSLContext | None
    certificate: Certificate | None


class ListenerTls:
    """The TLS of one listener.

    default: its context where no key names a certificate. connects: whether this node connects to
    others with the stores of the listener; is_verified: and whether new stores are tried with those
    before. Raises ValueError, which names the key, for files that are invalid.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        default: ssl.SSLContext | None,
        *,
        connects: bool = False,
        is_verified: bool = False,
    ) -> None:
        self.name = name
        self._default = default
        self._connects = connects
        self._is_verified = is_verified
        self._allows_subjects, self._allows_names = (
            settings.of_listener(name, each) == "true" for each in (ALLOW_SUBJECTS, ALLOW_NAMES)
        )
        self.present = self._loaded(settings)

    @property
    def context(self) -> ssl.SSLContext:
        """The context of connections that begin now."""
        return self.present.server

    def _loaded(self, settings: Settings) -> Contexts:
        server = listener_tls(settings, self.name, self._default)
        peer = any_host = None
        if self._connects:
            peer, any_host = (peer_tls(settings, self.name) for _ in range(2))
            any_host.check_hostname = False
        file = certificate_file(settings, self.name)
        return Contexts(server, peer, any_host, None if file is None else certificate_of(*file))

    def wanted(self, settings: Settings) -> Contexts:
        """Return what the stores lead to. Raises ValueError if they cannot follow the present."""
        after = self._loaded(settings)
        self._check_certificate(after.certificate)
        if self._is_verified:
            self._check_connections(after)
        return after

    def _check_certificate(self, after: Certificate | None) -> None:
        before = self.present.certificate
        if before is None or after is None:
            return
        if not self._allows_subjects and after.subject != before.subject:
            raise ValueError(f"{KEYSTORE}: the certificate has another subject than before")
        if not self._allows_names and not after.names >= before.names:
            raise ValueError(f"{KEYSTORE}: the certificate lacks alternative names of the former")

    def _check_connections(self, after: Contexts) -> None:
        """Connect with the stores before to those after, and the other way round."""
        for server, client in ((after, self.present), (self.present, after)):
            assert client.any_host is not None
            try:
                handshake(server.server, client.any_host)
            except ssl.SSLError as error:
                reason = f"brokers with the stores before could not connect: {error.reason}"
                raise ValueError(f"{KEYSTORE}: listener {self.name}: {reason}") from None


class TlsStores:
    """The TLS of the listeners of one broker."""

    def __init__(self, listeners: Iterable[ListenerTls] = ()) -> None:
        self.listeners = {each.name: each for each in listeners}

    def peer(self, listener: str) -> ssl.SSLContext | None:
        """Return the context of this node's connections to a listener; None without one here."""
        own = self.listeners.get(listener)
        return None if own is None else own.present.peer

    def problem(self, settings: Settings, changed: Collection[str]) -> str | None:
        """Return why stores cannot be used, None if they can.

        settings: with the changed keys.
        """
        for each in self.listeners.values():
            if any(prefixed(each.name, name) in changed for name in STORES):
                try:
                    each.wanted(settings)
                except ValueError as error:
                    return str(error)
        return None

    def renew(self, settings: Settings) -> None:
        """Read the files again; a listener whose stores are not valid keeps those before."""
        for each in self.listeners.values():
            try:
                each.present = each.wanted(settings)
            except ValueError as error:
                LOG.error("listener %s keeps its certificates: %s", each.name, error)


def certificate_of(path: str, password: str) -> Certificate:
    """Read the first certificate of a file that has been loaded."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path, password=password)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= FLAGS
    with open(path, encoding="utf-8") as file:
        first, end, _ = file.read().partition(PEM_END)
    client.load_verify_locations(cadata=first[first.rindex("-----BEGIN") :] + end)
    certificate: Any = handshake(server, client).getpeercert()
    return Certificate(certificate["subject"], frozenset(certificate.get("subjectAltName", ())))


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Connect two contexts in memory; return the side of the client. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    connecting = client.wrap_bio(to_client, to_server)
    sides = [connecting, server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(FLIGHTS):
        sides = [each for each in sides if not _is_complete(each)]
    assert not sides
    return connecting


def _is_complete(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
