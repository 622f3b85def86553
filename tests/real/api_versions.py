"""Records the APIs that the listeners of a real Kafka offer: `fixtures/api_versions`.

    python -m tests.real.api_versions                each release
    python -m tests.real.api_versions 4.4.0          that one

Maven fetches the jars of other releases than the newest. Brokers before 3.0 are started with
ZooKeeper, so they have no listener of a controller.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafkawire import REGISTRY
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from tests.conftest import FIXTURES

from . import zookeeper
from .broker import NODE_ID, running
from .java import KAFKA_VERSION, Installation, find_java, install
from .wire import Wire

VERSIONS: Final = ("2.8.2", "3.9.1", "4.3.1", "4.4.0")
FOLDER: Final = FIXTURES / "api_versions"
VERSION: Final = 3
"""Of ApiVersions: releases since 2.4 have it."""
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
Offered = Mapping[str, Mapping[str, str]]
"""Listener -> API -> its versions, as `0-3`."""


def path(release: str) -> Path:
    """Return the file of a release, as `4.4`."""
    return FOLDER / f"{release}.json"


def recorded(release: str) -> Offered:
    """Return what was recorded of a release."""
    offered: dict[str, dict[str, str]] = json.loads(path(release).read_text("utf-8"))["listeners"]
    return offered


def offered_on(port: int) -> dict[str, str]:
    """Return what a listener offers, by the names of the APIs."""
    request = ApiVersionsRequest(client_software_name="kafkawire", client_software_version="tests")
    with Wire(port) as wire:
        response = wire.exchange(request, VERSION, ApiVersionsResponse)
    versions = {}
    for each in sorted(response.api_keys, key=lambda each: each.api_key):
        info = REGISTRY.request(each.api_key)
        assert info is not None
        versions[info.name.removesuffix("Request")] = f"{each.min_version}-{each.max_version}"
    return versions


def record(version: str) -> Offered:
    """Start a release, and return what its listeners offer."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if version < "3":
            return {BROKER: _with_zookeeper(version, folder)}
        if version == KAFKA_VERSION:
            installation = install()
        else:
            installation = Installation(find_java(), zookeeper.fetch(version, folder))
        data = folder / "node"
        data.mkdir()
        with running(installation, data) as node:
            return {BROKER: offered_on(node.port), CONTROLLER: offered_on(node.controller_port)}


def _with_zookeeper(version: str, folder: Path) -> dict[str, str]:
    ensemble = zookeeper.Ensemble(zookeeper.fetch(version, folder), folder)
    try:
        ensemble.start_zookeeper()
        ensemble.start_broker(NODE_ID)
        return _once_up(zookeeper.BASE + 10 + NODE_ID)
    finally:
        ensemble.end()


def _once_up(port: int) -> dict[str, str]:
    deadline = time.monotonic() + zookeeper.SECONDS
    while True:
        try:
            return offered_on(port)
        except OSError:
            assert time.monotonic() < deadline, "the broker does not respond"
            time.sleep(0.3)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for version in sys.argv[1:] or VERSIONS:
        content = {"kafka": version, "listeners": record(version)}
        text = json.dumps(content, indent=2) + "\n"
        path(version.rpartition(".")[0]).write_text(text, "utf-8")
