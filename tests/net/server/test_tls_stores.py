"""Key stores and trust stores that change while brokers run, in memory and as a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from kafkawire.broker.configs import Settings
from kafkawire.configs import ConfigSource
from kafkawire.net.brokers.tls_stores import ListenerTls, TlsStores
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...real.broker import CLUSTER_ID, free_ports
from ...real.own_node import serving
from ...real.test_mixed_cluster import create, in_sync, layout, produce, run
from ...real.wire import HOST
from .test_configs_beside_kafka import BROKER, described
from .tls_steps import (
    AUTHORITIES,
    INVALID,
    LOCATION,
    OF_TLS,
    Change,
    Files,
    TlsPorts,
    accepts,
    carried_out,
    certificate_at,
    is_served,
    open_tls,
)

pytestmark = pytest.mark.timeout(600)
STORE: Final = OF_TLS + LOCATION
DENIED: Final = (INVALID, True)
Start = Callable[[dict[str, str], Path], AbstractContextManager[TlsPorts]]


def keys(files: Files) -> dict[str, str]:
    return {
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,TLS:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "listener.name.tls.ssl.client.auth": "required",
        "ssl.keystore.location": files.path("static"),
        "ssl.truststore.location": files.path("static"),
    }


@contextmanager
def in_memory(
    running: type[ClusterThread | ServerThread], settings: dict[str, str]
) -> Iterator[TlsPorts]:
    listeners = {"listeners": "CLIENTS://:0,TLS://:0"}
    with running(ServerConfig(settings=settings | listeners)) as thread:
        yield TlsPorts(thread.ports("CLIENTS")[1], thread.ports("TLS")[1])


def cluster(settings: dict[str, str], _folder: Path) -> AbstractContextManager[TlsPorts]:
    return in_memory(ClusterThread, settings)


def server(settings: dict[str, str], _folder: Path) -> AbstractContextManager[TlsPorts]:
    return in_memory(ServerThread, settings)


@contextmanager
def process(settings: dict[str, str], folder: Path) -> Iterator[TlsPorts]:
    plain, tls, controller = free_ports(3)
    settings["listeners"] = f"CLIENTS://{HOST}:{plain},TLS://{HOST}:{tls}"
    with serving(folder / "data", None, f"1@{HOST}:{controller}", settings):
        yield TlsPorts(plain, tls)


@pytest.mark.parametrize("start", [cluster, server, process])
def test_new_connections_have_other_certificates(start: Start, tmp_path: Path) -> None:
    """Those that exist stay; what is not valid is refused, and changes nothing."""
    files = Files(tmp_path / "files")
    with start(keys(files), tmp_path) as ports, ExitStack() as stack:
        first, client = files.path("first"), files.path("client")
        before = open_tls(ports.tls, stack, first)
        assert is_served(before)
        for change, result in (
            (Change({STORE: "second"}, tls="second"), (0, False)),
            (Change({STORE: "another-subject"}, tls="second"), DENIED),
            (Change({STORE: "no-names"}, tls="second"), DENIED),
            (Change({STORE: "text"}, tls="second"), DENIED),
            (Change({STORE: "absent"}, tls="second"), DENIED),
            (Change({STORE: ""}, tls="second"), DENIED),
            (Change({OF_TLS + "ssl.keystore.type": "JKS"}, tls="second"), DENIED),
            (Change({OF_TLS + "ssl.keystore.password": "x"}, tls="second"), DENIED),
            (Change({OF_TLS + "ssl.key.password": "x"}, tls="second"), DENIED),
            (Change({STORE: "first"}, tls="second", name=""), DENIED),
            (Change({LOCATION: "first"}, tls="second"), DENIED),
            (Change({"listener.name.none." + LOCATION: "absent"}, tls="second"), (0, False)),
            (Change({OF_TLS + AUTHORITIES: "client"}, tls="second"), (0, False)),
        ):
            assert (change, carried_out(files, ports, change)) == (change, result)
        until(lambda: accepts(ports.tls, client))
        assert not accepts(ports.tls, first)
        assert carried_out(files, ports, Change({STORE: None})) == (0, False)
        assert is_served(before)


def test_a_key_with_a_password(tmp_path: Path) -> None:
    """Its names are those of the certificate before; the password is not shown."""
    files = Files(tmp_path / "files")
    with server(keys(files), tmp_path) as ports:
        values: dict[str, str | None] = {STORE: "locked", OF_TLS + "ssl.key.password": "hush"}
        assert carried_out(files, ports, Change(values, tls="locked")) == (0, False)
        row = described(ports.plain, BROKER, "1")[OF_TLS + "ssl.key.password"]
        assert (row.value, row.is_sensitive) == (None, True)


def test_other_subjects_and_names_may_be_allowed(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    allowed = dict.fromkeys(("ssl.allow.dn.changes", "ssl.allow.san.changes"), "true")
    with server(keys(files) | allowed, tmp_path) as ports:
        for name in ("another-subject", "more-names", "no-names"):
            assert carried_out(files, ports, Change({STORE: name}, tls=name)) == (0, False)


def test_a_file_is_read_again_with_any_change_of_the_broker(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    unrelated = {"message.max.bytes": "2000"}
    with server(keys(files), tmp_path) as ports:
        carried_out(files, ports, Change({STORE: "changing"}))
        for content, values, shown, name in (
            ("second", {STORE: "changing"}, "second", "1"),
            ("first", unrelated, "second", ""),
            ("first", unrelated, "first", "1"),
            ("text", unrelated, "first", "1"),
            ("another-subject", {STORE: "changing"}, "first", "1"),
        ):
            files.copy(content, "changing")
            change = Change(values, tls=shown, name=name)
            assert carried_out(files, ports, change) == (0, False)


def test_stores_are_those_before_after_a_restart(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    settings = keys(files)
    plain, tls, controller = free_ports(3)
    settings["listeners"] = f"CLIENTS://{HOST}:{plain},TLS://{HOST}:{tls}"
    ports = TlsPorts(plain, tls)
    for change in (Change({STORE: "second"}, tls="second"), None):
        with serving(tmp_path / "data", None, f"1@{HOST}:{controller}", settings):
            if change is not None:
                assert carried_out(files, ports, change) == (0, False)
            assert certificate_at(files, tls) == "second"


INSIDE: Final = "listener.name.inside."


def between_nodes(files: Files, certificate: str, authorities: str) -> dict[str, str]:
    return {
        "ssl.keystore.location": files.path(certificate),
        "ssl.truststore.location": files.path(authorities),
    }


def test_new_stores_follow_those_of_other_nodes(tmp_path: Path) -> None:
    """Nodes with the stores before and with those after can connect to each other."""
    files = Files(tmp_path / "files")
    before = Settings(between_nodes(files, "first", "first"))
    listener = ListenerTls(before, "INSIDE", None, connects=True, is_verified=True)
    stores = TlsStores([listener])

    def problem(**names: str) -> str | None:
        values = {
            f"{INSIDE}ssl.{store}.location": files.path(each) for store, each in names.items()
        }
        after = before.changed(ConfigSource.DYNAMIC_BROKER_CONFIG, values)
        reason = stores.problem(after, values)
        if reason is None:
            stores.renew(after)
        return reason

    for names in ({"keystore": "second"}, {"truststore": "second"}):
        assert "with the stores before could not connect" in (problem(**names) or "")
    assert "with the stores before" in (problem(keystore="second", truststore="second") or "")
    assert problem(truststore="both") is None
    assert problem(keystore="second", truststore="both") is None
    assert problem(keystore="second", truststore="second") is None


def test_a_node_connects_to_others_with_its_new_stores(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    cluster = layout(nodes=2, voters=1)
    inside = dict(zip(cluster.ports, free_ports(2), strict=True))

    def node(number: int, certificate: str, authorities: str) -> AbstractContextManager[object]:
        plain = cluster.ports[number].broker
        addresses = f"INSIDE://{HOST}:{inside[number]},PLAINTEXT://{HOST}:{plain}"
        settings = {
            "listeners": addresses,
            "listener.security.protocol.map": "INSIDE:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "ssl.endpoint.identification.algorithm": "",
            **between_nodes(files, certificate, authorities),
        }
        options = ["--node-id", str(number), "--cluster-id", CLUSTER_ID]
        return serving(tmp_path / str(number), None, cluster.controllers, settings, options)

    with node(1, "first", "first"):
        ports = TlsPorts(cluster.ports[1].broker, inside[1])
        change = Change({f"{INSIDE}{AUTHORITIES}": "both"})
        assert carried_out(files, ports, change) == (0, False)
        with node(2, "second", "both"):
            run(create(cluster))
            run(produce(cluster, "both"))
            run(in_sync(cluster))
