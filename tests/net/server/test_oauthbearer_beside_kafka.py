"""OAUTHBEARER at a real Apache Kafka and at our broker: the same outcome for each token."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from typer.testing import Result

from kafkawire import ErrorCode
from kafkawire.client.security import LoginTimes, TokenEndpoint
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from kafkawire.net.clients.token_sources import IssuedTokens
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.net.sockets.http import FINAL, EndpointFailed
from kafkawire.sasl.endpoints import endpoint
from kafkawire.sasl.oauthbearer import initial_response
from tests.cli.reports import run
from tests.interop.implementations import until

from ...broker.security.jwts import AUDIENCE, ISSUER, Issuer, claims, part, unsecured
from ...real.broker import JAAS, Broker, free_ports
from ...real.compiler import compiled
from ...real.java import Installation
from ...real.wire import HOST, Wire
from ..http_server import Request, Response, http_server

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("oauthbearer")]
HANDLER: Final = f"{JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"
MODULE: Final = f"{JAAS}.oauthbearer.OAuthBearerLoginModule required"
REQUIRED: Final = "listener.name.scoped.oauthbearer.sasl.jaas.config"
MINUTE_MS: Final = 60_000
NOW: Final = int(time.time())
VALID: Final = claims(NOW)
Outcome = tuple[object, ...]


class Ports(NamedTuple):
    """The ports of listeners: tokens without a signature, with a required scope, and signed."""

    plain: int
    scoped: int
    signed: int
    fetched: int


NAMES: Final = ("PLAIN", "SCOPED", "SIGNED", "FETCHED")


class KeyServer(NamedTuple):
    """A server that has a key set. content: of the set. requests: each with its path."""

    url: str
    content: list[bytes]
    requests: list[str]


def keys_of_listeners(jwks: Path, server: KeyServer) -> dict[str, str]:
    """Return what both brokers have."""
    signed, fetched = "listener.name.signed.oauthbearer", "listener.name.fetched.oauthbearer"
    return {
        "listener.name.plain.oauthbearer.sasl.jaas.config": f"{MODULE};",
        REQUIRED: (
            f'{MODULE} unsecuredValidatorRequiredScope="read write"'
            ' unsecuredValidatorAllowableClockSkewMs="60000"'
            ' unsecuredValidatorPrincipalClaimName="name" unsecuredValidatorScopeClaimName="scp"'
            ' unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{signed}.sasl.jaas.config": f"{MODULE};",
        f"{signed}.sasl.server.callback.handler.class": HANDLER,
        "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "listener.name.signed.sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "listener.name.signed.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{fetched}.sasl.jaas.config": f"{MODULE};",
        f"{fetched}.sasl.server.callback.handler.class": HANDLER,
        "listener.name.fetched.sasl.oauthbearer.jwks.endpoint.url": server.url,
        "listener.name.fetched.sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.fetched.sasl.oauthbearer.expected.issuer": ISSUER,
    }


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The issuer of the signed tokens."""
    return Issuer()


@pytest.fixture(scope="module")
def jwks(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with its keys."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_text(issuer.jwks())
    return path


@pytest.fixture(scope="module")
def key_server(issuer: Issuer) -> Iterator[KeyServer]:
    """A server that has the keys of the issuer."""
    content, requests = [issuer.jwks().encode()], list[str]()

    def respond(request: Request) -> Response:
        requests.append(request.path)
        return Response(200, content[-1])

    with http_server(respond) as url:
        yield KeyServer(f"{url}/keys", content, requests)


@pytest.fixture(scope="module")
def real(
    installation: Installation,
    jwks: Path,
    key_server: KeyServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ports]:
    """A real Kafka."""
    port, controller, *ports = free_ports(2 + len(NAMES))
    broker = Broker(installation, tmp_path_factory.mktemp("oauth"), port, ports[0], controller)
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks.as_uri()},{key_server.url}"
    broker.installation = replace(installation, options=(*installation.options, allowed))
    addresses = ",".join(f"{name}://{HOST}:{port}" for name, port in zip(NAMES, ports, strict=True))
    broker.format(
        {
            "listeners": f"CLIENTS://{HOST}:{port},{addresses},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"CLIENTS://{HOST}:{port},{addresses}",
            "listener.security.protocol.map": ",".join(
                (
                    "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
                    *(f"{name}:SASL_PLAINTEXT" for name in NAMES),
                )
            ),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            **keys_of_listeners(jwks, key_server),
        }
    )
    try:
        broker.start()
        yield Ports(*ports)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def ours(jwks: Path, key_server: KeyServer) -> Iterator[Ports]:
    """Our broker with the same keys."""
    settings = {
        "listeners": ",".join(f"{name}://:0" for name in NAMES),
        "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in NAMES),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        **keys_of_listeners(jwks, key_server),
    }
    with ServerThread(ServerConfig(settings=settings)) as server:
        yield Ports(*(server.ports(name)[1] for name in NAMES))


class Minutes(int):
    """Minutes that are left at two times shortly after each other are the same."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(int(self) - int(other)) <= 1

    __hash__ = None  # type: ignore[assignment]


def outcome(port: int, *messages: bytes) -> Outcome:
    """What becomes of a client that sends messages, and acknowledges a rejection."""
    seen: list[object] = []
    with Wire(port) as wire:
        handshake = SaslHandshakeRequest(mechanism="OAUTHBEARER")
        wire.exchange(handshake, 1, SaslHandshakeResponse)
        for message in messages:
            request = SaslAuthenticateRequest(auth_bytes=message)
            try:
                response = wire.exchange(request, 2, SaslAuthenticateResponse)
            except ConnectionError:
                return (*seen, "closed")
            error = ErrorCode(response.error_code)
            lifetime = Minutes(round(response.session_lifetime_ms / MINUTE_MS))
            seen.append((error.name, response.auth_bytes, lifetime))
            if error is not ErrorCode.NONE:
                return (*seen, response.error_message)
        try:
            wire.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
        except ConnectionError:
            return (*seen, "closed")
    return (*seen, "served")


def first(value: str, authzid: str = "", **extensions: str) -> bytes:
    """Return the first message of a client."""
    data = initial_response(value, extensions)
    return data.replace(b"n,,", f"n,a={authzid},".encode(), 1) if authzid else data


UNSECURED: Final[dict[str, str]] = {
    "valid": unsecured(VALID),
    "no iat": unsecured(claims(NOW, iat=None)),
    "fractions": unsecured(VALID | {"iat": NOW - 0.5, "exp": NOW + 600.25}),
    "far future": unsecured(VALID | {"exp": NOW + 10**9}),
    "more parameters": unsecured(VALID, {"alg": "none", "typ": "JWT", "kid": "1"}),
    "padding": f"{part({'alg': 'none'})}.{part(VALID)}.",
    "expired": unsecured(VALID | {"exp": NOW - 30}),
    "issued later": unsecured(VALID | {"iat": NOW + 600}),
    "exp at iat": unsecured(VALID | {"iat": NOW - 60, "exp": NOW - 60}),
    "no exp": unsecured(claims(NOW, exp=None)),
    "exp as a text": unsecured(VALID | {"exp": str(NOW + 600)}),
    "iat as a text": unsecured(VALID | {"iat": "1"}),
    "no sub": unsecured(claims(NOW, sub=None)),
    "blank sub": unsecured(VALID | {"sub": "  "}),
    "number as sub": unsecured(VALID | {"sub": 1}),
    "list as sub": unsecured(VALID | {"sub": ["alice"]}),
    "scope": unsecured(VALID | {"scope": "read"}),
    "number as scope": unsecured(VALID | {"scope": 1}),
    "another algorithm": unsecured(VALID, {"alg": "RS256"}),
    "case of none": unsecured(VALID, {"alg": "NONE"}),
    "signature": unsecured(VALID, signature="c2ln"),
    "two parts": "a.b",
    "four parts": f"{unsecured(VALID)}c.d",
    "two dots": f"{part({'alg': 'none'})}..",
    "no base64url": f"{part({'alg': 'none'})}.a+b/.",
    "length of base64url": f"{part({'alg': 'none'})}.abcde.",
    "no JSON": unsecured("x"),
    "NaN": unsecured('{"sub":"alice","exp":NaN}'),
    "deep": unsecured('{"sub":' + "[" * 5000 + "]" * 5000 + "}"),
}


VALID_UNSECURED: Final = frozenset(
    {"valid", "no iat", "fractions", "far future", "more parameters", "padding", "scope"}
)


@pytest.mark.parametrize("name", UNSECURED)
def test_tokens_without_a_signature(real: Ports, ours: Ports, name: str) -> None:
    messages = [first(UNSECURED[name]), b"\x01"]
    if name in (
        "valid",
        "no iat",
        "fractions",
        "far future",
        "more parameters",
        "padding",
        "scope",
    ):
        messages = messages[:1]
    expected = outcome(real.plain, *messages)
    assert outcome(ours.plain, *messages) == expected


SCOPED: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "valid": lambda: {"name": "bob", "scp": ["write", "read", "x"]},
    "expired within the skew": lambda: {
        "name": "bob",
        "scp": ["write", "read"],
        "exp": int(time.time()) - 1,
    },
    "one text": lambda: {"name": "bob", "scp": "read write"},
    "one item": lambda: {"name": "bob", "scp": ["read"]},
    "no scope": lambda: {"name": "bob"},
    "no name": lambda: {"scp": ["write", "read"]},
}


@pytest.mark.parametrize("name", SCOPED)
def test_options_of_the_login_module(real: Ports, ours: Ports, name: str) -> None:
    messages = [first(unsecured(VALID | SCOPED[name]()))]
    if name != "valid" and "skew" not in name:
        messages.append(b"\x01")
    seen = [outcome(ports.scoped, *messages) for ports in (real, ours)]
    if "skew" in name:  # accepted, and the session has ended
        assert [each[0] for each in seen] == [("NONE", b"", 0)] * 2
    else:
        assert seen[1] == seen[0]


SIGNED: Final[dict[str, Callable[[Issuer], str]]] = {
    "RS256": lambda issuer: issuer.sign(VALID),
    "RS512": lambda issuer: issuer.sign(VALID, "RS512"),
    "PS256": lambda issuer: issuer.sign(VALID, "PS256"),
    "ES256": lambda issuer: issuer.sign(VALID, "ES256"),
    "no key id": lambda issuer: issuer.sign(VALID, kid=None),
    "more parameters": lambda issuer: issuer.sign(VALID, typ="at+jwt", custom=[1]),
    "several audiences": lambda issuer: issuer.sign(VALID | {"aud": ["x", AUDIENCE]}),
    "scope": lambda issuer: issuer.sign(VALID | {"scope": ["a", "b"]}),
    "expired within the skew": lambda issuer: issuer.sign(VALID | {"exp": int(time.time()) - 5}),
    "expired": lambda issuer: issuer.sign(VALID | {"exp": NOW - 50}),
    "not yet": lambda issuer: issuer.sign(VALID | {"nbf": NOW + 1000}),
    "exp before iat": lambda issuer: issuer.sign(VALID | {"iat": NOW + 7000}),
    "no exp": lambda issuer: issuer.sign(claims(NOW, exp=None)),
    "no iat": lambda issuer: issuer.sign(claims(NOW, iat=None)),
    "no sub": lambda issuer: issuer.sign(claims(NOW, sub=None)),
    "no audience": lambda issuer: issuer.sign(claims(NOW, aud=None)),
    "no issuer": lambda issuer: issuer.sign(claims(NOW, iss=None)),
    "another audience": lambda issuer: issuer.sign(VALID | {"aud": "x"}),
    "another issuer": lambda issuer: issuer.sign(VALID | {"iss": f"{ISSUER}/"}),
    "a scope twice": lambda issuer: issuer.sign(VALID | {"scope": ["a", "a"]}),
    "a claim twice": lambda issuer: issuer.sign(json.dumps(VALID)[:-1] + ',"sub":"x"}'),
    "another key": lambda issuer: issuer.sign(VALID, key=issuer.other),
    "another key with the id": lambda issuer: issuer.sign(VALID, key=issuer.other, kid="rsa"),
    "another type of key": lambda issuer: issuer.sign(VALID, kid="ec"),
    "no signature": lambda _: unsecured(VALID),
    "an empty signature": lambda issuer: f"{issuer.sign(VALID).rpartition('.')[0]}.",
    "no JSON": lambda issuer: issuer.sign("x"),
}
ACCEPTED: Final = 9
"""The first rows of the table."""


@pytest.mark.parametrize("name", SIGNED)
def test_signed_tokens(real: Ports, ours: Ports, issuer: Issuer, name: str) -> None:
    messages = [first(SIGNED[name](issuer)), b"\x01"]
    if list(SIGNED).index(name) < ACCEPTED:
        del messages[1]
    seen = [outcome(ports.signed, *messages) for ports in (real, ours)]
    if "skew" in name:  # accepted, and the session has ended
        assert [each[0] for each in seen] == [("NONE", b"", 0)] * 2
    else:
        assert seen[1] == seen[0]
        assert (seen[0][-1] == "served") is (len(messages) == 1)


def test_the_messages_of_the_mechanism(real: Ports, ours: Ports) -> None:
    """Errors of malformed messages have texts of their own, as those of other mechanisms.

    Another scheme than Bearer is not among them: Kafka closes the connection without a response.
    """
    value, expired = unsecured(VALID), unsecured(VALID | {"exp": 1})
    for messages, with_text in (
        ([first(value, logicalCluster="lkc-1")], True),
        ([first(value, "alice")], True),
        ([first(value, "bob")], True),
        ([first(expired, "bob"), b"\x01"], True),
        ([first(expired), first(value)], True),
        ([first(expired), first(expired), b"\x01"], True),
        ([first(expired), b"\x00"], False),
        ([b"\x01"], False),
        ([b"y" + first(value)[1:]], False),
        ([first(value).replace(b"Bearer", b"bearer")], True),
        ([first(value)[:-1]], False),
        ([first(value, a="")], False),
    ):
        seen = [outcome(ports.plain, *messages) for ports in (real, ours)]
        if not with_text:
            seen = [each[:-1] for each in seen]
        assert seen[1] == seen[0], messages


def test_a_change_of_the_key_set(real: Ports, ours: Ports, issuer: Issuer, jwks: Path) -> None:
    """Both read the file again: another issuer is trusted then, and the one before is not."""
    other = Issuer()
    tokens = [each.sign(VALID) for each in (issuer, other)]
    before, changed, broken = jwks.read_text(), other.jwks(), "{}"
    try:
        for moved_s, text, valid in ((2, changed, 1), (4, before, 0), (6, broken, None)):
            jwks.write_text(text)
            os.utime(jwks, (NOW + moved_s, NOW + moved_s))
            for ports in (real, ours):
                seen: list[Any] = [outcome(ports.signed, first(each))[0] for each in tokens]
                accepted = [each[:2] == ("NONE", b"") for each in seen]
                assert accepted == [valid == 0, valid == 1]
    finally:
        jwks.write_text(before)


@pytest.mark.parametrize("broker", ["real", "ours"])
def test_keys_of_a_server(
    broker: str, real: Ports, ours: Ports, issuer: Issuer, key_server: KeyServer
) -> None:
    """A token with a key that is not in the set leads to one fetch, and is rejected by then.

    Also where the key is not there then: for a minute, no token with the same id leads to another.
    """
    port = {"real": real, "ours": ours}[broker].fetched

    def accepted(value: str) -> bool:
        seen: Any = outcome(port, first(value))
        return bool(seen[0][:2] == ("NONE", b""))

    def fetched(value: str) -> int:
        """Return the number of fetches once one more has come, and the token is rejected."""
        before = len(key_server.requests)
        assert not accepted(value)
        until(lambda: len(key_server.requests) > before)
        return len(key_server.requests)

    other = Issuer(rsa="next", ec="next-ec")
    signed = other.sign(VALID)
    assert accepted(issuer.sign(VALID))
    unknown = issuer.sign(VALID, key=issuer.other)
    count = fetched(unknown)
    assert not accepted(unknown)
    key_server.content.append(other.jwks().encode())
    try:
        assert not accepted(signed)
        until(lambda: accepted(signed))
        assert not accepted(issuer.sign(VALID, kid=None))
        assert len(key_server.requests) == count + 1
    finally:
        key_server.content.pop()


TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
UNSECURED_LOGIN: Final = f"{MODULE} unsecuredLoginStringClaim_sub=alice;"
OF_SERVER: Final = {
    "sasl.login.callback.handler.class": f"{JAAS}.oauthbearer.OAuthBearerLoginCallbackHandler",
    "sasl.jaas.config": f"{MODULE} clientId=me clientSecret=made-up;",
}


def topics(port: int, tmp_path: Path, more: dict[str, str]) -> Result:
    """List topics with the command line, and a configuration of OAUTHBEARER."""
    values = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **more}
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return run("topics", "-b", f"{HOST}:{port}", "--config", path, "--json")


def test_the_command_line(
    real: Ports,
    ours: Ports,
    issuer: Issuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has a token as it is, of a file, of a server, and of the login module's options."""
    signed = issuer.sign(VALID)
    path = tmp_path / "token"
    path.write_text(f"{signed}\n")
    issued = json.dumps({"access_token": signed, "expires_in": 600}).encode()
    with http_server(lambda _: Response(200, issued)) as url:
        for ports in (real, ours):
            for port, more in (
                (ports.signed, {"sasl.oauth.token": signed}),
                (ports.signed, {TOKEN_URL: path.as_uri()}),
                (ports.signed, {TOKEN_URL: url, **OF_SERVER}),
                (ports.plain, {"sasl.jaas.config": UNSECURED_LOGIN}),
            ):
                done = topics(port, tmp_path, more)
                assert (done.exit_code, done.stderr) == (0, ""), more
    monkeypatch.setenv("KAFKAWIRE_SASL_OAUTH_TOKEN", signed)
    assert topics(ours.signed, tmp_path, {}).exit_code == 0
    expired = issuer.sign(VALID | {"exp": NOW - 50})
    monkeypatch.setenv("KAFKAWIRE_SASL_OAUTH_TOKEN", expired)
    for ports in (real, ours):
        done = topics(ports.signed, tmp_path, {})
        assert done.exit_code == 1
        assert '{"status":"invalid_token"}' in done.stderr
        assert not any(part in done.output for part in expired.split("."))


def test_errors_of_the_source_of_tokens_are_one_line(tmp_path: Path, ours: Ports) -> None:
    refused = Response(401, b'{"error":"invalid_client"}')
    with http_server(lambda _: refused) as url:
        done = topics(ours.signed, tmp_path, {TOKEN_URL: url, **OF_SERVER})
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert f"{TOKEN_URL}: HTTP status 401 (invalid_client)" in line
    assert "made-up" not in line


STATUSES: Final = range(400, 600)
OURS_AT_ONCE: Final = LoginTimes(backoff_s=0.001, longest_backoff_s=60.0)
"""The times that `TokenRequests.java` has."""


def test_the_same_statuses_lead_to_another_request_for_a_token(installation: Installation) -> None:
    """The first response to each path has its status, the next one a token."""
    requests: Counter[str] = Counter()

    def respond(request: Request) -> Response:
        requests[request.path] += 1
        status = int(request.path[1:]) if requests[request.path] == 1 else 200
        return Response(status, json.dumps({"access_token": unsecured(VALID)}).encode())

    def is_issued(url: str) -> bool:
        source = TokenEndpoint(endpoint(url), "me", "made-up", times=OURS_AT_ONCE)
        try:
            return bool(asyncio.run(call(source)))
        except EndpointFailed:
            return False

    async def call(source: TokenEndpoint) -> str:
        return (await IssuedTokens(source)()).value

    with http_server(respond) as server:
        urls = [f"{server}/{status}" for status in STATUSES]
        program = compiled(installation, Path(__file__).with_name("TokenRequests.java"))
        outcomes = program.run("TokenRequests", *urls).splitlines()
        of_java = dict(requests)
        requests.clear()
        assert [is_issued(url) for url in urls] == [each == "issued" for each in outcomes]
    assert requests == of_java
    assert {int(path[1:]) for path, count in of_java.items() if count == 1} == FINAL
