"""Options of Java's login module for tokens without a signature."""

from __future__ import annotations

import pytest

from kafkawire.broker.security.jwt import parse
from kafkawire.client.unsecured_login import unsecured_login

NOW = 1_000.5


def test_options_become_claims_and_extensions() -> None:
    login = unsecured_login(
        {
            "unsecuredLoginStringClaim_name": "alice",
            "unsecuredLoginPrincipalClaimName": "name",
            "unsecuredLoginNumberClaim_level": "7",
            "unsecuredLoginListClaim_scope": "|read|write",
            "unsecuredLoginListClaim_empty": "",
            "unsecuredLoginLifetimeSeconds": "60",
            "unsecuredLoginExtension_logicalCluster": "lkc-1",
            "unsecuredValidatorRequiredScope": "read",
        }
    )
    token = login.token(NOW)
    header, claims, is_signed = parse(token.value)
    assert (header, is_signed) == ({"alg": "none"}, False)
    assert claims == {
        "name": "alice",
        "level": 7,
        "scope": ["read", "write"],
        "empty": [],
        "iat": NOW,
        "exp": NOW + 60,
    }
    assert token.expires_at == NOW + 60
    assert token.extensions == {"logicalCluster": "lkc-1"}
    assert unsecured_login({"unsecuredLoginStringClaim_sub": "a"}).lifetime_s == 3600


def test_a_token_is_not_issued_later_than_a_clock_of_milliseconds_shows() -> None:
    token = unsecured_login({"unsecuredLoginStringClaim_sub": "a"}).token(1_000.4567)
    assert parse(token.value)[1]["iat"] == 1_000.456


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "expected unsecuredLoginStringClaim_sub"),
        ({"unsecuredLoginStringClaim_sub": " "}, "expected unsecuredLoginStringClaim_sub"),
        ({"unsecuredLoginNumberClaim_sub": "1"}, "expected unsecuredLoginStringClaim_sub"),
        ({"unsecuredLoginNumberClaim_a": "x"}, "NumberClaim_a: expected a number"),
        ({"unsecuredLoginNumberClaim_a": "nan"}, "NumberClaim_a: expected a number"),
        ({"unsecuredLoginStringClaim_": "x"}, "a claim twice, or without a name"),
        ({"unsecuredLoginStringClaim_exp": "9"}, "a claim twice, or without a name"),
        (
            {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginListClaim_sub": ",b"},
            "ListClaim_sub: a claim twice",
        ),
        (
            {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "0"},
            "LifetimeSeconds: expected more than 0",
        ),
    ],
)
def test_options_that_are_not_valid(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unsecured_login(options)
