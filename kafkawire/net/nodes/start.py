"""Prepares what a node needs before it starts: its configuration, its sockets, its directory.

A port is bound before the node knows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from errno import EADDRINUSE
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import NAMESPACE_DNS, uuid5

from ...node import NodeConfig
from ...node.front.options import FrontOptions
from ...node.properties import CONTROLLER, Identity, broker_listeners, node_config
from ...protocol.json_form import uuid_text
from ...raft import Endpoint, ReplicaKey, Voter, VoterSet
from ...storage import FileDisk
from ...storage.formats import MetaProperties, read_meta_properties
from ..brokers.shell import bound
from ..server_config import DEFAULT, ServerConfig, client_listener

if TYPE_CHECKING:
    import socket

LOG_DIRS: Final = "log.dirs"


class Controller(NamedTuple):
    """A voter of the quorum, and where it listens. port 0: any."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a node is started with.

    node_id, cluster_id: None for those of the directory; in an empty one 1, and `new_cluster_id`.
    data_directories: the first has the metadata log, too. config: of one broker; its port is that
    of clients: where they have SASL, TLS or an older release, brokers reach each other on another,
    on any port.
    controllers: () for this node alone, on any port.
    """

    node_id: int | None
    data_directories: tuple[Path, ...]
    config: ServerConfig = DEFAULT
    controllers: tuple[Controller, ...] = ()
    cluster_id: str | None = None

    @property
    def client_listener(self) -> str:
        """The name of the listener of clients."""
        return client_listener(self.config)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node that may be started. resources: what is open until it has stopped."""

    options: NodeOptions
    config: NodeConfig
    disks: Mapping[str, FileDisk]
    sockets: dict[str, socket.socket]
    resources: ExitStack


def prepare(options: NodeOptions, new_uuid: Callable[[], bytes]) -> Prepared:
    """Read whose the directories are, and bind the ports. Raises OSError, CorruptFile.

    An OSError of a port has the address as its filename.
    """
    served = options.config
    with ExitStack() as resources:
        disks = {str(each): FileDisk(each) for each in options.data_directories}
        identity = identity_of(options, disks[str(options.data_directories[0])], new_uuid)
        sockets = {}
        for name in broker_listeners(options.client_listener, served.release):
            port = next(iter(served.ports), 0) if name == options.client_listener else 0
            sockets[name] = bound(served.host, port)
            resources.callback(sockets[name].close)
        voters = []
        for each in options.controllers or (Controller(identity.node_id, served.host, 0),):
            port = each.port
            if each.node_id == identity.node_id:
                sockets[CONTROLLER] = _bound_controller(each, sockets[options.client_listener])
                resources.callback(sockets[CONTROLLER].close)
                port = sockets[CONTROLLER].getsockname()[1]
            voters.append(each._replace(port=port))
        settings = {**served.settings, LOG_DIRS: ",".join(disks)}
        config = node_config(
            identity,
            settings,
            voter_set(voters),
            endpoints_of(sockets),
            int(time.time() * 1000),
            bounds=served.bounds,
            release=served.release,
        )
        return Prepared(options, config, disks, sockets, resources.pop_all())
    raise AssertionError("unreachable")


def _bound_controller(controller: Controller, clients: socket.socket) -> socket.socket:
    """Bind the port of a controller; the error says if clients of the same node have it."""
    try:
        return bound(controller.host, controller.port)
    except OSError as error:
        if error.errno != EADDRINUSE or controller.port != clients.getsockname()[1]:
            raise
        number = controller.node_id
        reason = f"port of clients (--port), and also of node {number} in --controllers"
        raise OSError(error.errno, reason, error.filename) from None


def front_options(config: ServerConfig) -> FrontOptions:
    """Return what a node serves its clients with."""
    return FrontOptions(config.passwords, config.topics)


def identity_of(options: NodeOptions, disk: FileDisk, new_uuid: Callable[[], bytes]) -> Identity:
    """Return the id and the cluster of a node: those of its directory, if it was used before."""
    meta = read_meta_properties(disk)
    if meta is None:
        meta = MetaProperties(new_cluster_id(options.controllers, new_uuid), 1, None)
    return Identity(
        meta.node_id if options.node_id is None else options.node_id,
        meta.cluster_id if options.cluster_id is None else options.cluster_id,
    )


def new_cluster_id(controllers: Sequence[Controller], new_uuid: Callable[[], bytes]) -> str:
    """Return the id of a new cluster: random, or that of all nodes with these controllers."""
    if not controllers:
        return uuid_text(new_uuid())
    quorum = ",".join(f"{each.node_id}@{each.host}:{each.port}" for each in sorted(controllers))
    return uuid_text(uuid5(NAMESPACE_DNS, quorum).bytes)


def voter_set(controllers: Iterable[Controller]) -> VoterSet:
    """Return the voters of a quorum."""
    return VoterSet(
        tuple(
            Voter(ReplicaKey(each.node_id), (Endpoint(CONTROLLER, each.host, each.port),))
            for each in controllers
        )
    )


def endpoints_of(sockets: Mapping[str, socket.socket]) -> list[Endpoint]:
    """Return the addresses of bound sockets, by the names of their listeners."""
    return [Endpoint(name, *each.getsockname()[:2]) for name, each in sockets.items()]
