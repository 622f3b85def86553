"""Prepares what a node needs before it starts: its configuration, its sockets, its directory.

A port is bound before the node knows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from errno import EADDRINUSE
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import NAMESPACE_DNS, uuid5

from ...broker.configs import Settings
from ...broker.security.listeners import CONTROLLER
from ...broker.security.protocols import SecurityProtocol
from ...display import host_and_port
from ...messages.user_scram_credential_record import UserScramCredentialRecord
from ...node import NodeConfig
from ...node.front.options import FrontOptions
from ...node.properties import Identity, node_config
from ...protocol.json_form import uuid_text
from ...raft import Endpoint, ReplicaKey, Voter, VoterSet
from ...storage import FileDisk
from ...storage.formats import MetaProperties, read_meta_properties
from ..brokers.shell import bound
from ..server_config import DEFAULT, ServerConfig

if TYPE_CHECKING:
    import socket
    import ssl

    from ..listeners import ListenerPlan

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
    scram_credentials: of a controller, those that a new cluster has.
    """

    node_id: int | None
    data_directories: tuple[Path, ...]
    config: ServerConfig = DEFAULT
    controllers: tuple[Controller, ...] = ()
    cluster_id: str | None = None
    scram_credentials: tuple[UserScramCredentialRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node that may be started. resources: what is open until it has stopped."""

    options: NodeOptions
    plan: ListenerPlan
    config: NodeConfig
    disks: Mapping[str, FileDisk]
    sockets: dict[str, socket.socket]
    resources: ExitStack

    @property
    def clients(self) -> dict[str, str]:
        """Where clients reach the node by the names of its listeners, as `host:port`."""
        bound_to = ((each, self.sockets[each].getsockname()) for each in self.plan.clients)
        return {name: host_and_port(host, port) for name, (host, port, *_) in bound_to}

    @property
    def _settings(self) -> Settings:
        return Settings(self.options.config.settings)

    @property
    def tls(self) -> dict[str, ssl.SSLContext]:
        """The TLS contexts of listeners by name."""
        contexts = {each.name: each.tls for each in self.plan.listeners if each.tls is not None}
        controller = self.plan.controller
        is_new = controller in self.sockets and controller not in contexts
        if is_new and self.plan.protocols[controller].has_tls:
            from ..brokers.tls_contexts import listener_tls  # imported only with TLS

            contexts[controller] = listener_tls(self._settings, controller, self.options.config.tls)
        return contexts

    @property
    def peer_tls(self) -> dict[str, ssl.SSLContext]:
        """The TLS contexts with which the node connects to others, by their listeners."""
        names = [
            each
            for each in (self.plan.inter_broker, self.plan.controller)
            if self.plan.protocols.get(each, SecurityProtocol.PLAINTEXT).has_tls
        ]
        if not names:
            return {}
        from ..brokers.tls_contexts import peer_tls  # imported only with TLS

        return {each: peer_tls(self._settings, each) for each in names}


def prepare(options: NodeOptions, new_uuid: Callable[[], bytes]) -> Prepared:
    """Read whose the directories are, and bind the ports. Raises OSError, CorruptFile.

    An OSError of a port has the address as its filename. Raises ValueError for the listener of
    controllers, and for SCRAM credentials, on a node that is a broker alone.
    """
    served = options.config
    plan = served.listeners()
    with ExitStack() as resources:
        disks = {str(each): FileDisk(each) for each in options.data_directories}
        identity = identity_of(options, disks[str(options.data_directories[0])], new_uuid)
        sockets = {}
        for name in plan.names:
            planned = plan.listener(name, served.host)
            sockets[name] = bound(planned.host, planned.port(0))
            resources.callback(sockets[name].close)
        voters = []
        for each in options.controllers or (_alone(identity.node_id, plan, served.host),):
            port = each.port
            if each.node_id == identity.node_id:
                sockets[plan.controller] = _bound_controller(each, plan, sockets)
                resources.callback(sockets[plan.controller].close)
                port = port or sockets[plan.controller].getsockname()[1]
            voters.append(each._replace(port=port))
        if plan.has_controller and plan.controller not in sockets:
            raise ValueError(
                f"listeners: {plan.controller}: node {identity.node_id} is not a controller"
            )
        own_voters = [each for each in voters if each.node_id == identity.node_id]
        if options.scram_credentials and not own_voters:
            raise ValueError(f"--add-scram: node {identity.node_id} is not a controller")
        shown = shown_endpoints(plan, sockets, own_voters)
        own = plan.properties(endpoints_of(sockets), shown)
        settings = {**served.settings, **own, LOG_DIRS: ",".join(disks)}
        config = node_config(
            identity,
            settings,
            voter_set(voters, plan.controller),
            shown,
            bounds=served.bounds,
            release=served.release,
        )
        config = replace(config, scram_credentials=options.scram_credentials)
        return Prepared(options, plan, config, disks, sockets, resources.pop_all())
    raise AssertionError("unreachable")


def _alone(node_id: int, plan: ListenerPlan, host: str) -> Controller:
    """Return the only controller of a cluster."""
    planned = plan.listener(plan.controller, host)
    return Controller(node_id, planned.host, planned.port(0))


def _bound_controller(
    controller: Controller, plan: ListenerPlan, sockets: Mapping[str, socket.socket]
) -> socket.socket:
    """Bind the port of a controller; the error says if clients of the same node have it.

    Where its listener is configured it listens there; the other nodes know it as `controller`.
    """
    _, host, port = controller
    if plan.has_controller:
        planned = plan.listener(plan.controller, host)
        host, port = planned.host, planned.port(0) or port
    try:
        return bound(host, port)
    except OSError as error:
        clients = [each.getsockname()[1] for each in sockets.values()]
        if error.errno != EADDRINUSE or plan.is_configured or port not in clients:
            raise
        number = controller.node_id
        reason = f"port of clients (--port), and also of node {number} in --controllers"
        raise OSError(error.errno, reason, error.filename) from None


def front_options(config: ServerConfig) -> FrontOptions:
    """Return what a node serves its clients with."""
    return FrontOptions(config.passwords, config.topics, clock=time.thread_time)


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


def voter_set(controllers: Iterable[Controller], listener: str = CONTROLLER) -> VoterSet:
    """Return the voters of a quorum. listener: the name of theirs."""
    return VoterSet(
        tuple(
            Voter(ReplicaKey(each.node_id), (Endpoint(listener, each.host, each.port),))
            for each in controllers
        )
    )


def endpoints_of(sockets: Mapping[str, socket.socket]) -> list[Endpoint]:
    """Return the addresses of bound sockets, by the names of their listeners."""
    return [Endpoint(name, *each.getsockname()[:2]) for name, each in sockets.items()]


def shown_endpoints(
    plan: ListenerPlan, sockets: Mapping[str, socket.socket], voters: Iterable[Controller]
) -> list[Endpoint]:
    """Return the addresses that others are shown, by the names of the listeners.

    voters: this node, if it is one.
    """
    endpoints = {
        name: plan.listener(name, host).shown(0, host, port)
        for name, host, port in endpoints_of(sockets)
    }
    for _, host, port in voters:
        endpoints[plan.controller] = Endpoint(plan.controller, host, port)
    return list(endpoints.values())
