"""The sessions of SASL clients at a real Apache Kafka and at our broker (KIP-368)."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from kafkawire import ApiKey, ErrorCode
from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kafkawire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafkawire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kafkawire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from kafkawire.net.admin import Admin
from kafkawire.net.clients import driver
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.net.sockets.socket import Socket
from tests.client.real.test_producer import unsecured_jwt
from tests.interop.implementations import until

from ...broker.security.test_sasl import ScramClient
from ...real.broker import GUEST, MECHANISMS, PASSWORD, PROPERTIES, USER, Broker, free_ports
from ...real.java import Installation
from ...real.wire import HOST, Wire

pytestmark = [pytest.mark.timeout(600)]
SESSION_MS: Final = 1500
SOON_MS: Final = 5000
LISTENER_MS: Final = 40_000_000
GENERAL_MS: Final = 50_000_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SESSIONS: Final = {
    "listener.name.other.sasl.enabled.mechanisms": "PLAIN",
    "connections.max.reauth.ms": str(GENERAL_MS),
    "listener.name.sasl.connections.max.reauth.ms": str(LISTENER_MS),
    "listener.name.sasl.plain.connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.sasl.scram-sha-512.connections.max.reauth.ms": "0",
}
SHA_256, SHA_512 = MECHANISMS[1:]
HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
Response = tuple[Any, ...]
SERVED: Final[Response] = ("metadata", "UNKNOWN_TOPIC_OR_PARTITION")


class Ports(NamedTuple):
    """The ports of listeners with SASL; the second has no keys of its own.

    third: of the real broker, whose sessions end soon with each mechanism.
    """

    first: int
    second: int
    third: int = 0


@pytest.fixture(scope="module")
def real(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """A real Kafka whose sessions end."""
    port, first, second, third, controller = free_ports(5)
    broker = Broker(installation, tmp_path_factory.mktemp("sessions"), port, first, controller)
    broker.format()
    addresses = ",".join(
        (
            f"CLIENTS://{HOST}:{port},SASL://{HOST}:{first}",
            f"OTHER://{HOST}:{second},SOON://{HOST}:{third}",
        )
    )
    of_sasl = {key: value for key, value in PROPERTIES.items() if "sasl.jaas.config" in key}
    of_soon = {key.replace(".sasl.", ".soon.", 1): value for key, value in of_sasl.items()}
    plain = "sasl.plain.sasl.jaas.config"
    broker.configure(
        {
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
            "listeners": f"{addresses},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": addresses,
            "listener.security.protocol.map": (
                "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,OTHER:SASL_PLAINTEXT,"
                "SOON:SASL_PLAINTEXT"
            ),
            "listener.name.soon.connections.max.reauth.ms": str(SOON_MS),
            **of_soon,
            "listener.name.other.plain.sasl.jaas.config": PROPERTIES[f"listener.name.{plain}"],
            **SESSIONS,
        }
    )
    try:
        broker.start()
        yield Ports(first, second, third)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def ours() -> Iterator[Ports]:
    """Our broker with the same keys."""
    settings = {
        "listeners": "SASL://:0,OTHER://:0,CLIENTS://:0",
        "listener.security.protocol.map": (
            "CLIENTS:PLAINTEXT,SASL:SASL_PLAINTEXT,OTHER:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "delegation.token.secret.key": "delegation-secret",
        **SESSIONS,
    }
    passwords = {USER: PASSWORD, GUEST: PASSWORD}
    with ServerThread(ServerConfig(settings=settings, passwords=passwords)) as server:
        yield Ports(*(server.ports(each)[1] for each in ("SASL", "OTHER")))


def plain(user: str = USER, password: str = PASSWORD) -> bytes:
    return f"\0{user}\0{password}".encode()


def lifetime(response: SaslAuthenticateResponse) -> int:
    """The lifetime of a session; one that ends with a token is rounded to minutes."""
    lifetime_ms = response.session_lifetime_ms
    is_configured = lifetime_ms in (SESSION_MS, LISTENER_MS, GENERAL_MS)
    return lifetime_ms if is_configured else round(lifetime_ms / MINUTE_MS) * MINUTE_MS


class Client:
    """A connection, and what became of its requests."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.wire = Wire(ports.first)
        self.responses: list[Response] = []

    def connect(self, port: int) -> None:
        """Connect again, to a listener."""
        self.wire.socket.close()
        self.wire = Wire(port)

    def note(self, send: Callable[[], Response]) -> None:
        """Send a request and note its response, or that the broker closed the connection."""
        try:
            self.responses.append(send())
        except ConnectionError:
            self.responses.append(("closed",))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> None:
        request = SaslHandshakeRequest(mechanism=mechanism)

        def send() -> Response:
            response = self.wire.exchange(request, version, SaslHandshakeResponse)
            return "handshake", ErrorCode(response.error_code).name, sorted(response.mechanisms)

        self.note(send)

    def authenticate(self, token: bytes, version: int = 2) -> bytes:
        response = SaslAuthenticateResponse()

        def send() -> Response:
            nonlocal response
            request = SaslAuthenticateRequest(auth_bytes=token)
            response = self.wire.exchange(request, version, SaslAuthenticateResponse)
            error = ErrorCode(response.error_code).name
            return "authenticate", error, response.error_message, lifetime(response)

        self.note(send)
        return response.auth_bytes

    def plain(self, user: str = USER, password: str = PASSWORD, version: int = 2) -> None:
        self.handshake()
        self.authenticate(plain(user, password), version)

    def scram(self, mechanism: str, user: str, password: str, extra: str = "") -> None:
        self.handshake(mechanism)
        scram = ScramClient(mechanism, user, password)
        scram.bare += extra
        self.authenticate(scram.last(self.authenticate(scram.first())))

    def metadata(self) -> None:
        def send() -> Response:
            unknown = [MetadataRequestTopic(name="unknown")]
            request = MetadataRequest(topics=unknown, allow_auto_topic_creation=False)
            [topic] = self.wire.exchange(request, 9, MetadataResponse).topics
            return "metadata", ErrorCode(topic.error_code).name

        self.note(send)

    def versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")

        def send() -> Response:
            response = self.wire.exchange(request, 3, ApiVersionsResponse)
            return "versions", ErrorCode(response.error_code).name

        self.note(send)

    def token(self, max_lifetime_ms: int) -> CreateDelegationTokenResponse:
        """Create a delegation token; return it once the broker has it."""
        request = CreateDelegationTokenRequest(max_lifetime_ms=max_lifetime_ms)
        token = self.wire.exchange(request, 2, CreateDelegationTokenResponse)
        all_tokens = DescribeDelegationTokenRequest(owners=None)

        def is_there() -> bool:
            described = self.wire.exchange(all_tokens, 2, DescribeDelegationTokenResponse)
            return token.token_id in [each.token_id for each in described.tokens]

        until(is_there)
        return token

    def until_expired(self) -> None:
        """Send requests until the broker closes the connection, which it does."""
        begin = len(self.responses)

        def closed() -> bool:
            self.metadata()
            return self.responses[-1] == ("closed",)

        until(closed)
        assert SERVED in self.responses[begin:]
        del self.responses[begin:-1]


def renewed_at_once(client: Client) -> None:
    for _ in range(3):
        client.plain()
        client.metadata()


def before_0_lifetimes(client: Client) -> None:
    client.plain(version=0)
    client.until_expired()


def not_renewed(client: Client) -> None:
    client.plain()
    client.until_expired()


def another_mechanism(client: Client) -> None:
    client.plain()
    client.handshake(SHA_256)
    client.authenticate(b"n,,n=alice,r=abc")


def a_disabled_mechanism(client: Client) -> None:
    client.plain()
    client.handshake("GSSAPI")
    client.metadata()


def another_user(client: Client) -> None:
    client.plain()
    client.plain(user=GUEST)
    client.metadata()


def a_wrong_password(client: Client) -> None:
    client.plain()
    client.plain(password="wrong")
    client.metadata()


def a_request_between(client: Client) -> None:
    client.plain()
    client.handshake()
    client.metadata()
    client.metadata()


def a_request_before_the_first_token(client: Client) -> None:
    client.handshake()
    client.metadata()
    client.metadata()


def a_request_before_the_handshake(client: Client) -> None:
    client.metadata()
    client.handshake()


def versions_between(client: Client) -> None:
    client.handshake()
    client.versions()
    client.versions()


def renewed_late(client: Client) -> None:
    """After the end, but before another request."""
    client.plain()
    other = Client(client.ports)
    with other.wire:
        other.plain()
        other.until_expired()
    client.plain()
    client.metadata()


def raw_tokens(client: Client) -> None:
    client.handshake(version=0)
    data = plain()
    client.wire.socket.sendall(len(data).to_bytes(4, "big") + data)
    client.responses.append(("raw", client.wire.socket.recv(100)))
    client.until_expired()


def of_all_listeners(client: Client) -> None:
    client.connect(client.ports.second)
    client.plain()


def with_a_delegation_token(client: Client) -> None:
    """Its session ends with the token, and may be that of its owner, too."""
    client.scram(SHA_512, USER, PASSWORD)
    token = client.token(HOUR_MS)
    password = b64encode(token.hmac).decode()
    client.connect(client.ports.first)
    client.scram(SHA_512, token.token_id, password, ",tokenauth=true")
    client.scram(SHA_512, USER, PASSWORD)
    client.metadata()
    client.connect(client.ports.first)
    client.scram(SHA_256, token.token_id, password, ",tokenauth=true")
    client.scram(SHA_256, token.token_id, password, ",tokenauth=true")


def no_handshake(client: Client) -> None:
    client.plain()
    client.authenticate(plain())
    client.metadata()


def of_the_listener(client: Client) -> None:
    client.scram(SHA_256, USER, PASSWORD)
    client.scram(SHA_256, USER, PASSWORD)
    client.metadata()


def without_an_end(client: Client) -> None:
    client.scram(SHA_512, USER, PASSWORD)
    client.handshake(SHA_512)
    client.metadata()


STORIES: Final = (
    renewed_at_once,
    before_0_lifetimes,
    not_renewed,
    another_mechanism,
    a_disabled_mechanism,
    another_user,
    a_wrong_password,
    a_request_between,
    a_request_before_the_first_token,
    a_request_before_the_handshake,
    versions_between,
    renewed_late,
    raw_tokens,
    of_all_listeners,
    with_a_delegation_token,
    no_handshake,
    of_the_listener,
    without_an_end,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_sessions_end_as_in_kafka(
    story: Callable[[Client], None], real: Ports, ours: Ports
) -> None:
    seen = []
    for ports in (real, ours):
        client = Client(ports)
        story(client)
        client.wire.socket.close()
        seen.append(client.responses)
    assert seen[1] == seen[0]


def settings(port: int, mechanism: str) -> dict[str, Setting]:
    """The settings of a client of ours."""
    who: dict[str, Setting] = {"sasl.username": USER, "sasl.password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        issued = time.time()
        who = {"sasl.oauth.token.provider": lambda: unsecured_jwt(USER, issued, issued + 3600)}
    return {
        "bootstrap.servers": f"{HOST}:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        **who,
    }


def test_our_clients_authenticate_again_while_requests_are_in_flight(
    real: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mechanism; a consumer always has a Fetch in flight."""
    sockets: list[Counted] = []

    class Counted(Socket):
        def __init__(self, *args: Any) -> None:
            self.handshakes = 0
            sockets.append(self)
            super().__init__(*args)

        def write(self, buffers: list[bytes]) -> None:
            self.handshakes += b"".join(buffers)[4:6] == HANDSHAKE
            super().write(buffers)

    monkeypatch.setattr(driver, "Socket", Counted)

    async def go_on(mechanism: str, begun: asyncio.Barrier, end: asyncio.Event) -> int:
        config = settings(real.third, mechanism)
        name = f"sessions-{mechanism}"
        async with Admin(config) as admin:
            await admin.create_topic(name, partitions=1, replication_factor=1)
        reset: dict[str, Setting] = {"auto.offset.reset": "earliest"}
        async with Producer(config) as producer, Consumer(config | reset) as consumer:
            consumer.assign([TopicPartition(name, 0)])
            sent = seen = 0
            while not end.is_set() or seen < sent:
                if not end.is_set():
                    await producer.deliver(name, b"v")
                    sent += 1
                while seen < sent:
                    seen += len(await consumer.poll(0.05))
                if sent == 1:
                    await begun.wait()
        return seen

    async def run() -> list[int]:
        mechanisms = (*MECHANISMS, "OAUTHBEARER")
        begun, end = asyncio.Barrier(len(mechanisms) + 1), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(go_on(each, begun, end)) for each in mechanisms]
            await begun.wait()
            connected = len(sockets)
            while min(each.handshakes for each in sockets if not each.closed.done()) < 3:
                await asyncio.sleep(0.05)
            end.set()
        assert len(sockets) == connected, "a client connected again"
        return [each.result() for each in tasks]

    assert min(asyncio.run(run())) > 1
