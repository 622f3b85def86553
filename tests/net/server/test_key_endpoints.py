"""Keys of signed tokens that servers have: when they are fetched, and what if they cannot be."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kafkawire.broker.security.listener_tokens import EndpointSettings
from kafkawire.net.brokers.key_endpoints import LONGEST_KEY_ID, MOST_MISSED, KeyEndpoint
from kafkawire.net.server import Server, ServerConfig
from kafkawire.sasl.endpoints import HttpEndpoint, endpoint
from tests.cli.reports import run

from ...broker.security.jwts import Issuer
from ..http_server import CERTIFICATE, Request, Response, http_server, server_context

URL = "sasl.oauthbearer.jwks.endpoint.url"
SETTINGS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listeners": "SASL_PLAINTEXT://:0",
    "sasl.oauthbearer.allow.unverified.audience": "true",
    "sasl.oauthbearer.allow.unverified.issuer": "true",
}


def settings(url: str, refresh_s: float = 3600.0) -> EndpointSettings:
    parsed = endpoint(url)
    assert isinstance(parsed, HttpEndpoint)
    return EndpointSettings(parsed, refresh_s, 0.001, 0.004)


async def until(is_so: object, limit_s: float = 60.0) -> None:
    """Wait until a function returns something true."""
    assert callable(is_so)
    async with asyncio.timeout(limit_s):
        while not is_so():
            await asyncio.sleep(0.001)


def test_the_same_id_leads_to_a_fetch_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """So a client cannot have a key set fetched with each of its tokens. A failure is one line."""
    requests: list[Request] = []
    before, after = Issuer(), Issuer("next", "next-ec")
    responses = [Response(200, before.jwks().encode())]

    def respond(request: Request) -> Response:
        requests.append(request)
        return responses[-1]

    def warnings() -> list[str]:
        own = [each for each in caplog.records if each.name == "kafkawire.node"]
        return [each.getMessage() for each in own]

    async def scenario(url: str) -> None:
        now = 1_000.0
        keys = KeyEndpoint(settings(url), lambda: now)
        with pytest.raises(ValueError, match="not fetched"):
            keys.current()
        await keys.fetch()
        assert {each.kid for each in keys.current()} == {"rsa", "ec"}
        task = asyncio.create_task(keys.refresh())
        for seconds, key_id, count in (
            (0.0, "next", 2),
            (59.0, "next", 2),
            (0.0, "x" * (LONGEST_KEY_ID + 1), 2),
            (1.0, "next", 3),
            (0.0, "other", 4),
        ):
            now += seconds
            keys.missing(key_id)
            await until(lambda count=count: len(requests) >= count)
            assert len(requests) == count
        for number in range(MOST_MISSED):
            keys.missing(str(number))
        keys.missing("next")  # the oldest id is one of so many
        assert len(keys._missed) == MOST_MISSED
        responses.append(Response(200, after.jwks().encode()))
        now += 60.0
        keys.missing("next")
        await until(lambda: {each.kid for each in keys.current()} == {"next", "next-ec"})
        responses.append(Response(503, b""))
        now += 60.0
        keys.missing("next")
        await until(warnings)
        assert {each.kid for each in keys.current()} == {"next", "next-ec"}
        task.cancel()

    with caplog.at_level(logging.WARNING, "kafkawire.node"), http_server(respond) as url:
        asyncio.run(scenario(url))
    assert warnings()[0] == f"{URL}: HTTP status 503; the keys before are used"


def test_keys_are_fetched_at_an_interval() -> None:
    requests: list[Request] = []
    content = Issuer().jwks().encode()

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(200, content)

    async def scenario(url: str) -> None:
        task = asyncio.create_task(KeyEndpoint(settings(url, refresh_s=0.001)).refresh())
        await until(lambda: len(requests) >= 3)
        task.cancel()

    with http_server(respond) as url:
        asyncio.run(scenario(url))
    assert requests[0][:2] == ("GET", "/")


def test_a_node_does_not_start_without_its_keys(tmp_path: Path) -> None:
    with http_server(lambda _: Response(404, b"")) as url:
        settings = SETTINGS | {"listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0", URL: url}
        words = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
        done = run("serve", "--data-dir", tmp_path / "node", *words)
    assert done.exit_code == 2
    assert f"listener SASL_PLAINTEXT: {URL}: HTTP status 404" in done.stderr


@pytest.mark.parametrize(
    ("response", "reason"),
    [(Response(404, b""), "HTTP status 404"), (Response(200, b"{}"), "not a JSON Web Key Set")],
)
def test_a_broker_does_not_start_without_its_keys(response: Response, reason: str) -> None:
    async def scenario(url: str) -> None:
        async with Server(ServerConfig(settings=SETTINGS | {URL: url})):
            pass

    with (
        http_server(lambda _: response) as url,
        pytest.raises(OSError, match=f"listener SASL_PLAINTEXT: {URL}: {reason}"),
    ):
        asyncio.run(scenario(url))


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_certificate_of_a_server(monkeypatch: pytest.MonkeyPatch, is_trusted: bool) -> None:
    """Its authority is one of the system, which SSL_CERT_FILE names."""
    content = Issuer().jwks().encode()
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATE)

    async def fetch(url: str) -> None:
        keys = KeyEndpoint(settings(url))
        await keys.fetch()
        assert {each.kid for each in keys.current()} == {"rsa", "ec"}

    with http_server(lambda _: Response(200, content), server_context()) as url:
        assert url.startswith("https:")
        if is_trusted:
            asyncio.run(fetch(url))
            return
        with pytest.raises(ValueError, match=r"^TLS: CERTIFICATE_VERIFY_FAILED$"):
            asyncio.run(fetch(url))
        words = [f"--set={key}={value}" for key, value in (SETTINGS | {URL: url}).items()]
        done = run("serve", *words)
    assert done.exit_code == 2
    assert f"listener SASL_PLAINTEXT: {URL}: TLS: CERTIFICATE_VERIFY_FAILED" in done.stderr
