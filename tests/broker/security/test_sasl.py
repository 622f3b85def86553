"""Authentication: PLAIN and SCRAM, over SaslAuthenticate and raw, and failures."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kafkawire import ErrorCode
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.broker.harness import Client, Harness, metadata

E = ErrorCode
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SCRAM = MECHANISMS[1:]
USER, PASSWORD = "al=i,ce", "secret-\N{SNOWMAN}"


@pytest.fixture
def client() -> Client:
    settings = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    return Harness(topics={"t": 1}, settings=settings, passwords={USER: PASSWORD}).client()


class ScramClient:
    """The client's side, from RFC 5802 alone."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.password = password
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self.bare = f"n={escaped},r=fyko+d2lbbFgONRv9qkxdawL"

    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def last(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt = base64.b64decode(fields["s"])
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), salt, int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", self.hash)
        without_proof = f"c=biws,r={fields['r']}"
        auth_message = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), auth_message, self.hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.hash)
        self.expected = b"v=" + base64.b64encode(hmac.digest(server_key, auth_message, self.hash))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def handshake(client: Client, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return client.exchange(
        SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse
    )


def token(client: Client, data: bytes) -> SaslAuthenticateResponse:
    return client.exchange(SaslAuthenticateRequest(auth_bytes=data), 2, SaslAuthenticateResponse)


def plain(user: str = USER, password: str = PASSWORD, authzid: str = "") -> bytes:
    return f"{authzid}\0{user}\0{password}".encode()


def raw_token(client: Client, data: bytes) -> bytes:
    client.send_bytes(len(data).to_bytes(4, "big") + data)
    frame = client.frame()
    assert frame is not None, client.closed
    return frame[4:]


def test_plain(client: Client) -> None:
    assert handshake(client, "PLAIN").mechanisms == list(MECHANISMS)
    assert token(client, plain()).error_code == E.NONE
    assert metadata(client, "t").topics[0].error_code == E.NONE


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(client: Client, mechanism: str) -> None:
    peer = ScramClient(mechanism, USER, PASSWORD)
    handshake(client, mechanism)
    last = peer.last(token(client, peer.first()).auth_bytes)
    assert token(client, last).auth_bytes == peer.expected, "the server proves itself too"
    assert metadata(client, "t").topics[0].error_code == E.NONE


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_raw_tokens_after_a_handshake_of_version_0(client: Client, mechanism: str) -> None:
    handshake(client, mechanism, 0)
    if mechanism == "PLAIN":
        assert raw_token(client, plain()) == b""
    else:
        peer = ScramClient(mechanism, USER, PASSWORD)
        last = peer.last(raw_token(client, peer.first()))
        assert raw_token(client, last) == peer.expected
    assert metadata(client, "t").topics[0].error_code == E.NONE


WRONG = [
    b"",
    b"\xff\xfe",
    plain(password="wrong"),
    plain(user="nobody"),
    plain(authzid="consumer else"),
    b"\0" + USER.encode(),
    plain(password=""),
]


@pytest.mark.parametrize("data", WRONG)
def test_a_wrong_plain_token_is_an_error_and_closes_the_connection(
    client: Client, data: bytes
) -> None:
    handshake(client, "PLAIN")
    response = token(client, data)
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message
    assert client.closed is not None


@pytest.mark.parametrize(
    "first",
    [b"", b"p=tls-unique,,n=u,r=n", b"n,,n=nobody,r=abc", b"n,,r=abc", b"n,,\xff=1", b"y,,x"],
)
@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_wrong_first_message_of_scram(client: Client, mechanism: str, first: bytes) -> None:
    handshake(client, mechanism)
    assert token(client, first).error_code == E.SASL_AUTHENTICATION_FAILED
    assert client.closed is not None


@pytest.mark.parametrize("what", ["password", "nonce", "base64", "length"])
@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_wrong_proof(client: Client, mechanism: str, what: str) -> None:
    peer = ScramClient(mechanism, USER, PASSWORD if what != "password" else "wrong")
    handshake(client, mechanism)
    last = peer.last(token(client, peer.first()).auth_bytes)
    if what == "nonce":
        last = last.replace(b"r=fyko", b"r=other")
    if what == "base64":
        last = last[:-4] + b"!!!!"
    if what == "length":
        last = last.rpartition(b",p=")[0] + b",p=AAAA"
    assert token(client, last).error_code == E.SASL_AUTHENTICATION_FAILED
    assert client.closed is not None


def test_an_unknown_mechanism_gets_the_enabled_ones(client: Client) -> None:
    response = handshake(client, "GSSAPI")
    assert (response.error_code, response.mechanisms) == (
        E.UNSUPPORTED_SASL_MECHANISM,
        list(MECHANISMS),
    )
    assert client.closed is not None


def test_nothing_else_is_served_before(client: Client) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.exchange(request, 3, ApiVersionsResponse).error_code == E.NONE
    client.send(MetadataRequest(topics=[]), 9)
    assert client.frame() is None
    assert client.closed == "METADATA before authentication"


def test_tokens_out_of_order_close(client: Client) -> None:
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    assert client.closed == "SaslAuthenticate before SaslHandshake"


def test_an_unsupported_version_in_place_of_a_token_closes(client: Client) -> None:
    assert handshake(client, "PLAIN").error_code == E.NONE
    key_and_version = int(ApiKey.API_VERSIONS).to_bytes(2, "big") + (99).to_bytes(2, "big")
    header = key_and_version + (7).to_bytes(4, "big") + b"\xff\xff\0"
    client.send_bytes(len(header).to_bytes(4, "big") + header)
    assert client.closed == "API_VERSIONS: authentication failed"


def test_without_sasl_a_handshake_is_an_error() -> None:
    client = Harness().client()
    assert handshake(client, "PLAIN").error_code == E.ILLEGAL_SASL_STATE
    assert client.closed is None
