"""The names of subjects as Java prints them, and the rules that make principals of them."""

from __future__ import annotations

import pytest

from kafkawire.broker.security.settings import check_security
from kafkawire.broker.security.tls_principal import (
    Subject,
    distinguished_name,
    mapping_rules,
    principal_name,
)

ALICE = "CN=alice,OU=Sales,O=Acme"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ([[("commonName", "alice")]], "CN=alice"),
        (
            [[("organizationName", "Acme")], [("organizationalUnitName", "a"), ("userId", "b")]],
            "OU=a+UID=b,O=Acme",
        ),
        ([[("commonName", ' #a,b+"c\\<d>; ')]], 'CN=\\ #a\\,b\\+\\"c\\\\\\<d\\>\\;\\ '),
        ([[("commonName", "#1")]], "CN=\\#1"),
        ([[("emailAddress", "a@b")]], "1.2.840.113549.1.9.1=#1603614062"),
        ([], ""),
    ],
)
def test_a_subject_is_named_as_in_rfc_2253(subject: Subject, expected: str) -> None:
    assert distinguished_name(subject) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", ALICE),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", "alice@Sales"),
        ("RULE:^CN=(.*?),OU=Sales.*$/$1/U,DEFAULT", "ALICE"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/, RULE:^.*O=(.*)$/$1/L", "acme"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/,DEFAULT", ALICE),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/", None),
        ("RULE:CN=alice/x/", None),  # not the whole name
        ("", ALICE),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: str, expected: str | None) -> None:
    assert principal_name(mapping_rules(rules), ALICE) == expected


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("default", "invalid rule 'default'"),
        ("DEFAULT,RULE:a", "invalid rule 'RULE:a'"),
        ("RULE:(/x/", "unterminated subpattern"),
        ("RULE:a/$1/", "no such group"),
    ],
)
def test_invalid_rules_are_refused(rules: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        mapping_rules(rules)


@pytest.mark.parametrize("key", ["ssl.engine.factory.class", "listener.name.a.{}"])
def test_only_the_engine_of_kafka_is_valid(key: str) -> None:
    name = key.format("ssl.engine.factory.class")
    check_security({name: "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"})
    with pytest.raises(ValueError, match=r"ssl\.engine\.factory\.class='com\.acme\.Mine'"):
        check_security({name: "com.acme.Mine"})
