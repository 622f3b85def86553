"""Schemas of a registry: references, limits, failures; and its HTTP client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from kafkawire.errors import UnusableSchema
from kafkawire.net.schema_registry import RegistryAddress, RegistryHttp
from kafkawire.values import Bounds, RegistrySchemas, Subject, ValueDecoder
from kafkawire.values.schema_registry import RETRY_S

from .registry import SchemaRegistry


class Fetched:
    """A registry in memory. failure: raised instead of a response."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self.registry = registry
        self.paths: list[str] = []
        self.failure: UnusableSchema | None = None

    def __call__(self, path: str, most: int) -> bytes | None:
        self.paths.append(path)
        if self.failure is not None:
            raise self.failure
        body = self.registry.respond(path)
        return None if body is None else json.dumps(body).encode()[: most + 1]


def chain(registry: SchemaRegistry, length: int) -> int:
    """Register schemas that each refer to the one before; return the id of the last."""
    listed: list[dict[str, Any]] = []
    number = 0
    for at in range(length):
        field = {"name": "f", "type": f"R{at - 1}" if at else "int"}
        schema = {"type": "record", "name": f"R{at}", "fields": [field]}
        body = {"schema": json.dumps(schema), "references": listed}
        number = registry.register(f"s{at}", body)
        listed = [{"name": f"R{at}", "subject": f"s{at}", "version": 1}]
    return number


def test_references_come_before_what_needs_them() -> None:
    fetch = Fetched(SchemaRegistry())
    schema = RegistrySchemas(fetch, lambda: 0.0).by_key(chain(fetch.registry, 4), None)
    assert schema is not None
    assert [one.name for one in schema.references] == ["R0", "R1", "R2"]
    found = ValueDecoder(sources=[RegistrySchemas(fetch, lambda: 0.0)]).decode(
        b"\0\0\0\0\x04\x06", None
    )
    assert found is not None
    assert found.value == {"f": {"f": {"f": {"f": 3}}}}


@pytest.mark.parametrize("bounds", [Bounds(references=3), Bounds(depth=3)])
def test_references_are_bounded(bounds: Bounds) -> None:
    fetch = Fetched(SchemaRegistry())
    with pytest.raises(UnusableSchema, match="references"):
        RegistrySchemas(fetch, lambda: 0.0, bounds).by_key(chain(fetch.registry, 20), None)
    assert len(fetch.paths) <= 6


def test_the_size_of_all_references_is_bounded() -> None:
    fetch = Fetched(SchemaRegistry())
    number = chain(fetch.registry, 20)
    with pytest.raises(UnusableSchema, match="more than 200 bytes"):
        RegistrySchemas(fetch, lambda: 0.0, Bounds(schema_bytes=200)).by_key(number, None)
    assert len(fetch.paths) < 6


def test_references_in_a_circle_end() -> None:
    registry = SchemaRegistry()
    for name, other in (("a", "b"), ("b", "a")):
        listed = [{"name": other, "subject": other, "version": 1}]
        registry.register(name, {"schema": f'"{other}"', "references": listed})
    decoder = ValueDecoder(sources=[RegistrySchemas(Fetched(registry), lambda: 0.0)])
    found = decoder.decode(b"\0\0\0\0\x01\x06", None)
    assert found is not None
    assert found.error is not None
    assert "unknown type" in found.error


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "no schema"),
        (b'{"schema": 7}', "no schema"),
        (b'{"schema": "", "schemaType": "X"}', "unsupported type 'X'"),
        (b'{"schema": "", "references": 7}', "invalid references"),
        (b'{"schema": "", "references": [{"name": 7}]}', "an invalid reference"),
        (
            b'{"schema": "", "references": [{"name": "a", "subject": "../b", "version": 1}]}',
            "refers to ../b version 1, which is not found",
        ),
    ],
    ids=lambda given: str(given[:12]),
)
def test_hostile_responses(body: bytes, reason: str) -> None:
    paths: list[str] = []

    def fetch(path: str, most: int) -> bytes | None:  # noqa: ARG001
        paths.append(path)
        return body if len(paths) == 1 else None

    with pytest.raises(UnusableSchema) as caught:
        RegistrySchemas(fetch, lambda: 0.0).by_key(1, None)
    assert reason in str(caught.value)
    assert not any("/../" in path for path in paths)


def test_a_registry_that_cannot_be_reached_is_tried_again_later() -> None:
    fetch = Fetched(SchemaRegistry())
    fetch.registry.register("orders-value", {"schema": '"int"'})
    fetch.failure = UnusableSchema("connection refused", "", True)
    now = 0.0
    decoder = ValueDecoder(sources=[RegistrySchemas(fetch, lambda: now)])

    def value() -> Any:
        return decoder.decode(b"\0\0\0\0\x01\x06", Subject("orders"))

    assert [value().error for _ in range(3)] == ["schema 1: connection refused"] * 3
    assert len(fetch.paths) == 1
    fetch.failure = None
    now = RETRY_S
    assert [value().value for _ in range(3)] == [3, 3, 3]
    assert len(fetch.paths) == 2


def test_a_schema_that_is_not_found_is_looked_up_once() -> None:
    fetch = Fetched(SchemaRegistry())
    decoder = ValueDecoder(sources=[RegistrySchemas(fetch, lambda: 0.0)])
    found = [decoder.decode(b"\0\0\0\0\x01\x06", None) for _ in range(3)]
    assert [one and one.error for one in found] == ["schema 1: not found"] * 3
    assert len(fetch.paths) == 1


# -- over HTTP


def test_credentials_are_sent_and_not_shown(registry: SchemaRegistry) -> None:
    registry.register("orders-value", {"schema": '"int"'})
    url = registry.url.replace("http://", "http://alice:s3cret%21@")
    for address in (
        RegistryAddress(url),
        RegistryAddress(registry.url, user="alice:s3cret!"),
        RegistryAddress(registry.url, token="s3cret!"),
    ):
        assert RegistrySchemas(RegistryHttp(address), lambda: 0.0).by_key(1, None) is not None
        assert "s3cret" not in repr(address)
    basic = "Basic YWxpY2U6czNjcmV0IQ=="
    assert registry.authorization == [basic, basic, "Bearer s3cret!"]


def test_guids_and_what_is_not_found(registry: SchemaRegistry) -> None:
    registry.register("orders-value", {"schema": '"int"'})
    source = RegistrySchemas(RegistryHttp(RegistryAddress(registry.url)), lambda: 0.0)
    found = source.by_key(registry.guid(1), None)
    assert found is not None
    assert found.text == '"int"'
    assert source.by_key(UUID(int=9), None) is None
    assert source.by_subject(Subject("a/b")) is None
    assert registry.requests[-1] == "/subjects/a%2Fb-value/versions/latest"


@contextmanager
def responding(*pieces: bytes, close: bool = True) -> Iterator[str]:
    """A server that sends bytes whatever is requested. close: the connection, afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                for piece in pieces:
                    connection.sendall(piece)
                if not close:
                    done.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://alice:s3cret@127.0.0.1:{server.getsockname()[1]}/base/"
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"HTTP/1.1 500 Error\r\n\r\n", "responds 500"),
        (b"HTTP/1.1 401 No\r\n\r\n", "responds 401 (credentials?)"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "responds 302"),
        (b"\0\0\0\x01", "invalid response"),
        (b"", "invalid response"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1000), "more than 999 bytes"),
    ],
)
def test_responses_of_other_servers(response: bytes, reason: str) -> None:
    with responding(response) as url, pytest.raises(UnusableSchema) as caught:
        RegistryHttp(RegistryAddress(url))("/schemas/ids/1", 999)
    assert reason in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_a_response_that_does_not_end(begun: bytes) -> None:
    with responding(begun, close=False) as url, pytest.raises(UnusableSchema) as caught:
        RegistryHttp(RegistryAddress(url), timeout_s=0.05)("/schemas/ids/1", 999)
    assert "no response within 0.05 seconds" in str(caught.value)
    assert caught.value.transient


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://a", "http://", "http://a?b=c"])
def test_invalid_urls(url: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        RegistryAddress(url)
