"""Keys of a listener that are set while brokers run: a real Apache Kafka and our node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from tests.interop.implementations import until

from ...real.broker import NODE_ID, running
from ...real.java import Installation
from .test_configs_beside_kafka import BROKER, DELETE, SET, altered, described, kinds, values
from .test_connection_limits_beside_kafka import OURS, Ports, delayed, is_limited

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
PREFIX: Final = "listener.name.sasl."
MAX: Final = f"{PREFIX}max.connections"
RATE: Final = f"{PREFIX}max.connection.creation.rate"
VALUES: Final = ["x", "", "1.5", "-1", "0", "1", " 2 ", "2147483648"]
ALL: Final = ""
ONE: Final = str(NODE_ID)


@pytest.fixture(scope="module")
def both(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ports, Ports]]:
    """The ports of the real broker and of a node of ours."""
    with (
        running(installation, tmp_path_factory.mktemp("listener-configs")) as real,
        ClusterThread(ServerConfig(settings=OURS)) as ours,
    ):
        yield (
            Ports(real.port, real.sasl_port),
            Ports(ours.ports("CLIENTS")[1], ours.ports("SASL")[1]),
        )


class Step(NamedTuple):
    """A change of a limit, and what it is then. shown: what is described for the broker."""

    name: str
    value: str | None
    limit: int | None
    shown: str | None


def shown(port: int, name: str) -> str:
    row = described(port, BROKER, name).get(MAX)
    return "" if row is None else repr((kinds(row), values(row)))


STEPS: Final = (
    Step(ALL, "5", limit=5, shown="5"),
    Step(ONE, "3", limit=3, shown="3"),
    Step(ALL, "4", limit=3, shown="3"),
    Step(ONE, None, limit=4, shown="4"),
    Step(ALL, None, limit=None, shown=None),
)


def test_the_limit_of_a_listener(both: tuple[Ports, Ports]) -> None:
    """Set for all brokers and for one, it is in effect at once, and described as in Kafka."""
    for step in STEPS:
        for ports in both:
            operation = SET if step.value else DELETE
            change = MAX, operation, step.value
            assert altered(ports.between, BROKER, step.name, change) == (0, None)
        for ports in both:
            until(lambda ports=ports, step=step: value(ports.between) == step.shown)  # type: ignore[misc]
            until(lambda ports=ports, limit=step.limit: has_limit(ports.other, limit))  # type: ignore[misc]
        for name in (ONE, ALL):
            until(lambda name=name: len({shown(each.between, name) for each in both}) == 1)  # type: ignore[misc]


def value(port: int) -> str | None:
    row = described(port, BROKER, ONE).get(MAX)
    return row and row.value


def has_limit(port: int, limit: int | None) -> bool:
    return not is_limited(port, 4) if limit is None else is_limited(port, limit)


def test_the_rate_of_a_listener(both: tuple[Ports, Ports]) -> None:
    for ports in both:
        assert altered(ports.between, BROKER, ONE, (RATE, SET, "2")) == (0, None)
        until(lambda ports=ports: delayed(ports.other))  # type: ignore[misc]
        assert altered(ports.between, BROKER, ONE, (RATE, DELETE, None)) == (0, None)


@pytest.mark.parametrize("name", [ONE, ALL], ids=["one broker", "all brokers"])
@pytest.mark.parametrize(
    ("key", "tried"),
    [(MAX, VALUES), (RATE, VALUES), (MAX.replace("sasl", "absent"), ["x", "0", "1"])],
    ids=["connections", "rate", "of a listener that the broker lacks"],
)
def test_values_are_valid_where_they_are_in_kafka(
    both: tuple[Ports, Ports], key: str, tried: list[str], name: str
) -> None:
    real, ours = (
        {
            value: altered(ports.between, BROKER, name, (key, SET, value), validate=True)[0]
            for value in tried
        }
        for ports in both
    )
    assert ours == real
