"""A cluster that cannot be reached, or is spoken to in the wrong way, is named in words."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.cli.verbs.test_live import ran_alone
from tests.client.net.test_tls import made

pytestmark = pytest.mark.timeout(120)


class Listeners(NamedTuple):
    """A broker's address for each way to speak to it, and one where nobody listens."""

    nobody: str
    plain: str
    sasl: str
    tls: str


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    certificate, key = made(tmp_path_factory.mktemp("tls"), "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    sasl = ServerConfig(
        settings={"sasl.enabled.mechanisms": "PLAIN"}, passwords={"alice": "secret"}
    )
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerThread(config)).bootstrap
            for config in (ServerConfig(), sasl, ServerConfig(tls=context))
        ]
        yield Listeners("localhost:1", *servers)


SASL = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=alice", "-X", "sasl.password=secret")
CASES = {
    "down": ("nobody", (), "connection refused"),
    "plaintext to TLS": ("tls", (), "does the broker expect TLS"),
    "plaintext to SASL": ("sasl", (), "does it require SASL"),
    "TLS to plaintext": ("plain", ("-X", "security.protocol=SSL"), "expect PLAINTEXT"),
    "SASL to plaintext": (
        "plain",
        ("-X", "security.protocol=SASL_PLAINTEXT", *SASL),
        "does not use SASL",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "verb",
    [("topics",), ("cluster",), ("conformance",), ("fuzz",), ("consume", "t"), ("produce", "t")],
)
def test_the_cause_is_named(listeners: Listeners, verb: tuple[str, ...], case: str) -> None:
    listener, options, words = CASES[case]
    address = getattr(listeners, listener)
    code, _, stderr = ran_alone(*verb, "-b", address, *options, given="value\n")
    assert code == 1
    assert words in stderr
    assert "timed out" not in stderr  # it is known before any timeout of a call


def test_a_broker_that_is_slow_at_first_is_waited_for() -> None:
    """As long as a packet that is lost takes until it is sent again."""
    with ServerThread(ServerConfig(topics={"slow": 1})) as server:
        server.fault("ApiVersions", action="delay", delay=2.0, nth=1)
        done = run("topics", "-b", server.bootstrap)
    assert done.exit_code == 0, done.stderr
    assert "slow" in done.stdout


def test_an_unknown_host_is_named() -> None:
    shown = run("topics", "-b", "no-such-host.invalid")
    assert "no-such-host.invalid:9092: unknown host" in shown.stderr
