"""Clients over TLS: certificates made here, in front of our own broker."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from functools import partial
from pathlib import Path

import pytest

from kafkawire.client.config import Setting
from kafkawire.client.failures import ConfigurationError, RequestFailed
from kafkawire.net.admin import Admin
from kafkawire.net.server import Server
from tests.conftest import missing

pytestmark = pytest.mark.timeout(600)


def made(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate for that host, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        missing("openssl")
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


async def relay(context: ssl.SSLContext, target: str) -> asyncio.Server:
    """Take TLS connections, and pass their bytes on to the broker."""
    host, port = target.rsplit(":", 1)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # one side went: so does the other
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, ours), pump(theirs, writer))

    return await asyncio.start_server(serve, "localhost", 0, ssl=context)


async def topics(
    config: dict[str, Setting], certificate: tuple[Path, Path], clients: Path | None = None
) -> list[str]:
    """Request topics through the relay; only bootstrap is TLS, so nothing else is requested.

    clients: the certificate that clients must have; None requires none.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    async with Server() as server:
        front = await relay(context, server.bootstrap)
        try:
            port = front.sockets[0].getsockname()[1]
            settings: dict[str, Setting] = {
                "bootstrap.servers": f"localhost:{port}",
                "security.protocol": "SSL",
                "default.api.timeout.ms": 100_000,
                **config,
            }
            async with Admin(settings) as admin:
                return await admin.list_topics()
        finally:
            front.close()


def test_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    certificate = made(tmp_path, "localhost")
    assert asyncio.run(topics({"ssl.ca.location": str(certificate[0])}, certificate)) == []


def test_a_certificate_nobody_vouches_for_ends_it_at_once(tmp_path: Path) -> None:
    certificate = made(tmp_path, "localhost")
    other = made(tmp_path, "other")
    with pytest.raises(RequestFailed, match="certificate"):
        asyncio.run(topics({"ssl.ca.location": str(other[0])}, certificate))


def test_a_certificate_for_another_host(tmp_path: Path) -> None:
    certificate = made(tmp_path, "elsewhere")
    trusted: dict[str, Setting] = {"ssl.ca.location": str(certificate[0])}
    with pytest.raises(RequestFailed, match="localhost"):
        asyncio.run(topics(trusted, certificate))
    careless = {**trusted, "ssl.endpoint.identification.algorithm": "none"}
    assert asyncio.run(topics(careless, certificate)) == []


def test_a_client_proves_who_it_is_with_its_certificate(tmp_path: Path) -> None:
    certificate = made(tmp_path, "localhost")
    alice, mallory = made(tmp_path, "alice"), made(tmp_path, "mallory")

    def proof(of: tuple[Path, Path]) -> dict[str, Setting]:
        return {"ssl.certificate.location": str(of[0]), "ssl.key.location": str(of[1])}

    trusted: dict[str, Setting] = {"ssl.ca.location": str(certificate[0])}
    listed = partial(topics, certificate=certificate, clients=alice[0])
    assert asyncio.run(listed({**trusted, **proof(alice)})) == []
    for refused in (trusted, {**trusted, **proof(mallory)}):
        with pytest.raises(RequestFailed):
            asyncio.run(listed({**refused, "default.api.timeout.ms": 2_000}))


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"ssl.ca.location": "/nowhere"}, "ssl.ca.location"),
        ({"ssl.certificate.location": "/nowhere"}, "ssl.certificate.location"),
        ({"ssl.key.location": "/nowhere"}, "ssl.key.location"),
    ],
)
def test_files_that_are_not_there_are_named(config: dict[str, Setting], key: str) -> None:
    async def begin() -> None:
        given: dict[str, Setting] = {
            "bootstrap.servers": "localhost:1",
            "security.protocol": "SSL",
            **config,
        }
        async with Admin(given):
            pass

    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(begin())
    assert caught.value.key == key
