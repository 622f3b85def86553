"""Key stores and trust stores that change while brokers run: a real Apache Kafka and our node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from tests.interop.implementations import until

from ...real.broker import Broker, free_ports
from ...real.java import Installation
from ...real.own_node import serving
from ...real.wire import HOST
from .test_configs_beside_kafka import BROKER, described, kinds, values
from .tls_steps import (
    AUTHORITIES,
    INVALID,
    LOCATION,
    OF_CONTROLLER,
    OF_INSIDE,
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

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
PROTOCOLS: Final = "CLIENTS:PLAINTEXT,TLS:SSL,INSIDE:SSL,NAMES:SSL,CONTROLLER:SSL"

REAL: Final = {"authorizer.class.name": "", "num.network.threads": "1"}
"""Each thread has contexts of its own."""


def keys(files: Files, ports: TlsPorts) -> dict[str, str]:
    """The keys of a broker, which are the same for Kafka and ours."""
    names = ("CLIENTS", "TLS", "INSIDE", "NAMES")
    addresses = ",".join(
        f"{name}://{HOST}:{port}" for name, port in zip(names, ports[:4], strict=True)
    )
    return {
        "listeners": f"{addresses},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": addresses,
        "listener.security.protocol.map": PROTOCOLS,
        "inter.broker.listener.name": "INSIDE",
        "listener.name.tls.ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.path("static"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.path("static"),
    }


@pytest.fixture(scope="module")
def both(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]]]:
    """The files and the ports of the real broker and of a node of ours."""
    folder = tmp_path_factory.mktemp("tls-stores")
    (files, ports), (own_files, own_ports) = (
        (Files(folder / name), TlsPorts(*free_ports(5))) for name in ("files", "own-files")
    )
    (folder / "kafka").mkdir()
    real = Broker(installation, folder / "kafka", ports.plain, 0, ports.controller)
    controllers = f"1@{HOST}:{own_ports.controller}"
    settings = keys(own_files, own_ports)
    try:
        real.format({**REAL, **keys(files, ports)})
        real.start()
        with serving(folder / "ours", None, controllers, settings, ["--node-id", "1"]):
            yield (files, ports), (own_files, own_ports)
    finally:
        real.stop()


STORE: Final = OF_TLS + LOCATION
INSIDE: Final = OF_INSIDE + LOCATION
STEPS: Final[dict[str, Change]] = {
    "a certificate": Change({STORE: "second"}, tls="second"),
    "for all brokers": Change({STORE: "first"}, INVALID, tls="second", name=""),
    "of all listeners": Change({LOCATION: "first"}, INVALID, tls="second"),
    "of all listeners, for all brokers": Change({LOCATION: "first"}, INVALID, "second", name=""),
    "another subject": Change({STORE: "another-subject"}, INVALID, tls="second"),
    "fewer names": Change({STORE: "no-names"}, INVALID, tls="second"),
    "no such file": Change({STORE: "absent"}, INVALID, tls="second"),
    "no file": Change({STORE: ""}, INVALID, tls="second"),
    "no certificate": Change({STORE: "text"}, INVALID, tls="second"),
    "without its password": Change({STORE: "locked"}, INVALID, tls="second"),
    "with another password": Change(
        {STORE: "locked", OF_TLS + "ssl.key.password": "x"}, INVALID, tls="second"
    ),
    "a password of a key without one": Change(
        {OF_TLS + "ssl.key.password": "x"}, INVALID, tls="second"
    ),
    "a password of a file": Change({OF_TLS + "ssl.keystore.password": "x"}, INVALID, tls="second"),
    "a password of authorities": Change(
        {OF_TLS + "ssl.truststore.password": "x"}, INVALID, tls="second"
    ),
    "another format": Change({OF_TLS + "ssl.keystore.type": "JKS"}, INVALID, tls="second"),
    "another format of authorities": Change(
        {OF_TLS + "ssl.truststore.type": "JKS"}, INVALID, tls="second"
    ),
    "a key without a file, too": Change({OF_TLS + "ssl.keystore.key": "x"}, INVALID, "second"),
    "authorities without a file, too": Change(
        {OF_TLS + "ssl.truststore.certificates": "x"}, INVALID, tls="second"
    ),
    "no such authorities": Change({OF_TLS + AUTHORITIES: "absent"}, INVALID, tls="second"),
    "no authorities": Change({OF_TLS + AUTHORITIES: "text"}, INVALID, tls="second"),
    "deleted": Change({STORE: None}),
    "one that other nodes do not trust": Change({INSIDE: "second"}, INVALID),
    "and their authorities": Change({INSIDE: "second", OF_INSIDE + AUTHORITIES: "second"}, INVALID),
    "without the present authorities": Change({OF_INSIDE + AUTHORITIES: "second"}, INVALID),
    "authorities of both": Change({OF_INSIDE + AUTHORITIES: "both"}),
    "one that they trust": Change({INSIDE: "second"}, inside="second"),
    "the former again": Change({INSIDE: None}),
    "former authorities": Change({OF_INSIDE + AUTHORITIES: None}),
    "of a controller": Change({OF_CONTROLLER + LOCATION: "second"}, controller="second"),
    "of a controller, none": Change(
        {OF_CONTROLLER + LOCATION: "absent"}, INVALID, controller="second"
    ),
    "of a controller, deleted": Change({OF_CONTROLLER + LOCATION: None}),
    "another engine": Change({"ssl.engine.factory.class": "x"}, INVALID),
    "another engine of a listener": Change({OF_TLS + "ssl.engine.factory.class": "x"}, INVALID),
    "of a listener that it lacks": Change({"listener.name.none." + LOCATION: "absent"}),
    "of a listener without TLS": Change({"listener.name.clients." + LOCATION: "absent"}),
    "deleted of both": Change(
        {f"listener.name.{name}.{LOCATION}": None for name in ("none", "clients")}
    ),
}


def test_changes_of_stores(
    both: tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]],
) -> None:
    """The same is refused, and new connections have the same certificates."""
    for label, change in STEPS.items():
        real, ours = (carried_out(files, ports, change) for files, ports in both)
        assert (label, ours) == (label, real)
        assert (label, real[0]) == (label, change.error)


OTHER: Final = f"listener.name.names.{LOCATION}"


def story_of_names(files: Files, ports: TlsPorts) -> list[tuple[int, bool]]:
    """A certificate with more names than before may be set, but not taken back."""
    results = []
    for value in ("more-names", None, "first"):
        results.append(carried_out(files, ports, Change({OTHER: value})))
        until(lambda: certificate_at(files, ports.names) == "more-names")
    return results


def test_names_are_not_lost(both: tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]]) -> None:
    real, ours = (story_of_names(files, ports) for files, ports in both)
    assert ours == real
    assert [error for error, _ in real] == [0, INVALID, INVALID]


CHANGING: Final = {STORE: "changing"}
UNRELATED: Final = {"log.cleaner.threads": "1"}
OF_ALL: Final = {"log.retention.ms": "7200000"}


def story_of_a_file(files: Files, ports: TlsPorts) -> list[tuple[int, bool]]:
    """A file whose content changes is read at each change of the configs of this broker."""
    results = []
    for content, change in (
        ("first", Change(CHANGING)),
        ("second", Change(CHANGING, tls="second")),
        ("first", Change(UNRELATED)),
        ("second", Change(OF_ALL, name="")),
        ("text", Change(CHANGING)),
        ("another-subject", Change(UNRELATED)),
        ("second", Change(UNRELATED, tls="second")),
        ("second", Change({STORE: None, "log.cleaner.threads": None})),
    ):
        files.copy(content, "changing")
        results.append(carried_out(files, ports, change))
    return results


def test_a_file_is_read_again(both: tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]]) -> None:
    real, ours = (story_of_a_file(files, ports) for files, ports in both)
    assert ours == real
    assert {error for error, _ in real} == {0}


def story_of_authorities(files: Files, ports: TlsPorts) -> None:
    """A listener serves clients with certificates of its authorities, and those it has already."""
    first, client = files.path("first"), files.path("client")
    key = OF_TLS + AUTHORITIES
    with ExitStack() as stack:
        before = open_tls(ports.tls, stack, first)
        assert is_served(before)
        assert not accepts(ports.tls, client)
        assert carried_out(files, ports, Change({key: "client"}))[0] == 0
        until(lambda: accepts(ports.tls, client))
        until(lambda: not accepts(ports.tls, first))
        assert is_served(before)
        assert carried_out(files, ports, Change({key: None}))[0] == 0
        until(lambda: accepts(ports.tls, first))


def test_authorities_of_clients(
    both: tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]],
) -> None:
    for files, ports in both:
        story_of_authorities(files, ports)


def shown(files: Files, ports: TlsPorts) -> dict[str, str]:
    """What is described of the store of the listener, with the names of files."""
    rows = described(ports.plain, BROKER, "1")
    texts = {name: (kinds(row)[:3], values(row)) for name, row in rows.items()}
    return {
        name: repr(text).replace(str(files.folder), "")
        for name, text in texts.items()
        if name.startswith(f"{OF_TLS}ssl.key")
    }


def test_stores_are_described(
    both: tuple[tuple[Files, TlsPorts], tuple[Files, TlsPorts]],
) -> None:
    for files, ports in both:
        assert carried_out(files, ports, Change({STORE: "second"}, tls="second"))[0] == 0
        until(lambda files=files, ports=ports: shown(files, ports) != {})  # type: ignore[misc]
    real, ours = (shown(files, ports) for files, ports in both)
    for files, ports in both:
        assert carried_out(files, ports, Change({STORE: None}))[0] == 0
    assert ours == real
    assert [*real] == [STORE]
