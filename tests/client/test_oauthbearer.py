"""OAUTHBEARER: its messages as RFC 7628 and KIP-342 have them; tokens that SASL cannot carry."""

from __future__ import annotations

import pytest

from kafkawire.client.network.oauthbearer import OAuthBearer, OAuthBearerToken
from kafkawire.client.network.sasl import mechanism
from kafkawire.errors import LocalProtocolError, RemoteProtocolError

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
"""Of RFC 7628, section 4."""
SECRET = "eyJhbGciOi"


def begun(**extensions: str) -> OAuthBearer:
    exchange = mechanism(OAuthBearerToken(TOKEN, extensions=extensions), lambda: "")
    assert isinstance(exchange, OAuthBearer)
    return exchange


def test_the_messages_are_those_of_the_rfc() -> None:
    assert begun().first() == f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()
    assert (
        begun(logicalCluster="lkc-1", identityPoolId="pool 2").first()
        == (
            f"n,,\x01auth=Bearer {TOKEN}\x01logicalCluster=lkc-1\x01identityPoolId=pool 2\x01\x01"
        ).encode()
    )
    assert begun().step(b"") is None


def test_a_rejection_is_acknowledged_once_and_its_text_is_escaped_and_cut() -> None:
    exchange = begun()
    assert exchange.step(b'{"status":"\x1b[2J\xff"}') == b"\x01"
    assert "\\x1b[2J" in exchange.rejection
    assert exchange.rejection.isprintable()
    with pytest.raises(RemoteProtocolError, match="token rejected"):
        exchange.step(b'{"status":"again"}')
    long = begun()
    long.step(b"x" * 100_000)
    assert len(long.rejection) < 2_000


@pytest.mark.parametrize(
    "value", ["", f"{SECRET} ", f"{SECRET}\n", f"{SECRET}\x01auth=Bearer x", f"{SECRET}é", "=="]
)
def test_a_token_that_could_change_the_message_is_refused_unseen(value: str) -> None:
    with pytest.raises(LocalProtocolError, match="OAUTHBEARER") as caught:
        OAuthBearerToken(value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("auth", "Bearer x", "'auth'"),
        ("", "x", "''"),
        ("a1", "x", "'a1'"),
        ("a=b", "x", "'a=b'"),
        ("name", f"{SECRET}\x01\x01", "value of extension 'name'"),
        ("name", f"{SECRET}é", "value of extension 'name'"),
    ],
)
def test_extensions_that_could_change_the_message_are_refused(
    name: str, value: str, why: str
) -> None:
    with pytest.raises(LocalProtocolError, match=why) as caught:
        OAuthBearerToken("x", extensions={name: value})
    assert SECRET not in str(caught.value)


def test_a_token_shows_nowhere() -> None:
    shown = repr(OAuthBearerToken(TOKEN, 1.5, {"name": SECRET}))
    assert TOKEN not in shown
    assert SECRET not in shown
    assert "1.5" in shown
