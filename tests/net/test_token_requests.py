"""Token providers: functions, coroutine functions and objects; failures and their reports."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafkawire import blocking
from kafkawire.client.config import Setting
from kafkawire.client.failures import RequestFailed
from kafkawire.client.network.oauthbearer import OAuthBearerToken
from kafkawire.client.network.transport import RequestToken, ShellEvent, TokenFailed, TokenReceived
from kafkawire.client.requests import Reason
from kafkawire.net.admin import Admin
from kafkawire.net.clients.token_requests import TokenRequests
from kafkawire.net.server_thread import ServerThread

NOW = 1_000.0
SECRET = "eyJhbGciOi"
TOKEN = OAuthBearerToken(SECRET, expires_at=NOW + 1)


async def returned() -> OAuthBearerToken:
    await asyncio.sleep(0)
    return TOKEN


class Provider:
    """An object that is called like a coroutine function."""

    async def __call__(self) -> OAuthBearerToken:
        return await asyncio.get_running_loop().create_task(returned())


def outcome(provider: Any) -> ShellEvent:
    """Request a token once; return the event."""

    async def scenario() -> ShellEvent:
        event: asyncio.Future[ShellEvent] = asyncio.get_running_loop().create_future()
        requests = TokenRequests(event.set_result, lambda: NOW)
        requests.start(RequestToken(7), provider)
        found = await event
        requests.cancel(7)  # its socket closes, later
        return found

    return asyncio.run(scenario())


@pytest.mark.parametrize("provider", [lambda: TOKEN, returned, lambda: returned(), Provider()])
def test_providers_of_every_kind_are_called(provider: Callable[[], object]) -> None:
    assert outcome(provider) == TokenReceived(7, TOKEN)


def test_a_function_does_not_run_in_the_loop() -> None:
    threads: list[threading.Thread] = []

    def provider() -> OAuthBearerToken:
        threads.append(threading.current_thread())
        return TOKEN

    assert outcome(provider) == TokenReceived(7, TOKEN)
    assert threads != [threading.current_thread()]


def failing() -> OAuthBearerToken:
    raise OSError("identity\x1b[2J provider down")


async def failing_later() -> OAuthBearerToken:
    raise OSError("identity\x1b[2J provider down")


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (failing, r"OSError: identity\x1b[2J provider down"),
        (failing_later, r"OSError: identity\x1b[2J provider down"),
        (lambda: SECRET, "returned str, expected OAuthBearerToken"),
        (lambda: None, "returned NoneType, expected OAuthBearerToken"),
        (lambda: OAuthBearerToken(SECRET, expires_at=NOW), "expired"),
        (lambda: OAuthBearerToken(f"{SECRET} "), "RFC 6750"),
    ],
)
def test_what_fails_is_reported_without_the_token(provider: Callable[[], object], why: str) -> None:
    event = outcome(provider)
    assert isinstance(event, TokenFailed)
    assert why in event.detail
    assert "sasl.oauth.token.provider" in event.detail
    assert event.detail.isprintable()
    assert SECRET not in event.detail


@pytest.mark.parametrize(
    "end", [lambda requests: requests.cancel(7), TokenRequests.close], ids=["connection", "client"]
)
def test_a_call_ends_with_its_connection(end: Callable[[TokenRequests], None]) -> None:
    async def scenario() -> list[ShellEvent]:
        began, cancelled = asyncio.Event(), asyncio.Event()

        async def provider() -> OAuthBearerToken:
            began.set()
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return TOKEN

        events: list[ShellEvent] = []
        requests = TokenRequests(events.append)
        requests.start(RequestToken(7), provider)
        await began.wait()
        end(requests)
        await cancelled.wait()
        return events

    assert asyncio.run(scenario()) == []


def test_calls_of_several_providers_end_one_by_one() -> None:
    """A node has a provider for each listener that it connects to."""

    async def scenario() -> ShellEvent:
        waiting = asyncio.Event()

        async def never() -> OAuthBearerToken:
            waiting.set()
            await asyncio.get_running_loop().create_future()
            return TOKEN

        event: asyncio.Future[ShellEvent] = asyncio.get_running_loop().create_future()
        requests = TokenRequests(event.set_result, lambda: NOW)
        requests.start(RequestToken(7), never)
        requests.start(RequestToken(8), returned)
        await waiting.wait()
        requests.cancel(7)
        return await event

    assert asyncio.run(scenario()) == TokenReceived(8, TOKEN)


# Whole clients.

BROKER = pytest.mark.kafka(passwords={"alice": "alice-secret"})


def config(broker: ServerThread, provider: Any) -> Mapping[str, Setting]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauth.token.provider": provider,
    }


async def ask(settings: Mapping[str, Setting]) -> None:
    async with Admin(settings) as admin:
        await admin.list_topics()


def ask_blocking(settings: Mapping[str, Setting]) -> None:
    with blocking.Admin(settings) as admin:
        admin.list_topics()


CLIENTS: list[Callable[[Mapping[str, Setting]], None]] = [
    lambda settings: asyncio.run(ask(settings)),
    ask_blocking,
]


@BROKER
@pytest.mark.parametrize("client", CLIENTS, ids=["asyncio", "blocking"])
@pytest.mark.parametrize("provider", [failing, failing_later])
def test_a_call_fails_with_the_reason_of_the_provider(
    kafka_broker: ServerThread,
    client: Callable[[Mapping[str, Setting]], None],
    provider: Callable[[], object],
) -> None:
    with pytest.raises(RequestFailed, match="OSError: identity") as caught:
        client(config(kafka_broker, provider))
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert not caught.value.retriable


@BROKER
@pytest.mark.parametrize("client", CLIENTS, ids=["asyncio", "blocking"])
def test_a_token_reaches_the_broker_and_no_log(
    kafka_broker: ServerThread,
    client: Callable[[Mapping[str, Setting]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Our broker lacks the mechanism: it names those that it has after there was a token."""
    caplog.set_level(logging.DEBUG)
    calls: list[int] = []

    def provider() -> OAuthBearerToken:
        calls.append(1)
        return OAuthBearerToken(SECRET)

    with pytest.raises(RequestFailed, match=r"UNSUPPORTED_SASL_MECHANISM.*PLAIN") as caught:
        client(config(kafka_broker, provider))
    assert calls
    assert SECRET not in str(caught.value) + caplog.text
