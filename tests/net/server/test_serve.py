"""`kafkawire serve` as a command: a line per request, a capture, shutdown, usage errors."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner

from kafkawire import ApiKey
from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.capture import decode_capture
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kafkawire.net.nodes.start import Controller, NodeOptions, identity_of, new_cluster_id
from kafkawire.net.server_config import ServerConfig
from kafkawire.storage import FileDisk
from kafkawire_cli.input.node import NodeChoice, node_options
from kafkawire_cli.main import app
from tests.interop.implementations import Sasl, until
from tests.interop.implementations.ours import Ours

from ...real.wire import Wire
from .node_processes import free_ports

CERTIFICATE = str(Path(__file__).with_name("localhost.pem"))
pytestmark = pytest.mark.timeout(600)


@contextmanager
def serving(
    *arguments: str, port: Sequence[str] = ("--port", "0")
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Run the command; the ports that it listens on."""
    command = [sys.executable, "-m", "kafkawire_cli.main", "serve", *port, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or not (lines[-1].startswith("listening on ") or not lines[-1]):
            lines.append(process.stdout.readline())
        first = lines[-1]
        assert first, lines
        bootstrap = first.removeprefix("listening on ").partition(" as ")[0]
        try:
            yield process, [int(each) for each in re.findall(r":(\d+)", bootstrap)]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(240)


def test_every_request_is_a_line_and_in_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    with serving("--brokers", "2", "--topic", "orders:3", "--record", str(path)) as (
        process,
        ports,
    ):
        for port in ports:
            with Wire(port) as wire:
                response = wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
                assert len(response.topics[0].partitions) == 3
        assert process.stdout is not None
        heading, *lines = [process.stdout.readline() for _ in (0, *ports)]
    assert process.returncode == 0
    assert heading.split()[:6] == ["time", "node", "conn", "api", "ver", "corr"]
    for line in lines:
        assert "Metadata" in line
        assert "topics=orders" in line
    rows = [f.row for f in decode_capture(str(path))]
    assert [row.api_name for row in rows] == ["Metadata"] * 4


def test_every_request_to_a_node_is_a_line_unless_it_is_quiet(tmp_path: Path) -> None:
    lines = []
    for number, quiet in enumerate(((), ("--quiet",))):
        with serving("--data-dir", str(tmp_path / str(number)), *quiet) as (process, [port]):
            with Wire(port) as wire:
                wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
            process.send_signal(signal.SIGINT)
            assert process.stdout is not None
            lines.append([line for line in process.stdout if "Metadata" in line])
    assert (len(lines[0]), lines[1]) == (1, [])


@pytest.mark.parametrize("is_node", [True, False])
@pytest.mark.parametrize("error", ["", "No space left on device"])
def test_a_server_whose_lines_cannot_be_written_ends(
    tmp_path: Path, is_node: bool, error: str
) -> None:
    place = ("--data-dir", str(tmp_path / "node")) if is_node else ()
    [port] = free_ports(1)
    command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--port", str(port), *place]
    with contextlib.ExitStack() as opened:
        if error:
            out: IO[bytes] | int = opened.enter_context(open("/dev/full", "wb"))
        else:
            out = subprocess.PIPE
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        opened.enter_context(process)
        if process.stdout is not None:
            process.stdout.readline()
            process.stdout.close()
            if not is_node:
                with Wire(port) as wire:
                    wire.send(MetadataRequest(topics=None), 9)
        assert process.stderr is not None
        shown = process.stderr.read().decode()
    assert process.returncode == (2 if error else 0)
    assert error in shown
    assert (not shown) is (not error)
    assert "Traceback" not in shown


def test_it_emulates_the_given_release() -> None:
    with (
        serving("--release", "2.8", "--set", "num.partitions=3") as (_, [port]),
        Wire(port) as wire,
    ):
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        offered = wire.exchange(request, 3, ApiVersionsResponse).api_keys
        metadata = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        [topic] = wire.exchange(metadata, 9, MetadataResponse).topics
    found = {ApiKey(each.api_key): (each.min_version, each.max_version) for each in offered}
    assert found == {
        key: tuple(versions)
        for key, versions in supported_apis("2.8", served_on(Listener.BROKER)).listed.items()
    }
    assert len(topic.partitions) == 3


ADD_SCRAM = "SCRAM-SHA-256=[name=alice,password=secret]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--topic", "a:x"), "invalid number of partitions 'x'"),
        (("--topic", "a b"), "Topic name is invalid"),
        (("--release", "0.7"), "unknown release"),
        (("--set", "num.partitions=x"), "num.partitions"),
        (("--set", "no.such.key=1"), "no.such.key"),
        (("--user", "alice"), "NAME:PASSWORD"),
        (("--tls", "/no/such.pem"), "/no/such.pem"),
        (("--record", "/no/such/dir.pcap"), "/no/such/dir.pcap"),
        (("--node-id", "2"), "only allowed with --data-dir"),
        (("--controllers", "1@localhost:9093"), "only allowed with --data-dir"),
        (("--data-dir", "d", "--controllers", "1@a:9093,b:9093"), "expected ID@HOST:PORT"),
        (("--cluster-id", "c"), "only allowed with --data-dir"),
        (("--data-dir", "d", "--controllers", "1@localhost"), "expected host:port"),
        (("--data-dir", "d", "--controllers", "1@a:1,1@b:2"), "node 1 twice"),
        (("--data-dir", "d", "--data-dir", "./d"), "the same directory twice"),
        (("--data-dir", "d", "--set", "log.dirs=a,b"), "log.dirs is set by --data-dir"),
        (("--data-dir", "d", "--brokers", "2"), "a process with --data-dir is one node"),
        (("--data-dir", "d", "--release", "0.7"), "unknown release"),
        (("--add-scram", ADD_SCRAM), "only allowed with --data-dir"),
        (("--data-dir", "d", "--add-scram", "alice:secret"), "expected MECHANISM=[name=NAME"),
        (("--data-dir", "d", "--release", "3.4", "--add-scram", ADD_SCRAM), "release 3.4 has no"),
        (("--data-dir", "/dev/null/d"), "/dev/null/d: Not a directory"),
    ],
)
def test_usage_errors(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_controllers_without_ids_are_numbered(tmp_path: Path) -> None:
    choice = NodeChoice([tmp_path], 2, "a:1, b:2,[::1]:3", "c")
    options = node_options(choice, ServerConfig(ports=[0]))
    assert options.controllers == (
        Controller(1, "a", 1),
        Controller(2, "b", 2),
        Controller(3, "::1", 3),
    )
    assert (options.node_id, options.cluster_id) == (2, "c")


def test_a_new_cluster_has_a_random_id_which_its_nodes_share(tmp_path: Path) -> None:
    ids = iter([bytes(16), bytes(15) + b"1"])
    alone = NodeOptions(None, (tmp_path,))
    disk = FileDisk(tmp_path)
    first, second = (identity_of(alone, disk, ids.__next__) for _ in range(2))
    assert first != second
    quorum = (Controller(1, "a", 1), Controller(2, "b", 2))
    shared = new_cluster_id(quorum, ids.__next__)
    assert shared == new_cluster_id(quorum[::-1], ids.__next__)
    assert shared != new_cluster_id((*quorum, Controller(3, "c", 3)), ids.__next__)
    chosen = replace(alone, node_id=2, controllers=quorum, cluster_id="c")
    assert identity_of(chosen, disk, ids.__next__) == (2, "c")


def test_a_node_is_described_as_it_starts_and_stops_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    with serving("--data-dir", str(folder), "--quiet") as (process, [port]):
        with Wire(port) as wire:
            response = wire.exchange(MetadataRequest(topics=None), 9, MetadataResponse)
            assert [each.node_id for each in response.brokers] == [1]
        used = CliRunner().invoke(app, ["serve", "--data-dir", str(folder), "--port", "0"])
        assert (used.exit_code, used.output) == (
            2,
            f"kafkawire serve: log directory '{folder}' is in use by another process: "
            ".lock is locked\n",
        )
    assert process.returncode == 0
    with serving("--data-dir", str(folder), "--quiet") as (again, _):
        pass
    assert again.returncode == 0
    other = CliRunner().invoke(
        app, ["serve", "--data-dir", str(folder), "--port", "0", "--node-id", "2"]
    )
    assert other.exit_code == 2
    assert "is of node 1" in other.output


def test_topics_of_a_node_are_created_once(tmp_path: Path) -> None:
    arguments = ("--data-dir", str(tmp_path), "--topic", "orders:3", "--topic", "other", "--quiet")
    ids = set()
    for _ in range(2):
        with serving(*arguments) as (_, [port]), Wire(port) as wire:

            def topics(wire: Wire = wire) -> dict[str | None, MetadataResponseTopic]:
                found = wire.exchange(MetadataRequest(topics=None), 10, MetadataResponse).topics
                return {each.name: each for each in found}

            until(lambda: topics().keys() == {"orders", "other"})
            assert len(topics()["orders"].partitions) == 3
            ids.add(topics()["orders"].topic_id)
    assert len(ids) == 1


def test_a_node_with_a_user_and_tls(tmp_path: Path) -> None:
    secured = ("--user", "alice:secret", "--tls", CERTIFICATE, "--topic", "t", "--quiet")
    with serving("--data-dir", str(tmp_path), *secured) as (_, [port]):
        sasl = Sasl("SCRAM-SHA-512", "alice", "secret", CERTIFICATE)
        Ours().produce(f"127.0.0.1:{port}", "t", [b"a"], sasl=sasl)


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        port, free = taken.getsockname()[1], other.getsockname()[1]
        other.close()
        node = ("--data-dir", str(tmp_path), "--controllers")
        for arguments in (
            ("--port", str(port)),
            ("--port", str(port), "--data-dir", str(tmp_path)),
            ("--port", "0", *node, f"127.0.0.1:{port}"),
        ):
            result = CliRunner().invoke(app, ["serve", *arguments])
            expected = f"kafkawire serve: 127.0.0.1:{port}: Address already in use\n"
            assert (result.exit_code, result.output) == (2, expected)
        both = CliRunner().invoke(app, ["serve", "--port", str(free), *node, f"127.0.0.1:{free}"])
    assert both.exit_code == 2
    assert f"127.0.0.1:{free}: port of clients (--port)" in both.output
    assert "node 1 in --controllers" in both.output


LISTENERS = ("--set", "listeners=PLAINTEXT://:0,SASL_SSL://:0")


@pytest.mark.parametrize("is_node", [False, True])
def test_listeners_with_protocols_of_their_own(tmp_path: Path, is_node: bool) -> None:
    place = ("--data-dir", str(tmp_path)) if is_node else ()
    secured = ("--user", "alice:secret", "--tls", CERTIFICATE, "--topic", "t", "--quiet")
    with serving(*place, *LISTENERS, *secured, port=()) as (_, [plain, secure]):
        sasl = Sasl("PLAIN", "alice", "secret", CERTIFICATE)
        for port, credentials in ((plain, None), (secure, sasl)):
            Ours().produce(f"127.0.0.1:{port}", "t", [b"a"], sasl=credentials)


def test_a_node_that_restarts_has_the_listeners_that_it_had(tmp_path: Path) -> None:
    public, inside, quorum = free_ports(3)
    settings = {
        "listeners": f"PUBLIC://:{public},INSIDE://:{inside},QUORUM://0.0.0.0:{quorum}",
        "listener.security.protocol.map": "PUBLIC:SASL_PLAINTEXT,INSIDE:PLAINTEXT,QUORUM:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "controller.listener.names": "QUORUM",
    }
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    node = ("--data-dir", str(tmp_path), "--controllers", f"127.0.0.1:{quorum}")
    credentials = ("--user", "alice:secret", "--topic", "t", "--quiet")
    for _ in range(2):
        with serving(*node, *options, *credentials, port=()) as (_, ports):
            assert ports == [public, inside]
            sasl = Sasl("PLAIN", "alice", "secret")
            Ours().produce(f"127.0.0.1:{public}", "t", [b"a"], sasl=sasl)
            Ours().produce(f"127.0.0.1:{inside}", "t", [b"a"])


def test_a_broker_alone_has_no_listener_of_controllers(tmp_path: Path) -> None:
    options = ("--node-id", "4", "--controllers", "127.0.0.1:1", "--data-dir", str(tmp_path))
    listeners = ("--set", "listeners=PLAINTEXT://:0,CONTROLLER://:0")
    result = CliRunner().invoke(app, ["serve", *options, *listeners])
    assert result.exit_code == 2
    assert "listeners: CONTROLLER: node 4 is not a controller" in result.output
    result = CliRunner().invoke(app, ["serve", *options, "--port", "0", "--add-scram", ADD_SCRAM])
    assert result.exit_code == 2
    assert "--add-scram: node 4 is not a controller" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*LISTENERS, "--port", "9092"), "Invalid value for --port"),
        (LISTENERS, "ssl.keystore.location: listener SASL_SSL has TLS"),
        (("--set", "listeners=PLAINTEXT://:0", "--user", "a:b"), "Invalid value for --user"),
        (("--set", "listeners=PLAINTEXT://:0", "--tls", CERTIFICATE), "Invalid value for --tls"),
        (("--set", "listeners=:9092"), "listeners: invalid listener"),
        (("--set", "listeners=A://:9092"), "listener.security.protocol.map"),
        (("--set", "inter.broker.listener.name=SSL"), "inter.broker.listener.name: no listener"),
        (
            (
                "--set",
                "listeners=PLAINTEXT://:0",
                "--set",
                "listener.name.ssl.ssl.client.auth=none",
            ),
            "listeners has no listener SSL",
        ),
        (
            ("--brokers", "2", "--set", "listeners=PLAINTEXT://:0,CONTROLLER://:0"),
            "the controller of several brokers in memory has no port",
        ),
        (("--set", "advertised.listeners=PLAINTEXT://0.0.0.0:1"), "cannot connect to 0.0.0.0"),
        (
            ("--tls", CERTIFICATE, "--set", f"ssl.keystore.location={CERTIFICATE}"),
            "Invalid value for --tls",
        ),
        (
            (*LISTENERS, "--tls", CERTIFICATE, "--set", "ssl.truststore.location=/no/such.pem"),
            "/no/such.pem: No such file",
        ),
    ],
)
def test_listeners_that_are_not_possible(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["serve", *arguments], env={"COLUMNS": "500"})
    assert result.exit_code == 2
    assert message in result.output
