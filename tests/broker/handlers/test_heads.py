"""The tables of versions: heads of the handlers, offers of the releases, APIs of the issue."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from kafkawire import REGISTRY, ApiKey, Structure
from kafkawire.broker.handlers import HANDLERS
from kafkawire.broker.releases import LATEST, Versions, key_of, listed, offered, parse, table
from kafkawire.primitives.index import MessageInfo
from kafkawire.primitives.structure import FieldRow
from tests.conftest import ROOT

SERVED = [
    "ApiVersions",
    "Metadata",
    "Produce",
    "Fetch",
    "ListOffsets",
    "OffsetForLeaderEpoch",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
    "OffsetDelete",
    "InitProducerId",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DeleteRecords",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "DescribeCluster",
    "DescribeTopicPartitions",
    "SaslHandshake",
    "SaslAuthenticate",
]
BETWEEN_BROKERS = ["LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"]

Path = tuple[str, ...]


def fields(cls: type[Structure], above: Path = ()) -> Iterator[tuple[Path, FieldRow]]:
    """Walk the fields of a message, those of its structs too."""
    for row in cls.__fields__:
        path = (*above, row.attribute)
        yield path, row
        inner = getattr(sys.modules[cls.__module__], row.type.removeprefix("[]"), None)
        if isinstance(inner, type) and issubclass(inner, Structure):
            yield from fields(inner, path)


def change(info: MessageInfo, version: int) -> str:
    """Return the fields that a version of a message adds and removes."""
    rows = list(fields(REGISTRY.load(info.name)))

    def names(here: int, there: int) -> list[str]:
        have = {path for path, row in rows if row.first <= here <= row.last}
        had = {path for path, row in rows if row.first <= there <= row.last}
        new = [path for path, _ in rows if path in have - had]
        outer = [p for p in new if not any(p[:at] in have - had for at in range(1, len(p)))]
        return list(dict.fromkeys(path[-1] for path in outer))

    added = [f"+{name}" for name in names(version, version - 1)]
    return " ".join([*added, *(f"-{name}" for name in names(version - 1, version))])


def expected_head(name: str) -> dict[int, str]:
    """Return the expected version table of an API's handler."""
    infos = REGISTRY.get(f"{name}Request"), REGISTRY.get(f"{name}Response")
    head = {}
    for version in range(infos[0].first, infos[0].last + 1):
        parts = ["the first"] if version == infos[0].first else []
        for info, word in zip(infos, ("request", "response"), strict=True):
            changes = change(info, version) if not parts or parts[0] != "the first" else ""
            parts += [f"{word} {changes}"] if changes else []
        parts += ["flexible"] if version == infos[0].flexible else []
        head[version] = "; ".join(parts) or "no new fields"
    return head


@pytest.mark.parametrize("name", [*SERVED, *BETWEEN_BROKERS])
def test_a_handler_is_headed_by_its_versions_and_what_each_added(name: str) -> None:
    doc = sys.modules[HANDLERS[key_of(name)].__name__].__doc__  # type: ignore[attr-defined]
    assert doc is not None
    title, table = doc.split("\n\n", 1)
    assert title.startswith(f"{name}: ")
    entries = re.split(r"^v(\d+) +", table, flags=re.MULTILINE)[1:]
    reported = {
        int(version): " ".join(text.split()).split(" │ ")[0]
        for version, text in zip(entries[::2], entries[1::2], strict=True)
    }
    assert reported == expected_head(name)


def test_what_is_served_is_what_the_issue_lists() -> None:
    assert {key_of(name) for name in SERVED} == set(HANDLERS)


def test_releases_offer_what_kafkas_do_of_what_is_served() -> None:
    known = json.loads((ROOT / "schemas" / "releases.json").read_text())
    for release, apis in known["releases"].items():
        expected = {}
        for name in SERVED:
            if name not in apis:
                continue
            versions = parse(apis[name])
            unstable = known["unstable"].get(release, {}).get(name)
            if unstable is not None:
                versions = versions._replace(last=parse(unstable).first - 1)
            if versions.last >= versions.first:
                expected[key_of(name)] = versions
        assert table()[release] == expected, release
    assert table().keys() == known["releases"].keys()


def test_every_version_there_ever_was_is_offered_by_all() -> None:
    every = offered("all")
    for name in SERVED:
        info = REGISTRY.get(f"{name}Request")
        assert every[key_of(name)] == Versions(info.first, info.last)


def test_releases_since_4_list_produce_from_0_and_take_it_from_3() -> None:
    assert listed(LATEST)[ApiKey.PRODUCE].first == 0
    assert offered(LATEST)[ApiKey.PRODUCE].first == 3
    assert listed("3.9") == offered("3.9")


def test_an_unknown_release_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"4\.3.*all"):
        offered("0.7")
