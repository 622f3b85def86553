"""The APIs that our listeners offer, beside those of Apache Kafka: a table of docs/broker.md.

python -m tests.broker.offered          prints the table
python -m tests.broker.offered --write  puts it into the page

What Kafka offers was recorded (`fixtures/api_versions`); each difference has its reason here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire import REGISTRY
from kafkawire.broker.apis import client_apis
from kafkawire.broker.releases import LATEST, Offer
from kafkawire.node.front.apis import controller_apis
from tests.conftest import FIXTURES, ROOT
from tests.real.api_versions import BROKER, CONTROLLER, recorded

PAGE: Final = ROOT / "docs" / "broker.md"
BEGIN: Final = "<!-- offered: python -m tests.broker.offered --write -->\n"
END: Final = "<!-- end of offered -->\n"
NOTHING: Final = "-"
RELEASES: Final = tuple(
    sorted(path.stem for path in (FIXTURES / "api_versions").iterdir() if path.suffix == ".json")
)


class Row(NamedTuple):
    """A difference. kafka, ours: the versions of the API, `-` for none."""

    release: str
    listener: str
    api: str
    kafka: str
    ours: str


def names(offer: Offer) -> dict[str, str]:
    """Return the versions of APIs by the names of these."""
    named = {}
    for key, versions in offer.items():
        info = REGISTRY.request(key)
        assert info is not None
        named[info.name.removesuffix("Request")] = str(versions)
    return named


def ours(release: str, listener: str) -> dict[str, str]:
    """Return what a listener of ours offers. Controllers have the newest versions."""
    return names(
        client_apis(release).listed if listener == BROKER else controller_apis(LATEST).listed
    )


def listeners(release: str) -> Iterable[str]:
    """Return the listeners that are compared in a release."""
    return (BROKER, CONTROLLER) if release == LATEST else (BROKER,)


def differences() -> Iterator[Row]:
    """Compare each listener of each release."""
    for release in RELEASES:
        for listener in listeners(release):
            kafkas, own = recorded(release)[listener], ours(release, listener)
            for api in {**kafkas, **own}:
                kafka, mine = kafkas.get(api, NOTHING), own.get(api, NOTHING)
                if kafka != mine:
                    yield Row(release, listener, api, kafka, mine)


WITH_ZOOKEEPER: Final = "Kafka 2.8 was recorded with ZooKeeper, our nodes have their own quorum"
OF_CONTROLLER: Final = "brokers respond to it from the same metadata"
REASONS: Final[Mapping[tuple[str, str], str]] = {
    **{
        (BROKER, api): WITH_ZOOKEEPER
        for api in (
            "LeaderAndIsr",
            "StopReplica",
            "UpdateMetadata",
            "ControlledShutdown",
            "DescribeQuorum",
            "AlterPartition",
            "UnregisterBroker",
        )
    },
    (CONTROLLER, "DescribeDelegationToken"): "Kafka responds UNKNOWN_SERVER_ERROR",
    (CONTROLLER, "Fetch"): "replicas of the metadata log fetch with the versions of KRaft",
    **{
        (CONTROLLER, api): OF_CONTROLLER
        for api in (
            "DescribeAcls",
            "DescribeConfigs",
            "DescribeUserScramCredentials",
        )
    },
}
"""(listener, API) -> why it differs."""


def drawn() -> str:
    """Return the table as Markdown."""
    lines = [
        "| release | listener | API | Kafka | kafkawire | because |\n",
        "|" + " --- |" * 6 + "\n",
    ]
    lines += [
        f"| {' | '.join(row)} | {REASONS[row.listener, row.api]} |\n" for row in differences()
    ]
    return "".join(lines)


def shown(page: str) -> str:
    """Return the table that the page has. Raises IndexError if it has none."""
    return page.split(BEGIN, 1)[1].split(END, 1)[0].strip("\n") + "\n"


def written(page: str) -> str:
    """Return the page with the table of now. Raises ValueError if it has no place for one."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{drawn()}\n{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(drawn(), end="")
