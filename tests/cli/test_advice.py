"""Errors of security say what to look at or change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from kafkawire import ErrorCode
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.advice import ADVICE, with_advice
from tests.cli.reports import run

SECURITY: Final = ("AUTH", "SASL", "TOKEN", "SECURITY", "PRINCIPAL", "CREDENTIAL")


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """The address of a broker with neither authorizer nor SASL."""
    with ServerThread(ServerConfig()) as server:
        yield server.bootstrap


def test_every_error_of_security_has_advice() -> None:
    names = {code for code in ErrorCode if any(word in code.name for word in SECURITY)}
    assert set(ADVICE) == names


@pytest.mark.parametrize(
    ("words", "error", "advice"),
    [
        (("tokens",), "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "connect as a user, with SASL"),
        (
            ("tokens", "--create", "--dry-run"),
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            "connect as a user",
        ),
        (("acls",), "SECURITY_DISABLED", "ACLs need authorizer.class.name"),
    ],
)
def test_a_plain_broker(plain: str, words: tuple[str, ...], error: str, advice: str) -> None:
    done = run(*words, "-b", plain)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"kafkawire {words[0]}: {error}: ")
    assert f"; {advice}" in done.stderr
    assert ".;" not in done.stderr


def test_other_errors_have_none() -> None:
    assert with_advice(ErrorCode.TOPIC_ALREADY_EXISTS, "a.") == "a."
