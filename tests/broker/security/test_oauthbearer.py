"""OAUTHBEARER at the broker: its messages, tokens that are valid and hostile, and sessions."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from joserfc.jwk import Key

from kafkawire import ErrorCode
from kafkawire.broker.security.jwt import LAST_MS, LONGEST_TOKEN, TokenRejected
from kafkawire.broker.security.key_sets import LARGEST
from kafkawire.broker.security.listener_tokens import validator_of
from kafkawire.broker.security.oauthbearer import OAuthBearer
from kafkawire.broker.security.session import EXPIRED
from kafkawire.broker.security.signed_tokens import Expectations, SignedTokens, public_keys
from kafkawire.broker.security.unsecured_tokens import UnsecuredTokens, unsecured_tokens
from kafkawire.client.network.oauthbearer import OAuthBearerToken
from kafkawire.client.network.sasl import mechanism
from kafkawire.errors import MissingPackage, RemoteProtocolError
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.sasl_handshake_request import SaslHandshakeRequest
from kafkawire.net.server_config import ServerConfig
from kafkawire.sasl.oauthbearer import initial_response, parse_initial_response
from tests.broker.harness import EPOCH_MS, Client, Harness, metadata

from .jwts import AUDIENCE, ISSUER, Issuer, claims, part, unsecured
from .test_sasl import handshake, token

E = ErrorCode
NOW_S: Final = EPOCH_MS / 1000
VALID: Final = claims(NOW_S)
INVALID_TOKEN: Final = b'{"status":"invalid_token"}'
SETTINGS: Final = {"sasl.enabled.mechanisms": "OAUTHBEARER"}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


def connect(settings: dict[str, str] | None = None) -> tuple[Harness, Client]:
    harness = Harness(topics={"t": 1}, settings=SETTINGS | (settings or {}))
    client = harness.client()
    assert handshake(client, "OAUTHBEARER").error_code == E.NONE
    return harness, client


def test_a_token_authenticates_its_subject_until_it_expires() -> None:
    harness, client = connect()
    value = unsecured(VALID | {"exp": NOW_S + 60})
    response = token(client, initial_response(value, {"logicalCluster": "lkc-1"}))
    assert (response.error_code, response.auth_bytes) == (E.NONE, b"")
    assert 50_000 < response.session_lifetime_ms <= 60_000
    assert metadata(client, "t").topics[0].error_code == E.NONE
    harness.advance(response.session_lifetime_ms / 1000 + 1)
    assert client.closed is None, "only a request closes it"
    client.send(MetadataRequest(topics=[]), 1)
    assert client.closed == EXPIRED


def test_a_client_authenticates_again_with_a_new_token_as_the_same_principal() -> None:
    harness, client = connect({"connections.max.reauth.ms": "10000"})
    for _ in range(3):
        response = token(client, initial_response(unsecured(VALID), {}))
        assert response.session_lifetime_ms == 10_000
        harness.advance(9)
        assert handshake(client, "OAUTHBEARER").error_code == E.NONE
    response = token(client, initial_response(unsecured(VALID | {"sub": "b\x1bob"}), {}))
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message is not None
    assert "Cannot change principals" in response.error_message
    assert response.error_message.isprintable()


def test_a_rejection_is_json_and_ends_with_the_acknowledgement() -> None:
    _, client = connect()
    response = token(client, initial_response(unsecured(VALID | {"exp": 1}), {}))
    assert (response.error_code, response.auth_bytes) == (E.NONE, INVALID_TOKEN)
    assert response.session_lifetime_ms == 0
    response = token(client, b"\x01")
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message == INVALID_TOKEN.decode()
    assert client.closed is not None


def test_an_acknowledgement_of_nothing_is_malformed() -> None:
    _, client = connect()
    assert token(client, b"\x01").error_code == E.SASL_AUTHENTICATION_FAILED


def test_our_client_and_the_server_speak_with_each_other() -> None:
    valid = mechanism(OAuthBearerToken(unsecured(VALID)), lambda: "")
    server = OAuthBearer(UnsecuredTokens())
    response, accepted = server.step(valid.first(), EPOCH_MS)
    assert accepted == ("alice", VALID["exp"] * 1000)
    assert valid.step(response) is None
    expired = mechanism(OAuthBearerToken(unsecured(VALID | {"exp": 1})), lambda: "")
    response, accepted = server.step(expired.first(), EPOCH_MS)
    assert accepted is None
    last = expired.step(response)
    assert last is not None
    with pytest.raises(RemoteProtocolError, match="invalid_token"):
        server.step(last, EPOCH_MS)


TOKEN: Final = "eyJhbGciOi.x.y"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"n,,",
        b"n,,\x01",
        b"n,,\x01\x01",
        f"y,,\x01auth=Bearer {TOKEN}\x01\x01".encode(),
        f"p=tls-unique,,\x01auth=Bearer {TOKEN}\x01\x01".encode(),
        f"n,a=,\x01auth=Bearer {TOKEN}\x01\x01".encode(),
        f"n,a=b=,\x01auth=Bearer {TOKEN}\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}".encode(),
        f"n,,auth=Bearer {TOKEN}\x01\x01".encode(),
        f"n,,\x01auth=Bearer{TOKEN}\x01\x01".encode(),
        f"n,,\x01auth=Basic {TOKEN}\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}!\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01auth=Bearer {TOKEN}\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01a1=b\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01a=\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01a=\x7f\x01\x01".encode(),
        f"n,,\x01auth=Bearer {TOKEN}\x01\x01\x01".encode(),
    ],
)
def test_a_malformed_first_message_is_refused_unseen(data: bytes) -> None:
    _, client = connect()
    response = token(client, data)
    assert response.error_code == E.SASL_AUTHENTICATION_FAILED
    assert response.error_message is not None
    assert "client first message" in response.error_message
    assert "eyJhbGciOi" not in response.error_message
    assert client.closed is not None
    assert "eyJhbGciOi" not in client.closed


def test_what_the_first_message_may_have() -> None:
    data = f"n,a=al=2Cic=3De,\x01auth=bEARER  {TOKEN}==\x01trace=a b=c\x01\x01".encode()
    first = parse_initial_response(data)
    assert first == (f"{TOKEN}==", "al,ic=e", {"trace": "a b=c"})
    assert "eyJhbGciOi" not in repr(first)
    assert "a b=c" not in repr(first)


@pytest.mark.parametrize(
    ("authzid", "is_valid"), [("alice", True), ("bob", False), ("b\x1b", False)]
)
def test_an_authorization_id_is_the_principal(authzid: str, is_valid: bool) -> None:
    _, client = connect()
    data = f"n,a={authzid},\x01auth=Bearer {unsecured(VALID)}\x01\x01".encode()
    response = token(client, data)
    assert (response.error_code == E.NONE) is is_valid
    if not is_valid:
        assert response.error_message is not None
        assert "different from the token's principal name (alice)" in response.error_message
        assert response.error_message.isprintable()


# Tokens without a signature.


def rejected(validate: Any, value: str) -> TokenRejected:
    """How a token is rejected; its reason has no part of it."""
    with pytest.raises(TokenRejected) as caught:
        validate(value, EPOCH_MS)
    error: TokenRejected = caught.value
    assert "s3cret" not in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 200
    return error


DEEP: Final = 30_000
HOSTILE: Final = {
    "empty": "",
    "one part": "s3cret",
    "two parts": "s3cret.s3cret",
    "four parts": f"{unsecured(VALID)}.",
    "many parts": "." * 60_000,
    "huge": "s3cret" * LONGEST_TOKEN,
    "a character of base64 that is not of base64url": f"{unsecured(VALID)[:-2]}+.",
    "a length of base64 that is not possible": f"{part({'alg': 'none'})}.aaaaa.",
    "padding of the wrong length": f"{part({'alg': 'none'})}=.{part(VALID)}.",
    "not UTF-8": unsecured(b"\xff\xfe"),
    "UTF-16": unsecured(json.dumps(VALID).encode("utf-16")),
    "a surrogate's bytes": unsecured(b'{"sub":"\xed\xa0\x80"}'),
    "not JSON": unsecured("s3cret"),
    "a list": unsecured("[]"),
    "a number": unsecured("1"),
    "more after it": unsecured(json.dumps(VALID) + "{}"),
    "deep lists": unsecured('{"sub":' + "[" * DEEP + "]" * DEEP + "}"),
    "deep objects": unsecured('{"a":' * 8_000 + "1" + "}" * 8_000),
    "deep header": unsecured(VALID, '{"alg":"none","a":' + "[" * DEEP + "]" * DEEP + "}"),
    "a claim twice": unsecured(json.dumps(VALID)[:-1] + ',"sub":"s3cret"}'),
    "a parameter twice": unsecured(VALID, '{"alg":"none","alg":"none"}'),
    "NaN": unsecured('{"sub":"alice","exp":NaN}'),
    "Infinity": unsecured('{"sub":"alice","exp":Infinity}'),
    "a float out of range": unsecured('{"sub":"alice","exp":1e400}'),
    "a long integer": unsecured('{"sub":"alice","exp":' + "9" * 4_000 + "}"),
    "a longer integer": unsecured('{"sub":"alice","exp":' + "9" * 40_000 + "}"),
    "no exp": unsecured(claims(NOW_S, exp=None)),
    "exp as a text": unsecured(VALID | {"exp": str(VALID["exp"])}),
    "exp as a truth value": unsecured(VALID | {"exp": True}),
    "iat as a list": unsecured(VALID | {"iat": []}),
    "no sub": unsecured(claims(NOW_S, sub=None)),
    "a blank sub": unsecured(VALID | {"sub": " \t"}),
    "a number as sub": unsecured(VALID | {"sub": 1}),
    "a list as sub": unsecured(VALID | {"sub": ["alice"]}),
    "a number as scope": unsecured(VALID | {"scope": 1}),
    "expired": unsecured(VALID | {"iat": 1, "exp": NOW_S}),
    "issued later": unsecured(VALID | {"iat": NOW_S + 1}),
    "exp at iat": unsecured(VALID | {"iat": NOW_S, "exp": NOW_S}),
    "no algorithm": unsecured(VALID, {}),
    "none in another case": unsecured(VALID, {"alg": "None"}),
    "a list as algorithm": unsecured(VALID, {"alg": ["none"]}),
    "another algorithm": unsecured(VALID, {"alg": "RS256"}, "s3cret"),
    "a signature": unsecured(VALID, signature="s3cret"),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_tokens_that_are_not_valid_are_rejected_unseen(value: str) -> None:
    assert rejected(UnsecuredTokens(), value).status == "invalid_token"


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_signature_is_rejected_where_signatures_are_required(value: str, issuer: Issuer) -> None:
    assert rejected(SignedTokens(FixedKeys(issuer), Expectations()), value)


def test_a_token_that_never_expires_has_the_last_time_there_is() -> None:
    validate = UnsecuredTokens()
    assert validate(unsecured(VALID | {"exp": 1e300}), EPOCH_MS).expires_ms == LAST_MS
    assert validate(unsecured(VALID | {"exp": 10**30}), EPOCH_MS).expires_ms == LAST_MS
    assert validate(unsecured(VALID | {"exp": NOW_S + 1.2345}), EPOCH_MS).expires_ms == (
        EPOCH_MS + 1235
    )


def test_the_options_of_unsecured_tokens() -> None:
    validate = unsecured_tokens(
        {
            "unsecuredValidatorPrincipalClaimName": "name",
            "unsecuredValidatorScopeClaimName": "scp",
            "unsecuredValidatorRequiredScope": " read  write ",
            "unsecuredValidatorAllowableClockSkewMs": "1500",
        }
    )
    entitled = VALID | {"name": "bob", "scp": ["write", "read", "more"]}
    assert validate(unsecured(entitled), EPOCH_MS).principal == "bob"
    error = rejected(validate, unsecured(entitled | {"scp": "read write"}))
    assert (error.status, error.scope) == ("insufficient_scope", "[read, write]")
    late = entitled | {"iat": NOW_S - 9, "exp": NOW_S - 1.4}
    assert validate(unsecured(late), EPOCH_MS).expires_ms == EPOCH_MS - 1400
    rejected(validate, unsecured(late | {"exp": NOW_S - 1.5}))
    early = entitled | {"iat": NOW_S + 1.5}
    assert validate(unsecured(early), EPOCH_MS).principal == "bob"
    rejected(validate, unsecured(early | {"iat": NOW_S + 1.6}))
    server = OAuthBearer(validate)
    response, _ = server.step(initial_response(unsecured(VALID | {"name": "bob"}), {}), EPOCH_MS)
    assert response == b'{"status":"insufficient_scope", "scope":"[read, write]"}'


# Tokens with a signature.


class FixedKeys:
    """The keys of an issuer. missed: the ids of keys that are not among them, in tokens."""

    def __init__(self, issuer: Issuer) -> None:
        self._keys = public_keys(issuer.jwks().encode())
        self.missed: list[str] = []

    def current(self) -> Sequence[Key]:
        return self._keys

    def missing(self, key_id: str) -> None:
        self.missed.append(key_id)


def test_signed_tokens(issuer: Issuer) -> None:
    validate = SignedTokens(FixedKeys(issuer), Expectations((AUDIENCE,), ISSUER))
    expected = ("alice", VALID["exp"] * 1000)
    for algorithm in ("RS256", "RS512", "PS256", "ES256"):
        assert validate(issuer.sign(VALID, algorithm), EPOCH_MS) == expected
    assert validate(issuer.sign(VALID, kid=None, custom="more"), EPOCH_MS) == expected
    assert validate(issuer.sign(VALID | {"aud": ["x", AUDIENCE]}), EPOCH_MS) == expected
    assert validate(issuer.sign(VALID | {"scope": "a b"}), EPOCH_MS) == expected
    assert validate(issuer.sign(VALID | {"exp": NOW_S - 29}), EPOCH_MS)
    assert validate(issuer.sign(VALID | {"x": "y" * 20_000}), EPOCH_MS) == expected


def test_signed_tokens_that_are_not_valid(issuer: Issuer) -> None:
    validate = SignedTokens(FixedKeys(issuer), Expectations((AUDIENCE,), ISSUER))
    signed = issuer.sign(VALID)
    header, payload, signature = signed.split(".")
    by_secret = part({"alg": "HS256", "kid": "rsa"})
    secret = issuer.rsa.as_pem(private=False)
    confused = hmac.digest(secret, f"{by_secret}.{payload}".encode(), hashlib.sha256)
    for value in (
        f"{header}.{payload}.",
        f"{header}.{part(VALID | {'sub': 'bob'})}.{signature}",
        f"{part({'alg': 'none'})}.{payload}.",
        f"{by_secret}.{payload}.{part(confused)}",
        f"{part({'alg': 'ES256', 'kid': 'rsa'})}.{payload}.{signature}",
        f"{part({'alg': 'RS256', 'kid': 1})}.{payload}.{signature}",
        issuer.sign(VALID, key=issuer.other),
        issuer.sign(VALID, key=issuer.other, kid="rsa"),
        issuer.sign(VALID, jwk=issuer.other.as_dict(private=False), kid="other"),
        issuer.sign(VALID | {"iss": "https://other.example"}),
        issuer.sign(VALID | {"aud": "other"}),
        issuer.sign(claims(NOW_S, aud=None)),
        issuer.sign(claims(NOW_S, iss=None)),
        issuer.sign(claims(NOW_S, iat=None)),
        issuer.sign(claims(NOW_S, exp=None)),
        issuer.sign(VALID | {"exp": int(NOW_S) - 30}),
        issuer.sign(VALID | {"nbf": int(NOW_S) + 31}),
        issuer.sign(VALID | {"scope": ["a", "a"]}),
        issuer.sign(VALID | {"sub": " "}),
        issuer.sign("s3cret"),
    ):
        rejected(validate, value)
    assert validate(signed, EPOCH_MS).principal == "alice"


# Configuration.

SIGNED: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
ANY: Final = {
    "sasl.oauthbearer.allow.unverified.audience": "true",
    "sasl.oauthbearer.allow.unverified.issuer": "true",
}


def test_the_keys_of_a_listener(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "key set.json"
    path.write_text(issuer.jwks())
    settings = {
        "listeners": "OPEN://:0,GUARDED://:0",
        "listener.security.protocol.map": "OPEN:SASL_PLAINTEXT,GUARDED:SASL_PLAINTEXT",
        "listener.name.guarded.oauthbearer.sasl.server.callback.handler.class": SIGNED,
        f"listener.name.guarded.oauthbearer.{URL}": path.as_uri(),
        "listener.name.guarded.oauthbearer.sasl.oauthbearer.sub.claim.name": "name",
        "listener.name.guarded.sasl.oauthbearer.expected.audience": f"x,{AUDIENCE}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        **SETTINGS,
    }
    static = dict(ServerConfig(settings=settings).settings)
    value = issuer.sign(VALID | {"name": "bob"})
    assert validator_of(static, "GUARDED")(value, EPOCH_MS).principal == "bob"
    rejected(validator_of(static, "OPEN"), value)
    assert validator_of(static, "OPEN")(unsecured(VALID), EPOCH_MS).principal == "alice"
    rejected(validator_of(static, "GUARDED"), unsecured(VALID | {"name": "bob"}))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sasl.server.callback.handler.class": "x.Y"}, "sasl.server.callback.handler.class"),
        ({"sasl.server.callback.handler.class": SIGNED}, f"{URL}: required"),
        ({URL: "file:///nowhere/keys.json"}, "expected.audience: required"),
        ({URL: "file:///nowhere/keys.json", **ANY}, "/nowhere/keys.json: No such file"),
        ({URL: "http://issuer.example/keys", **ANY}, "expected file:///PATH"),
        (
            {
                "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
                    ' unsecuredValidatorAllowableClockSkewMs="-1";'
                ),
                "listeners": "SASL_PLAINTEXT://:0",
            },
            "unsecuredValidatorAllowableClockSkewMs",
        ),
    ],
)
def test_keys_that_are_not_valid_are_named(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        ServerConfig(settings=SETTINGS | settings)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys":[]}', '{"keys":[1]}', '{"keys":[{"kty":"oct","k":"czNj"}]}']
)
def test_files_without_public_keys_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(URL)):
        ServerConfig(settings=SETTINGS | {URL: path.as_uri(), **ANY})


def test_signed_tokens_need_the_extra(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(issuer.jwks())
    monkeypatch.setitem(sys.modules, "joserfc", None)
    monkeypatch.delitem(sys.modules, "joserfc.errors", raising=False)
    with pytest.raises(MissingPackage, match=r"joserfc.*kafkawire\[oauth\]"):
        ServerConfig(settings=SETTINGS | {URL: path.as_uri(), **ANY})


def test_tokens_without_a_signature_are_not_enabled_by_passwords() -> None:
    config = ServerConfig(passwords={"alice": "secret"})
    assert "OAUTHBEARER" not in config.settings["sasl.enabled.mechanisms"]


def test_a_file_that_is_gone_fails_the_authentication_and_is_read_again(
    issuer: Issuer, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(issuer.jwks())
    harness = Harness(topics={"t": 1}, settings=SETTINGS | {URL: path.as_uri(), **ANY})
    path.unlink()
    client = harness.client()
    client.send(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    assert client.closed is not None
    assert URL in client.closed
    path.write_text(issuer.jwks())
    client = harness.client()
    assert handshake(client, "OAUTHBEARER").error_code == E.NONE
    assert token(client, initial_response(issuer.sign(VALID), {})).error_code == E.NONE


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """Another file may take its place, also within the time that two changes have."""
    before, after = Issuer(), Issuer()
    path, other = tmp_path / "keys.json", tmp_path / "other.json"
    path.write_text(before.jwks())
    validate = validator_of(SETTINGS | {URL: path.as_uri(), **ANY}, "SASL_PLAINTEXT")
    assert validate(before.sign(VALID), EPOCH_MS).principal == "alice"
    rejected(validate, after.sign(VALID))
    other.write_text(after.jwks())
    other.replace(path)
    assert validate(after.sign(VALID), EPOCH_MS).principal == "alice"
    rejected(validate, before.sign(VALID))
    for text, reason in (("{}", "not a JSON Web Key Set"), (" " * (LARGEST + 1), "more than")):
        path.write_text(text)
        with pytest.raises(RemoteProtocolError, match=f"key set: {reason}") as caught:
            validate(after.sign(VALID), EPOCH_MS)
        assert str(tmp_path) not in str(caught.value)
    path.write_text(before.jwks())
    assert validate(before.sign(VALID), EPOCH_MS).principal == "alice"


def test_a_token_whose_key_is_not_in_the_set_is_reported(issuer: Issuer) -> None:
    keys = FixedKeys(issuer)
    validate = SignedTokens(keys, Expectations())
    validate(issuer.sign(VALID), EPOCH_MS)
    rejected(validate, issuer.sign(VALID, key=issuer.other))
    assert keys.missed == ["other"]
