"""`kafkawire serve`: runs an in-memory Kafka cluster, or one node with its files.

One line per request when its response is sent, and one line with the reason per connection
that a broker closes.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.whole_numbers import whole_number

from ...input.names import complete_release
from ...input.node import NodeChoice, node_options
from ...input.options import pairs
from ...live.node import fail, listening, observers, run_node
from ...pipes import stop_at_closed_pipe
from ...render.request_lines import RequestLines

if TYPE_CHECKING:
    from kafkawire.broker.faults import Fault
    from kafkawire.net.brokers.recording import Recording
    from kafkawire.net.server_config import ServerConfig


PORT: Final = 9092
LISTENERS: Final = "listeners"
OPTIONS: Final = {"passwords": "--user", "tls": "--tls", "ports": "--port", "release": "--release"}
"""Field of the configuration -> the option that sets it."""
OF_KRAFT: Final = frozenset(
    {LISTENERS, "advertised.listeners", "sasl.enabled.mechanisms", "ssl.keystore.location"}
)
"""Keys that brokers with ZooKeeper do not have here."""


def serve(  # noqa: PLR0913 - options of the verb
    brokers: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="Number of brokers.")
    ] = 1,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PARTITIONS]", help="Create this topic; repeatable."),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="Kafka release to emulate, such as 2.8, or all [default: 4.4].",
            show_default=False,
            autocompletion=complete_release,
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the first broker; 0: any. A node has another port in --controllers. "
            "Several listeners: --set listeners= [default: 9092].",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Broker configuration property; repeatable."
        ),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:PASSWORD",
            help="Require SASL (PLAIN, SCRAM) and add this user; repeatable.",
        ),
    ] = None,
    tls: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Listen with TLS: file with certificate and key."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Make requests fail: an API and nth=, probability=, error=, delay=, ..., and "
            "action=, which is error, delay, drop, truncate, corrupt or disconnect; repeatable.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.pcap",
            help="Record the traffic, including passwords, in a capture (mode 0600).",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not print requests.")] = False,
    node: NodeChoice = NodeChoice(),  # noqa: B008 - a constant
) -> None:
    """Run a Kafka cluster in memory, or a node with files.

    \b
    kafkawire serve --topic orders:6
    kafkawire serve --brokers 3 --release 2.8 --set group.initial.rebalance.delay.ms=0
    kafkawire serve --user alice:secret --record talk.pcap
    kafkawire serve --fault 'Produce nth=3 action=disconnect' --fault 'Fetch error=NOT_CONTROLLER'
    kafkawire serve --data-dir node-1

    Prints a line per request. Exit codes: 1 node failed, 2 usage error.
    """
    is_node = any(each not in (None, []) for each in node)
    if is_node:
        _refuse_of_node(brokers)
    config = _config(brokers, topic or [], release, host, port, setting or [], user or [], tls)
    faults = [_fault(each, config) for each in fault or []]
    if is_node:
        run_node(node_options(node, config), faults, _recording(record), quiet)
        return
    recording = _recording(record)
    with stop_at_closed_pipe():
        asyncio.run(_serve(config, recording, quiet, faults))


def _config(
    brokers: int,
    topics: list[str],
    release: str | None,
    host: str,
    port: int | None,
    settings: list[str],
    users: list[str],
    tls: Path | None,
) -> ServerConfig:
    from kafkawire.broker.releases import LATEST, versions_of, with_zookeeper
    from kafkawire.net.listeners import check_authentication
    from kafkawire.net.server_config import ServerConfig

    values = _settings(settings)
    if tls is not None:
        values |= _tls(tls, values)
    if port is None and LISTENERS not in values:
        port = PORT
    passwords = pairs(users, "--user", "NAME:PASSWORD")
    try:
        versions_of(release or LATEST)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--release") from None
    try:
        config = ServerConfig(
            brokers=brokers,
            topics=dict(_topic(each) for each in topics),
            host=host,
            ports=[] if port is None else [port + at if port else 0 for at in range(brokers)],
            release=release or LATEST,
            settings=values,
            passwords=passwords,
            zookeeper=release in with_zookeeper() and not passwords and OF_KRAFT.isdisjoint(values),
        )
        check_authentication(config.listeners(), passwords=passwords, tls=tls)
        return config
    except ValueError as error:
        field, _, reason = str(error).partition(": ")
        raise typer.BadParameter(reason, param_hint=OPTIONS.get(field, "--set")) from None


def _settings(texts: list[str]) -> dict[str, str]:
    from kafkawire.broker.configs import Settings
    from kafkawire.broker.security.settings import check_security

    values = pairs(texts, "--set")
    try:
        Settings(values)
        check_security(values)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None
    return values


def _refuse_of_node(brokers: int) -> None:
    """Fail if an option is given that only a cluster in memory has."""
    if brokers > 1:
        reason = "a process with --data-dir is one node; start one for each of --controllers"
        raise typer.BadParameter(reason, param_hint="--brokers")


def _topic(text: str) -> tuple[str, int]:
    from kafkawire.configs.topic_names import topic_name_error

    name, colon, count = text.partition(":")
    reason = topic_name_error(name)
    if reason is not None:
        raise typer.BadParameter(reason, param_hint="--topic")
    partitions = whole_number(count, 10_000) if colon else 1
    if not partitions:
        raise typer.BadParameter(
            f"invalid number of partitions {count!r}: expected 1 to 10000", param_hint="--topic"
        )
    return name, partitions


def _tls(pem: Path, settings: dict[str, str]) -> dict[str, str]:
    """Return the key for which the option stands. settings: what is set besides."""
    from kafkawire.broker.configs import Settings
    from kafkawire.net.brokers.tls_contexts import KEY_PASSWORD, KEYSTORE, load_certificate

    if KEYSTORE in settings:
        raise typer.BadParameter(f"not allowed together with {KEYSTORE}", param_hint="--tls")
    try:
        load_certificate(str(pem), Settings(settings).text(KEY_PASSWORD))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tls") from None
    return {KEYSTORE: str(pem)}


def _recording(path: Path | None) -> Recording | None:
    if path is None:
        return None
    from kafkawire.net.brokers.recording import Recording

    try:
        return Recording(path)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--record") from None


def _fault(text: str, config: ServerConfig) -> Fault:
    from kafkawire.broker.apis import client_apis
    from kafkawire.broker.faults import Fault

    try:
        fault = Fault.parse(text)
        fault.check_served(client_apis(config.release, config.zookeeper))
        return fault
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint="--fault") from None


async def _serve(
    config: ServerConfig, recording: Recording | None, quiet: bool, faults: list[Fault]
) -> None:
    from kafkawire.net.server import Server

    lines = RequestLines()
    try:
        server = Server(config, observers(recording, None if quiet else lines))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    lines.on_failure = stopped.set
    try:
        await server.start()
    except OSError as error:
        fail(error)
    server.faults.extend(faults)
    servers = {each: server.bootstrap_servers(each) for each in server.plan.clients}
    print(f"listening on {listening(servers)} as Kafka {config.release}", flush=True)
    try:
        await stopped.wait()
    finally:
        await server.close()
    lines.check()
