"""SCRAM against the exchanges printed in RFC 5802 and RFC 7677, and against servers that cheat."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from kafkawire.client.network.sasl import Credentials, Plain, mechanism
from kafkawire.client.network.scram import MIN_ITERATIONS, Scram
from kafkawire.errors import LocalProtocolError, RemoteProtocolError

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
SERVER_FIRST = f"r={SERVER_NONCE},s={SALT},i=4096"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def begun() -> Scram:
    scram = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert scram.first() == f"n,,n=user,r={NONCE}".encode()
    return scram


def test_the_exchange_of_rfc_7677() -> None:
    scram = begun()
    assert scram.step(SERVER_FIRST.encode()) == f"c=biws,r={SERVER_NONCE},p={PROOF}".encode()
    assert scram.step(SERVER_FINAL.encode()) is None
    with pytest.raises(RemoteProtocolError, match="after the end"):
        scram.step(b"")


def test_sha_512_against_the_formulas_of_rfc_5802() -> None:
    """No RFC prints an exchange with SHA-512: the server's side is computed here, step by step."""
    scram = Scram("SCRAM-SHA-512", "bob", "secret", "abc")
    first, salt, count = scram.first().decode().removeprefix("n,,"), b"salt", 5000
    challenge = f"r=abcdef,s={b64encode(salt).decode()},i={count}"
    final = scram.step(challenge.encode())
    assert final is not None
    without, _, proof = final.decode().rpartition(",p=")
    assert without == "c=biws,r=abcdef"
    signed = f"{first},{challenge},{without}".encode()
    salted = hashlib.pbkdf2_hmac("sha512", b"secret", salt, count)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    stored = hashlib.sha512(client_key).digest()
    signature = hmac.digest(stored, signed, "sha512")
    # what a server does: from the proof back to the client's key
    undone = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
    assert hashlib.sha512(undone).digest() == stored
    server_key = hmac.digest(salted, b"Server Key", "sha512")
    server_signature = b64encode(hmac.digest(server_key, signed, "sha512"))
    assert scram.step(b"v=" + server_signature) is None


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (f"r=other,s={SALT},i=4096", "nonce"),
        (f"r={NONCE},s={SALT},i=4096", "nonce"),
        (f"r={SERVER_NONCE},s={SALT},i={MIN_ITERATIONS - 1}", "iterations"),
        (f"r={SERVER_NONCE},s={SALT},i=1000001", "iterations"),
        (f"r={SERVER_NONCE},s={SALT},i=99999999999999999999", "count"),
        (f"r={SERVER_NONCE},s={SALT},i=-1", "count"),
        (f"r={SERVER_NONCE},s={SALT},i=٤٠٩٦", "count"),
        (f"r={SERVER_NONCE},s={SALT}", "count"),
        (f"r={SERVER_NONCE},s=!!!,i=4096", "base64"),
        (f"r={SERVER_NONCE},s=,i=4096", "empty"),
        (f"r={SERVER_NONCE},i=4096", "missing"),
        (f"m=new,r={SERVER_NONCE},s={SALT},i=4096", "extension"),
        ("gibberish", "malformed"),
        ("", "malformed"),
        ("r=" + "x" * 20_000, "bytes"),
    ],
)
def test_a_server_that_breaks_the_rules_is_not_followed(challenge: str, why: str) -> None:
    with pytest.raises(RemoteProtocolError, match=why):
        begun().step(challenge.encode())


@pytest.mark.parametrize(
    ("final", "why"),
    [
        ("v=" + b64encode(bytes(32)).decode(), "invalid server signature"),
        ("v=", "empty"),
        ("e=invalid-proof", "invalid-proof"),
        ("x=1", "missing"),
    ],
)
def test_a_server_must_prove_that_it_knows_the_password(final: str, why: str) -> None:
    scram = begun()
    scram.step(SERVER_FIRST.encode())
    with pytest.raises(RemoteProtocolError, match=why):
        scram.step(final.encode())


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="UTF-8"):
        begun().step(b"\xff")


def test_names_are_escaped_and_never_empty() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "", "n").first() == b"n,,n=a=3Db=2Cc,r=n"
    with pytest.raises(LocalProtocolError, match="empty"):
        Scram("SCRAM-SHA-256", "", "p", "n")


def test_a_delegation_token_says_so() -> None:
    scram = Scram("SCRAM-SHA-256", "t", "hmac", "n", (("tokenauth", "true"),))
    assert scram.first() == b"n,,n=t,r=n,tokenauth=true"


def test_plain_says_all_at_once() -> None:
    plain = mechanism(Credentials("PLAIN", "alice", "secret"), lambda: "")
    assert isinstance(plain, Plain)
    assert plain.first() == b"\0alice\0secret"
    assert plain.step(b"") is None
    with pytest.raises(RemoteProtocolError):
        plain.step(b"more")


def test_credentials_show_nowhere() -> None:
    assert "secret" not in repr(Credentials("PLAIN", "alice", "secret"))
    with pytest.raises(LocalProtocolError, match="GSSAPI"):
        Credentials("GSSAPI", "alice", "secret")
    with pytest.raises(LocalProtocolError) as caught:
        Credentials("PLAIN", "alice", "sec\0ret")
    assert "sec" not in str(caught.value).replace("SASL", "")
