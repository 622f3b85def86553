"""Captures whose connections are encrypted again: the same traffic, inside TLS, with a key log."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kafkawire.capture.files.source import read_capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.connection import Run
from kafkawire.capture.tcp.reassembly import Reassembler
from tests.capture.written import BROKER, CLIENT, Scenario

CERTIFICATE = Path(__file__).parents[2] / "net" / "server" / "localhost.pem"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

ConfigureContext = Callable[[ssl.SSLContext], None]


def server_context(key_log: Path, version: ssl.TLSVersion, ciphers: str = "") -> ssl.SSLContext:
    """The context of a server that writes a key log."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.minimum_version = context.maximum_version = version
    context.keylog_filename = str(key_log)
    if ciphers:
        context.set_ciphers(ciphers)
    return context


def client_context() -> ssl.SSLContext:
    """The context of a client that trusts it."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


class TlsPair:
    """Both ends of a TLS connection in memory; what they send goes to a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        number: int,
        contexts: tuple[ssl.SSLContext, ssl.SSLContext],
        session: ssl.SSLSession | None = None,
    ) -> None:
        self.scenario = scenario
        self.number = number
        self._bios = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        client, server = contexts
        self.ends = [
            client.wrap_bio(*self._bios[CLIENT], server_hostname="localhost", session=session),
            server.wrap_bio(*self._bios[BROKER], server_side=True),
        ]
        for _ in range(4):
            for side in (CLIENT, BROKER):
                with suppress(ssl.SSLWantReadError):
                    self.ends[side].do_handshake()
                self._flush(side)
        self._read(CLIENT)

    def send(self, side: int, data: bytes) -> None:
        """Send bytes of plaintext."""
        self.ends[side].write(data)
        self._flush(side)
        self._read(1 - side)

    def close(self) -> None:
        """Send close_notify, and close the connection."""
        for side in (CLIENT, BROKER):
            with suppress(ssl.SSLError):
                self.ends[side].unwrap()
            self._flush(side)
        self.scenario.close(self.number)

    def _flush(self, side: int) -> None:
        sent = self._bios[side][1].read()
        self._bios[1 - side][0].write(sent)
        if sent:
            self.scenario.send(side, sent, self.number)

    def _read(self, side: int) -> bytes:
        try:
            return self.ends[side].read(1 << 20)
        except ssl.SSLWantReadError:
            return b""


def plain_runs(capture: Path) -> list[Run]:
    """The bytes of a capture's connections, in order."""
    parser, reassembler = PacketParser(), Reassembler()
    return [
        event
        for block in read_capture(capture)
        for event in reassembler.handle(parser.parse(block))
        if isinstance(event, Run)
    ]


def encrypted(
    capture: Path, key_log: Path, version: ssl.TLSVersion, ciphers: str = "", most: int = 200
) -> Scenario:
    """Encrypt a capture's connections that begin with a SYN."""
    contexts = client_context(), server_context(key_log, version, ciphers)
    scenario = Scenario()
    pairs: dict[int, TlsPair] = {}
    for run in plain_runs(capture)[:most]:
        client = run.connection.client
        if client is None:
            continue
        number = run.connection.id
        if number not in pairs:
            pairs[number] = TlsPair(scenario, number, contexts)
        pairs[number].send(CLIENT if run.side == client else BROKER, run.data)
    for pair in pairs.values():
        pair.close()
    return scenario


def rsa_contexts(
    folder: Path, key_log: Path
) -> tuple[RSAPrivateKey, tuple[ssl.SSLContext, ssl.SSLContext]]:
    """Contexts of TLS 1.2 with RSA key exchange, and the private key that decrypts it."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1))
        .not_valid_after(datetime(2120, 1, 1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "rsa.pem"
    pem.write_bytes(
        certificate.public_bytes(Encoding.PEM)
        + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    server.keylog_filename = str(key_log)
    client = ssl.create_default_context(cafile=str(pem))
    for each in (client, server):
        each.maximum_version = V12
        each.set_ciphers("AES128-GCM-SHA256")
    return key, (client, server)
