"""Runs one node for `serve`: until it is interrupted, or cannot go on.

The first signal lets the node stop in order, the second one ends it at once. A node that waits
for a controller to stop says so.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

import typer

from ..notes import print_note
from ..render.request_lines import RequestLines

if TYPE_CHECKING:
    from kafkawire.broker.faults import Fault
    from kafkawire.net.brokers.recording import Recording
    from kafkawire.net.brokers.shell import Observers
    from kafkawire.net.nodes.server import NodeServer, TopicName
    from kafkawire.net.nodes.start import NodeOptions, Prepared
    from kafkawire.node.front.front import Effect

FAILED: Final = 1
WAITING_SECONDS: Final = 1.0
"""How long after the first signal a node says what it waits for."""


def run_node(
    options: NodeOptions, faults: Sequence[Fault], recording: Recording | None, quiet: bool
) -> None:
    """Run a node. Exits with 1 if it fails, with 2 if it cannot start."""
    from kafkawire.net.brokers.shell import random_uuid
    from kafkawire.net.nodes.start import prepare
    from kafkawire.storage import CorruptFile

    try:
        prepared = prepare(options, partial(random_uuid, random.SystemRandom()))
    except (OSError, CorruptFile, ValueError) as error:
        fail(error)
    with prepared.resources:
        asyncio.run(_run(prepared, faults, recording, quiet))


def observers(recording: Recording | None, lines: RequestLines | None) -> Observers:
    """Return what prints a line for each request, unless there is None to do so, and records."""
    from kafkawire.net.brokers.shell import Observers

    if lines is None:
        return Observers(recording=recording)
    return Observers(lines.report, lines.close, recording)


def listening(servers: Mapping[str, str]) -> str:
    """Return where clients connect, with the names of the listeners if there are several.

    servers: listener -> its bootstrap servers.
    """
    if len(servers) == 1:
        return next(iter(servers.values()))
    return " ".join(f"{name}://{each}" for name, each in servers.items())


def fail(error: Exception) -> NoReturn:
    """End because of an error at the start, which names the file or the address."""
    text = getattr(error, "strerror", None) or str(error)
    path = getattr(error, "filename", None)
    text = text if path is None else f"{path}: {text}"
    print_note(str(text))
    raise typer.Exit(2) from None


async def _run(
    prepared: Prepared, faults: Sequence[Fault], recording: Recording | None, quiet: bool
) -> None:
    from kafkawire.errors import KafkaWireError
    from kafkawire.net.nodes.server import NodeServer
    from kafkawire.net.nodes.start import front_options
    from kafkawire.storage import StorageError

    lines = RequestLines()
    try:
        server = NodeServer(
            prepared.config,
            prepared.disks,
            prepared.sockets,
            observers=observers(recording, None if quiet else lines),
            on_effect=None if quiet else partial(_print_effect, lines),
            front=front_options(prepared.options.config),
            tls=prepared.tls,
            peer_tls=prepared.peer_tls,
        )
    except (StorageError, KafkaWireError, OSError) as error:
        fail(error)
    server.faults.extend(faults)
    _shut_down_when_due(server, lines)
    try:
        await server.start()
        if await server.serving():
            addresses = listening(prepared.clients)
            print(f"listening on {addresses} as node {prepared.config.node_id}", flush=True)
        stopped = await server.stopped
    except OSError as error:
        fail(error)
    finally:
        await server.close()
    if stopped.failure is not None:
        print_note(str(stopped.failure))
        raise typer.Exit(FAILED)
    lines.check()


def _shut_down_when_due(server: NodeServer, lines: RequestLines) -> None:
    """Shut down at a signal, and when lines cannot be written: then an event is being handled."""
    for number in (signal.SIGINT, signal.SIGTERM):
        server.loop.add_signal_handler(number, _shut_down, server)
    lines.on_failure = partial(server.loop.call_soon, _shut_down, server)


def _shut_down(server: NodeServer) -> None:
    server.shut_down()
    server.loop.call_later(WAITING_SECONDS, _print_waiting, server)


def _print_waiting(server: NodeServer) -> None:
    """Say that a node has not stopped yet, and why."""
    if not server.stopped.done():
        reason = "waits for a controller to move its leaders to other nodes"
        node = f"node {server.config.node_id}"
        print_note(f"{node} {reason}; a second signal ends it at once")


# over 40 lines: a case for each effect
def _print_effect(  # noqa: C901
    lines: RequestLines, effect: Effect, name_of: TopicName
) -> None:
    """Print what happens in the node itself."""
    from kafkawire import ErrorCode
    from kafkawire.node import (
        BrokerRefused,
        BrokerStateChanged,
        DirectoryFailed,
        LogRecovered,
        LogSetAside,
        PartitionDamaged,
        SegmentRolled,
    )
    from kafkawire.raft import LeaderChanged
    from kafkawire.replication import IsrChanged, ReplicaChanged

    match effect:
        case BrokerStateChanged():
            lines.event(f"broker: {effect.state.value}")
        case BrokerRefused():
            error = ErrorCode.name_of(effect.error_code)
            lines.event(f"broker: refused by the controller: {error}")
        case DirectoryFailed():
            lines.event(f"log directory {effect.directory}: {effect.reason}")
        case LogRecovered():
            size = effect.truncated_bytes
            cut = f", {size} bytes truncated" if size else ""
            lines.event(f"{effect.partition}: recovered to {effect.log_end_offset}{cut}")
        case PartitionDamaged():
            lines.event(f"{effect.partition}: damaged: {effect.reason}")
        case LogSetAside():
            name = f"{effect.directory}/{effect.folder}"
            lines.event(f"{effect.partition}: not in the metadata, kept as {name}")
        case SegmentRolled():
            lines.event(f"{effect.partition}: segment {effect.base_offset} rolled")
        case LeaderChanged():
            leader = "unknown" if effect.leader_id is None else effect.leader_id
            lines.event(f"quorum: leader {leader}, epoch {effect.epoch}")
        case ReplicaChanged():
            partition = f"{name_of(effect.key.topic_id)}-{effect.key.partition}"
            epoch = effect.leader_epoch
            lines.event(f"{partition}: {effect.state.value}, leader epoch {epoch}")
        case IsrChanged():
            partition = f"{name_of(effect.key.topic_id)}-{effect.key.partition}"
            isr = ", ".join(map(str, sorted(effect.isr)))
            lines.event(f"{partition}: in-sync replicas {isr} ({effect.state.value})")
