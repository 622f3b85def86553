"""Nodes as processes: `kafkawire serve --data-dir`, started, killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.conftest import ROOT

HOST = "127.0.0.1"
SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
}


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in bound]


class NodeProcess:
    """A node: the same directory and ports at each start."""

    def __init__(
        self, node_id: int, folder: Path, port: int, controllers: str, more: Mapping[str, str] = {}
    ) -> None:
        self.node_id = node_id
        settings = [f"--set={name}={value}" for name, value in {**SETTINGS, **more}.items()]
        self.command = [sys.executable, "-m", "kafkawire_cli.main", "serve", "--quiet"]
        self.command += ["--data-dir", str(folder), "--node-id", str(node_id)]
        self.command += ["--port", str(port), "--controllers", controllers, *settings]

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def serves(self) -> None:
        """Wait until it listens."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("listening on ")

    def kill(self) -> None:
        """End it, if it runs."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


@contextmanager
def nodes(
    folder: Path, count: int, settings: Mapping[str, str] = {}
) -> Iterator[tuple[str, list[NodeProcess]]]:
    """Run nodes, with more settings than `SETTINGS`; return their bootstrap servers."""
    ports = free_ports(2 * count)
    ids = range(1, count + 1)
    controllers = ",".join(f"{id}@{HOST}:{ports[count + id - 1]}" for id in ids)
    made = [NodeProcess(id, folder / str(id), ports[id - 1], controllers, settings) for id in ids]
    try:
        for each in made:
            each.start()
        for each in made:
            each.serves()
        yield ",".join(f"{HOST}:{port}" for port in ports[:count]), made
    finally:
        for each in made:
            each.kill()
