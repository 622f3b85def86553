"""Nodes that are to stop while their controllers are gone."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.net.server.node_processes import HOST, NodeProcess, free_ports

pytestmark = pytest.mark.timeout(120)
LONG = ("--set", "broker.session.timeout.ms=600000")


def test_the_first_signal_says_what_a_node_waits_for_and_the_second_ends_it(tmp_path: Path) -> None:
    ports = free_ports(4)
    controllers = f"{HOST}:{ports[2]},{HOST}:{ports[3]}"
    made = [NodeProcess(id, tmp_path / str(id), ports[id - 1], controllers) for id in (1, 2)]
    pipe = subprocess.PIPE
    first, second = (
        subprocess.Popen(
            [word for word in node.command if word != "--quiet"] + [*LONG],
            cwd=ROOT,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for node in made
    )
    try:
        assert first.stdout is not None
        assert first.stderr is not None
        assert any(line.startswith("listening on ") for line in iter(first.stdout.readline, ""))
        second.kill()  # there is no quorum now
        second.communicate()
        first.send_signal(signal.SIGTERM)
        assert "waits for a controller" in first.stderr.readline()
        first.send_signal(signal.SIGTERM)
        lines, errors = first.communicate()
        assert (first.returncode, errors) == (0, "")
        assert "PendingControlledShutdown" in lines
        assert "ShuttingDown" not in lines  # it did not go on in order
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()
