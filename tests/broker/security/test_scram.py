"""SCRAM's server against the RFCs: vectors, channel binding, authorization ids, nonces."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.releases import releases
from kafkawire.broker.security.scram import Scram, credential
from kafkawire.broker.security.scram_messages import client_first
from kafkawire.errors import RemoteProtocolError
from kafkawire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafkawire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from tests.broker.harness import Client, Harness
from tests.broker.security.test_sasl import SCRAM, ScramClient, handshake, token

E = ErrorCode
USER, PASSWORD = "user", "pencil"
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FINAL = f"c=biws,r={NONCE}{SERVER_NONCE}"


def exchange(mechanism: str = "SCRAM-SHA-256", lenient_nonce: bool = False) -> Scram:
    stored = credential(mechanism, PASSWORD, SALT, 4096)
    return Scram(
        mechanism,
        lambda user: stored if user == USER else None,
        lambda _token_id: None,
        SERVER_NONCE,
        lenient_nonce,
    )


def test_the_example_of_rfc_7677() -> None:
    server = exchange()
    first, proven = server.step(f"n,,n={USER},r={NONCE}".encode())
    assert first.decode() == f"r={NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert not proven
    final, proven = server.step(f"{FINAL},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert proven
    assert server.user == USER


class Peer:
    """A client that knows the password and says what a test wants it to."""

    def __init__(self, mechanism: str = "SCRAM-SHA-256", header: str = "n,,") -> None:
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.header = header
        self.bare = f"n={USER},r={NONCE}"

    def first(self) -> bytes:
        return f"{self.header}{self.bare}".encode()

    def last(
        self, server_first: bytes, binding: str | None = None, nonce: str = "", more: str = ""
    ) -> bytes:
        """Prove the password over whatever the message says."""
        binding = self.header if binding is None else binding
        nonce = nonce or f"{NONCE}{SERVER_NONCE}"
        bound = base64.b64encode(binding.encode()).decode()
        without_proof = f"c={bound},r={nonce}{more}"
        salted = hashlib.pbkdf2_hmac(self.hash, PASSWORD.encode(), SALT, 4096)
        key = hmac.digest(salted, b"Client Key", self.hash)
        auth_message = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), auth_message, self.hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("header", ["n,,", "y,,", f"n,a={USER},", f"y,a={USER},"])
def test_the_channel_binding_must_be_the_gs2_header(mechanism: str, header: str) -> None:
    peer = Peer(mechanism, header)
    server = exchange(mechanism)
    last = peer.last(server.step(peer.first())[0])
    assert server.step(last)[1]
    for other in ("n,,", "y,,", f"n,a={USER},", "n,a=other,", "p=tls-unique,,", "", "n,", "n,,x"):
        if other == header:
            continue
        server = exchange(mechanism)
        last = peer.last(server.step(peer.first())[0], binding=other)
        with pytest.raises(RemoteProtocolError):
            server.step(last)


@pytest.mark.parametrize("authzid", ["other", "User", "user=2C", "admin"])
def test_another_authorization_id_is_rejected(authzid: str) -> None:
    with pytest.raises(RemoteProtocolError, match="authorization id"):
        exchange().step(Peer(header=f"n,a={authzid},").first())


HOSTILE_FIRST = [
    "",
    "n",
    "n,",
    "n,,",
    "n,,n=user",
    "n,,r=abc",
    "n,,r=abc,n=user",
    "n,,n=,r=abc",
    "n,,n=user,r=",
    "n,,n=us=er,r=abc",
    "n,,n=us=2Xer,r=abc",
    "n,,n=user,r=a b",
    "n,,n=user,r=abc,",
    "n,,n=user,r=abc,x",
    "n,,n=user,r=abc,xy=1",
    "n,,m=1,n=user,r=abc",
    "n,,n=user,m=1,r=abc",
    "n,,n=user,n=user,r=abc",
    "n,b=user,n=user,r=abc",
    "n,a=,n=user,r=abc",
    "n,user,n=user,r=abc",
    "p=tls-unique,,n=user,r=abc",
    "P,,n=user,r=abc",
    "n,,n=us\x00er,r=abc",
    " n,,n=user,r=abc",
    "n,,n=user,r=abc\n",
]


@pytest.mark.parametrize("message", HOSTILE_FIRST)
def test_a_malformed_first_message_is_rejected(message: str) -> None:
    with pytest.raises(RemoteProtocolError):
        exchange().step(message.encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.replace(b"c=biws,", b""),
        lambda message: message.replace(b"c=biws", b"c=bi ws"),
        lambda message: message.replace(b"c=biws", b"c="),
        lambda message: message.replace(b"c=biws", b"c=biws,c=biws"),
        lambda message: message.replace(b"c=biws,r=", b"r=") + b",c=biws",
        lambda message: message.replace(b",p=", b",q="),
        lambda message: message + b",p=AAAA",
        lambda message: message[:-8] + b"AAAAAAA=",
        lambda message: message.rpartition(b",p=")[0],
        lambda message: message.rpartition(b"=")[0],
        lambda message: message.replace(b",r=", b",m=1,r="),
        lambda auth_message: b"\xff" + auth_message,
        lambda _: b"",
    ],
)
def test_a_changed_final_message_is_rejected(change: object) -> None:
    peer, server = Peer(), exchange()
    last = peer.last(server.step(peer.first())[0])
    assert callable(change)
    with pytest.raises(RemoteProtocolError):
        server.step(change(last))


def test_unknown_extensions_are_ignored() -> None:
    peer = Peer()
    peer.bare += ",x=1,y=2"
    server = exchange()
    assert server.step(peer.last(server.step(peer.first())[0], more=",z=3"))[1]


def test_names_are_unescaped_once() -> None:
    assert client_first(b"n,,n=a=2Cb=3D2C,r=x").user == "a,b=2C"


NONCES = {
    "doubled": f"{NONCE}{NONCE}{SERVER_NONCE}",
    "the client's": NONCE,
    "the server's": SERVER_NONCE,
    "of another exchange": "abcdef",
    "longer": f"{NONCE}{SERVER_NONCE}x",
}


@pytest.mark.parametrize("which", NONCES)
def test_another_nonce_is_rejected_except_a_doubled_one_before_4_0(which: str) -> None:
    """What a replayed message has is never taken: it lacks our part."""
    for lenient in (False, True):
        peer, server = Peer(), exchange(lenient_nonce=lenient)
        last = peer.last(server.step(peer.first())[0], nonce=NONCES[which])
        if lenient and which == "doubled":
            assert server.step(last)[1]
        else:
            with pytest.raises(RemoteProtocolError, match="nonce"):
                server.step(last)


class DoubledNonce(ScramClient):
    """As librdkafka 2.0.x sends it."""

    def last(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        doubled = server_first.replace(
            f"r={fields['r']}".encode(), f"r=fyko+d2lbbFgONRv9qkxdawL{fields['r']}".encode()
        )
        salt = base64.b64decode(fields["s"])
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), salt, int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", self.hash)
        nonce = dict(part.split("=", 1) for part in doubled.decode().split(","))["r"]
        without_proof = f"c=biws,r={nonce}"
        auth_message = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), auth_message, self.hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


TAKING = ("2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8")
TAKING_3 = ("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9")


@pytest.mark.parametrize("release", releases())
def test_a_doubled_nonce_comes_in_as_with_the_release(release: str) -> None:
    settings = {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    harness = Harness(settings=settings, passwords={USER: PASSWORD}, release=release)
    client: Client = harness.client()
    handshake(client, "SCRAM-SHA-256")
    peer = DoubledNonce("SCRAM-SHA-256", USER, PASSWORD)
    version = 0 if release in ("2.2",) else 1

    def authenticate(data: bytes) -> tuple[int, bytes]:
        response = client.exchange(
            SaslAuthenticateRequest(auth_bytes=data), version, SaslAuthenticateResponse
        )
        return response.error_code, response.auth_bytes

    _, server_first = authenticate(peer.first())
    code, _ = authenticate(peer.last(server_first))
    taken = release in TAKING + TAKING_3
    assert code == (E.NONE if taken else E.SASL_AUTHENTICATION_FAILED)


def test_an_authorization_id_is_rejected_over_the_wire() -> None:
    settings = {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    client = Harness(settings=settings, passwords={USER: PASSWORD}).client()
    handshake(client, "SCRAM-SHA-256")
    response = token(client, b"n,a=consumer,n=user,r=abc")
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message is not None
    assert "authorization id" in response.error_message
    assert client.closed is not None
