"""Tokens from files and from servers that issue them: what they send, bounds, errors, lifetimes."""

from __future__ import annotations

import asyncio
import json
import socket
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kafkawire.client.config import CLIENT_KEYS, Setting, read_config
from kafkawire.client.failures import ConfigurationError
from kafkawire.client.network.oauthbearer import OAuthBearerToken, TokenProvider
from kafkawire.client.network.transport import RequestToken, ShellEvent, TokenFailed
from kafkawire.client.security import (
    DEFAULT_TIMES,
    LoginTimes,
    TokenEndpoint,
    credentials,
    token_source,
)
from kafkawire.net.clients.token_requests import TokenRequests
from kafkawire.net.clients.token_sources import IssuedTokens, provider_of
from kafkawire.net.sockets import http
from kafkawire.net.sockets.http import EndpointFailed
from kafkawire.sasl.endpoints import endpoint

from .http_server import CERTIFICATE, Request, Response, http_server, server_context

SECRET = "made-up-secret"
TOKEN = "eyJhbGciOi"
CLIENT: dict[str, Setting] = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    "sasl.login.retry.backoff.ms": 0,
    "sasl.login.retry.backoff.max.ms": 0,
}


def provider(url: str, **more: Setting) -> TokenProvider:
    """Return the provider of a URL in a configuration."""
    config: dict[str, Setting] = {
        "bootstrap.servers": "a:1",
        "sasl.oauthbearer.token.endpoint.url": url,
        **more,
    }
    provider = provider_of(token_source(read_config(CLIENT_KEYS, config)))
    assert provider is not None
    return provider


def outcome(provider: TokenProvider) -> ShellEvent:
    """Request a token once; return the event."""

    async def scenario() -> ShellEvent:
        event: asyncio.Future[ShellEvent] = asyncio.get_running_loop().create_future()
        TokenRequests(event.set_result).start(RequestToken(7), provider)
        return await event

    return asyncio.run(scenario())


def failure(provider: TokenProvider) -> str:
    """Return why there is no token."""
    event = outcome(provider)
    assert isinstance(event, TokenFailed)
    assert event.detail.startswith("sasl.oauthbearer.token.endpoint.url: ")
    assert SECRET not in event.detail
    assert TOKEN not in event.detail
    return event.detail


def token(provider: TokenProvider) -> OAuthBearerToken:
    """Return the token."""
    event: Any = outcome(provider)
    assert isinstance(event.token, OAuthBearerToken), event
    return event.token


def test_a_file_is_read_for_each_token(tmp_path: Path) -> None:
    path = tmp_path / "my token"
    of_file = provider(path.as_uri())
    assert f"{path}: No such file or directory" in failure(of_file)
    for value in ("first", "second"):
        path.write_text(f"{value}\n")
        assert token(of_file).value == value
    path.write_text(f"{TOKEN} {TOKEN}")
    assert f"{path}: SASL OAUTHBEARER: a token of 21 characters that are not" in failure(of_file)
    path.write_text("a" * (http.MOST + 1))
    assert f"{path}: more than {http.MOST} bytes" in failure(of_file)


def test_a_server_issues_a_token_for_client_credentials() -> None:
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(200, json.dumps({"access_token": TOKEN, "expires_in": 60}).encode())

    with http_server(respond) as url:
        scope: dict[str, Setting] = {"sasl.oauthbearer.scope": "read & write"}
        issued = token(provider(f"{url}/token?realm=a", **CLIENT, **scope))
        token(provider(f"{url}", **CLIENT))
    assert issued.value == TOKEN
    assert issued.expires_at is not None
    first, second = requests
    assert first[:2] == ("POST", "/token?realm=a")
    assert parse_qs(first.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["read & write"],
    }
    assert first.fields["content-type"] == "application/x-www-form-urlencoded"
    assert first.fields["host"] == url.removeprefix("http://")
    scheme, _, basic = first.fields["authorization"].partition(" ")
    assert (scheme, b64decode(basic).decode()) == ("Basic", f"me:{SECRET}")
    assert (second.path, second.body) == ("/", b"grant_type=client_credentials")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response(401, b'{"error":"invalid_client"}'), "HTTP status 401 (invalid_client)"),
        (Response(500, f'{{"error":"{TOKEN} x"}}'.encode()), "HTTP status 500"),
        (Response(302, b"", {"Location": "/other"}), "HTTP status 302"),
        (Response(200, b""), "expected JSON with access_token"),
        (Response(200, TOKEN.encode()), "expected JSON with access_token"),
        (Response(200, b"[]"), "expected JSON with access_token"),
        (Response(200, b"[" * 100_000), "expected JSON with access_token"),
        (Response(200, b'{"token": "x"}'), "expected JSON with access_token"),
        (Response(200, b'{"access_token": 1}'), "access_token is not a text"),
        (Response(200, b'{"access_token": "a b"}'), "SASL OAUTHBEARER: a token of 3 characters"),
        (Response(200, b"x" * (http.MOST + 1)), f"more than {http.MOST} bytes"),
    ],
    ids=range(11),
)
def test_responses_without_a_token(response: Response, expected: str) -> None:
    with http_server(lambda _: response) as url:
        detail = failure(provider(url, **CLIENT))
    assert detail.partition("url: ")[2].startswith(expected)
    assert detail.endswith(expected) or "characters" in expected


def test_the_lifetime_of_a_token_is_used_up_to_four_fifths() -> None:
    count = 0
    lifetime: Any = 100

    def respond(_: Request) -> Response:
        nonlocal count
        count += 1
        body = {"access_token": f"t{count}", "expires_in": lifetime}
        return Response(200, json.dumps(body).encode())

    async def scenario(url: str) -> None:
        nonlocal lifetime
        now = 1_000.0
        source = TokenEndpoint(endpoint(url), "me", SECRET)
        issued = IssuedTokens(source, lambda: now)
        tokens = await asyncio.gather(issued(), issued())
        assert {each.value for each in tokens} == {"t1"}
        assert tokens[0].expires_at == 1_100.0
        now = 1_079.0
        assert (await issued()).value == "t1"
        now, lifetime = 1_080.0, "soon"
        assert await issued() == OAuthBearerToken("t2")
        assert await issued() == OAuthBearerToken("t3")

    with http_server(respond) as url:
        asyncio.run(scenario(url))


def test_a_server_that_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setattr(http, "TIMEOUT_S", 0.1)
        assert "no response within 0.1 seconds" in failure(
            provider(f"http://127.0.0.1:{port}", **CLIENT)
        )
    monkeypatch.undo()
    assert "Connect call failed" in failure(provider(f"http://127.0.0.1:{port}", **CLIENT))


@pytest.mark.parametrize(
    "data", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"\0" * 99]
)
def test_a_server_that_does_not_speak_http(data: bytes) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        writer.close()

    async def scenario() -> str:
        async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            return await asyncio.to_thread(failure, provider(url, **CLIENT))

    assert "invalid response" in asyncio.run(scenario())


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_certificate_of_a_server(monkeypatch: pytest.MonkeyPatch, is_trusted: bool) -> None:
    """Its authority is one of the system, which SSL_CERT_FILE names."""
    paths: list[str] = []

    def respond(request: Request) -> Response:
        paths.append(request.path)
        return Response(200, json.dumps({"access_token": TOKEN}).encode())

    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATE)
    with http_server(respond, server_context()) as url:
        assert url.startswith("https:")
        if is_trusted:
            assert token(provider(f"{url}/token", **CLIENT)).value == TOKEN
        else:
            assert failure(provider(url, **CLIENT)).endswith(": TLS: CERTIFICATE_VERIFY_FAILED")
    assert paths == ["/token"] * is_trusted


class Scenario:
    """Requests for a token at a server that responds with these statuses; time passes in sleep."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = iter(statuses)
        self.requests = 0
        self.slept: list[float] = []

    def respond(self, _: Request) -> Response:
        self.requests += 1
        status = next(self.statuses)
        return Response(status, json.dumps({"access_token": TOKEN}).encode())

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))

    async def token(self, url: str, times: LoginTimes) -> OAuthBearerToken:
        source = TokenEndpoint(endpoint(url), "me", SECRET, times=times)
        return await IssuedTokens(source, clock=lambda: sum(self.slept), sleep=self.sleep)()

    def run(self, times: LoginTimes = DEFAULT_TIMES) -> str:
        """Return the token, or why there is none."""
        with http_server(self.respond) as url:
            try:
                return asyncio.run(self.token(url, times)).value
            except EndpointFailed as error:
                return str(error).partition("url: ")[2]


def test_a_request_that_fails_is_sent_again_after_longer_and_longer_times() -> None:
    scenario = Scenario(503, 429, 500, 200)
    assert scenario.run() == TOKEN
    assert scenario.slept == [0.1, 0.2, 0.4]


def test_requests_are_sent_again_for_a_limited_time() -> None:
    scenario = Scenario(*[503] * 8)
    assert scenario.run() == "HTTP status 503"
    assert scenario.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.7], "10 seconds"
    once = Scenario(503)
    assert once.run(LoginTimes(backoff_s=0.0)) == "HTTP status 503"


def test_requests_are_sent_again_where_there_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    scenario = Scenario()
    with pytest.raises(EndpointFailed, match="Connect call failed"):
        asyncio.run(scenario.token(f"http://127.0.0.1:{port}", LoginTimes(0.1, 0.3)))
    assert scenario.slept == [0.1, 0.2]


@pytest.mark.parametrize("status", sorted(http.FINAL))
def test_statuses_after_which_no_request_is_sent(status: int) -> None:
    scenario = Scenario(status)
    assert scenario.run() == f"HTTP status {status}"
    assert (scenario.requests, scenario.slept) == (1, [])


def test_times_of_a_configuration() -> None:
    times: dict[str, Setting] = {
        "sasl.login.retry.backoff.ms": 5,
        "sasl.login.retry.backoff.max.ms": 6,
        "sasl.login.connect.timeout.ms": 7,
        "sasl.login.read.timeout.ms": 8,
    }
    base: dict[str, Setting] = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://a",
    }
    source = token_source(read_config(CLIENT_KEYS, base | CLIENT | times))
    assert isinstance(source, TokenEndpoint)
    assert source.times == LoginTimes(0.005, 0.006, 0.007, 0.008)
    without = {name: value for name, value in CLIENT.items() if name not in times}
    source = token_source(read_config(CLIENT_KEYS, base | without))
    assert isinstance(source, TokenEndpoint)
    assert source.times == DEFAULT_TIMES
    values = read_config(CLIENT_KEYS, base | CLIENT | {"sasl.login.retry.backoff.ms": 1})
    with pytest.raises(ConfigurationError, match=r"max\.ms is less than"):
        credentials(values)
    of_file = {**base, "sasl.oauthbearer.token.endpoint.url": "file:///a"}
    values = read_config(CLIENT_KEYS, of_file | {"sasl.login.read.timeout.ms": 1})
    with pytest.raises(ConfigurationError, match=r"read\.timeout\.ms: requires .* with https://"):
        credentials(values)


@pytest.mark.parametrize("is_accepted", [True, False])
def test_the_times_of_a_connection_and_of_a_response(is_accepted: bool) -> None:
    """A server with TLS accepts a connection when its handshake is done."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        scheme = "http" if is_accepted else "https"
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        short: dict[str, Setting] = {"sasl.login.connect.timeout.ms": 30_000}
        short["sasl.login.read.timeout.ms" if is_accepted else "sasl.login.connect.timeout.ms"] = 20
        detail = failure(provider(url, **CLIENT, **short))
    expected = "response" if is_accepted else "connection"
    assert detail.endswith(f"no {expected} within 0.02 seconds")
