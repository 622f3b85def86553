"""Changes of the stores of listeners with TLS, and what clients see then: of Kafka, and of ours."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from kafkawire import encode_frame
from kafkawire.configs import ConfigSource
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from tests.interop.implementations import until

from ...real.wire import RESPONSE_SECONDS, Wire
from .certificates import write_certificate
from .test_configs_beside_kafka import BROKER, DELETE, SET, altered, described

LOCATION: Final = "ssl.keystore.location"
AUTHORITIES: Final = "ssl.truststore.location"
OF_TLS, OF_INSIDE, OF_CONTROLLER = (
    f"listener.name.{name}." for name in ("tls", "inside", "controller")
)
REQUEST: Final = encode_frame(ApiVersionsRequest(), 0, 1, client_id="tls")
INVALID: Final = 42
PASSWORD: Final = "hush"


class Files:
    """Certificates and other files in a folder, by the names of the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        certificates = (
            ("first", "broker", ("localhost",)),
            ("second", "broker", ("localhost",)),
            ("more-names", "broker", ("localhost", "other")),
            ("no-names", "broker", ()),
            ("another-subject", "other", ("localhost",)),
            ("client", "client", ()),
        )
        self.names = [name for name, *_ in certificates]
        for name, subject, names in certificates:
            write_certificate(folder / name, subject, names=names)
        self.names.append("locked")
        write_certificate(folder / "locked", "broker", PASSWORD, ("localhost",))
        (folder / "text").write_text("no certificate")
        (folder / "both").write_bytes(
            (folder / "first").read_bytes() + self.certificate("second").encode()
        )
        self.copy("first", "static")
        self.copy("first", "changing")

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def copy(self, source: str, target: str) -> None:
        """Write a file again; its time differs from that before."""
        path = self.folder / target
        time = path.stat().st_mtime_ns if path.exists() else 0
        shutil.copy(self.folder / source, path)
        while path.stat().st_mtime_ns // 10**9 == time // 10**9:
            path.touch()

    def certificate(self, name: str) -> str:
        """The certificate of a file, in PEM format."""
        text = (self.folder / name).read_text()
        return text[: text.index("-----BEGIN", 1)]

    def name_of(self, certificate: bytes) -> str:
        """The file that has a certificate."""
        pem = ssl.DER_cert_to_PEM_cert(certificate)
        return next(name for name in self.names if self.certificate(name) == pem)


class TlsPorts(NamedTuple):
    """The ports of a broker; 0 for a listener that it does not have."""

    plain: int
    tls: int
    inside: int = 0
    names: int = 0
    controller: int = 0


def context(certificate: str | None = None) -> ssl.SSLContext:
    """Make a context of a client that accepts every broker."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        client.load_cert_chain(certificate)
    return client


def open_tls(port: int, stack: ExitStack, certificate: str | None = None) -> ssl.SSLSocket:
    wire = stack.enter_context(Wire(port))
    return stack.enter_context(context(certificate).wrap_socket(wire.socket))


def certificate_at(files: Files, port: int) -> str:
    """The file with the certificate that a new connection gets."""
    with ExitStack() as stack:
        certificate = open_tls(port, stack).getpeercert(binary_form=True)
    assert certificate is not None
    return files.name_of(certificate)


def is_served(connection: ssl.SSLSocket) -> bool:
    """Whether a request has a response."""
    connection.settimeout(RESPONSE_SECONDS)
    try:
        connection.sendall(REQUEST)
        return bool(connection.recv(1 << 16))
    except (ssl.SSLError, ConnectionError):
        return False


def accepts(port: int, certificate: str) -> bool:
    """Whether a listener serves a client with a certificate."""
    with ExitStack() as stack:
        return is_served(open_tls(port, stack, certificate))


class Change(NamedTuple):
    """Values that are set together, None to delete one, and what Kafka does.

    error: of the response. tls, inside, controller: the files whose certificates new connections to
    these listeners get. name: of the broker, "" for all.
    """

    values: Mapping[str, str | None]
    error: int = 0
    tls: str = "first"
    inside: str = "first"
    controller: str = "first"
    name: str = "1"


def carried_out(files: Files, ports: TlsPorts, change: Change) -> tuple[int, bool]:
    """Set the values; return the error, and whether it has a message; wait for the certificates."""
    requests = [
        (key, DELETE if value is None else SET, _path(files, key, value))
        for key, value in change.values.items()
    ]
    error, message = altered(ports.plain, BROKER, change.name, *requests)
    if not error:
        until(lambda: is_described(ports.plain, change))
    for port, name in (
        (ports.tls, change.tls),
        (ports.inside, change.inside),
        (ports.controller, change.controller),
    ):
        until(lambda port=port, name=name: not port or certificate_at(files, port) == name)  # type: ignore[misc]
    return error, message is not None


def is_described(port: int, change: Change) -> bool:
    """Whether a broker has applied a change, and has read its files."""
    rows = described(port, BROKER, change.name)
    sources = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    dynamic = {name for name, row in rows.items() if row.config_source in sources}
    return all((key in dynamic) == (value is not None) for key, value in change.values.items())


def _path(files: Files, key: str, value: str | None) -> str | None:
    return files.path(value) if value and key.endswith(".location") else value
