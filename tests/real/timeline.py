"""Merges the schemas of every release of Kafka since 2.2, and compares the result with our own.

Every difference is explained in a table below; a difference that is not, and an explanation
without its difference, end the run with exit code 1.

    python -m tests.real.timeline           fetch the jars with Maven once (200 MB), and compare
    python -m tests.real.timeline FOLDER    or take them from FOLDER/VERSION/*.jar

`make soak` calls this. The jars of the newest release are also compared in tests/codegen.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.files import RELEASES
from kafkawire_codegen.headers import header_versions
from kafkawire_codegen.merge.changes import changes
from kafkawire_codegen.merge.timeline import Release, Timeline, timeline
from kafkawire_codegen.releases import Ranges, read
from kafkawire_codegen.schema import MessageSchema, load_sources
from tests.conftest import FIXTURES

CORE: Final = ("kafka_2.13", "metadata", "raft", "storage")
GROUPS: Final = (*CORE, "group-coordinator")
COORDINATORS: Final = (
    "metadata",
    "raft",
    "storage",
    "group-coordinator",
    "transaction-coordinator",
)
SHARES: Final = (*COORDINATORS, "share-coordinator")
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3"), ()),
    "2.7.2": ("raft",),
    "2.8.2": ("kafka_2.13", "metadata", "raft"),
    **dict.fromkeys(("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1"), CORE),
    **dict.fromkeys(("3.5.2", "3.6.2", "3.7.2", "3.8.1"), GROUPS),
    "3.9.1": COORDINATORS,
    **dict.fromkeys(("4.0.1", "4.1.1", "4.2.0"), SHARES),
    # the one message of streams has all versions in any of its jars
    **dict.fromkeys(("4.3.1", "4.4.0"), (*SHARES, "streams")),
}
"""Version -> the modules with schemas, besides kafka-clients."""

KEYS: Final = (
    "before 4.1, the keys of internal topics are described as data whose version is their number"
)
EXPLAINED: Final[Mapping[str, str]] = {
    "RequestHeader 0 of 2.4: changed in place, not listed": "until 2.3, version 0 is today's 1",
    **{
        f"UpdateMetadataRequest 8 of {release}: changed in place, {what}": "in 3.6.2, not in 3.6.0"
        for release, what in (("3.6", "not listed"), ("3.7", "not found"))
    },
    "4.0 JoinGroup: 0-9, ours 2-9": "4.0.1 took back two versions that 4.0.0 had dropped",
    **{
        f"{name} of 4.0: not merged": KEYS
        for name in (
            "ConsumerGroupCurrentMemberAssignmentKey 8",
            "ConsumerGroupMemberMetadataKey 5",
            "ConsumerGroupMetadataKey 3",
            "ConsumerGroupPartitionMetadataKey 4",
            "ConsumerGroupRegularExpressionKey 16",
            "ConsumerGroupTargetAssignmentMemberKey 7",
            "ConsumerGroupTargetAssignmentMetadataKey 6",
            "GroupMetadataKey 2",
            "OffsetCommitKey 1",
            "ShareGroupCurrentMemberAssignmentKey 14",
            "ShareGroupMemberMetadataKey 10",
            "ShareGroupMetadataKey 11",
            "ShareGroupStatePartitionMetadataKey 15",
            "ShareGroupTargetAssignmentMemberKey 13",
            "ShareGroupTargetAssignmentMetadataKey 12",
            "ShareUpdateKey 1",
        )
    },
}
"""Difference -> why it is right."""

POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkawire</groupId> <artifactId>releases</artifactId> <version>1</version>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId> <artifactId>maven-dependency-plugin</artifactId>
    <configuration><artifactItems>{items}</artifactItems></configuration>
  </plugin></plugins></build>
</project>
"""
ITEM: Final = """
  <artifactItem>
    <groupId>org.apache.kafka</groupId> <artifactId>{module}</artifactId>
    <version>{version}</version> <outputDirectory>{folder}/{version}</outputDirectory>
  </artifactItem>"""


def fetched() -> Path:
    """Have Maven fetch the jars of all releases once, into a cache."""
    digest = hashlib.sha256(repr(sorted(MODULES.items())).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkawire"
    jars = cache / f"releases-{digest}"
    if not jars.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as scratch:
            pom = Path(scratch) / "pom.xml"
            made = Path(scratch) / "jars"
            pom.write_text(POM.format(items="".join(items(made))), "utf-8")
            command = ("mvn", "--batch-mode", "--quiet", f"--file={pom}", "dependency:copy")
            subprocess.run(command, check=True, timeout=1800)
            made.rename(jars)
    return jars


def items(folder: Path) -> Iterator[str]:
    for version, modules in MODULES.items():
        for name in ("clients", *modules):
            module = name if name.startswith("kafka_") else f"kafka-{name}"
            yield ITEM.format(module=module, version=version, folder=folder)


def releases(jars: Path) -> Iterator[Release]:
    for version in MODULES:
        yield Release(version.rpartition(".")[0], load_sources(jars / version))


def differences(found: Timeline, ours: Mapping[str, MessageSchema]) -> Iterator[str]:
    """Compare a timeline with our schemas: by what the bytes show, and by the heads."""
    theirs = {message.name: message for message in found.messages}
    for unmerged in found.unmerged:
        versions = f"{unmerged.message} {unmerged.versions}"
        yield f"{versions} of {unmerged.release}: not merged"
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours or name not in theirs:
            yield f"{name}: {'missing' if name in ours else 'not ours'}"
        else:
            yield from of_message(ours[name], theirs[name])


def of_message(ours: MessageSchema, theirs: MessageSchema) -> Iterator[str]:
    name = ours.name
    for run in ours.valid_versions.without(theirs.valid_versions):
        yield f"{name} {run}: missing"
    for run in theirs.valid_versions.without(ours.valid_versions):
        yield f"{name} {run}: not ours"
    for change in changes(ours, theirs, ("ours", "merged")):
        yield f"{name} {change.version}: another layout"
    both = ours.valid_versions & theirs.valid_versions
    heads = [
        (
            each.type,
            each.api_key,
            sorted(each.listeners),
            each.flexible_versions & both,
            [(run & both, header) for run, header in header_versions(each) if run & both],
        )
        for each in (ours, theirs)
    ]
    if heads[0] != heads[1]:
        yield f"{name}: another head: {heads[1]}, ours {heads[0]}"


def of_ranges(found: Ranges, ours: Ranges, what: str = "") -> Iterator[str]:
    for release in found:
        mine = ours.get(release, {})
        for api in sorted(found[release].keys() | mine.keys()):
            theirs, own = found[release].get(api), mine.get(api)
            if theirs != own:
                yield f"{release} {api}: {theirs or 'none'}, ours {own or 'none'}{what}"


def of_changes(found: Timeline) -> Iterator[str]:
    """Compare the layouts that changed in place with those that are known."""
    file = FIXTURES / "reference" / "in_place_changes.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        known = [json.loads(line) for line in lines]
    theirs = {
        f"{each['message']} {each['version']} of {each['to'].removesuffix('.0')}"
        for each in known
        if each["removed"] or each["added"]
    }
    ours = {f"{each.message} {each.version} of {each.newer}" for each in found.changes}
    for change in sorted(ours ^ theirs):
        yield f"{change}: changed in place, {'not listed' if change in ours else 'not found'}"


def unexplained(found: Iterable[str]) -> list[str]:
    """List differences without an explanation, and explanations without a difference."""
    seen = dict.fromkeys(found)
    stale = [f"no longer a difference: {each}" for each in EXPLAINED if each not in seen]
    return [each for each in seen if each not in EXPLAINED] + stale


def main(arguments: list[str]) -> int:
    """Merge, compare, and print what is not explained."""
    jars = Path(arguments[0]) if arguments else fetched()
    found = timeline(list(releases(jars)))
    table = read(schemas_dir() / RELEASES)
    own = {message.name: message for message in load_sources(schemas_dir())}
    wrong = unexplained(
        [
            *differences(found, own),
            *of_changes(found),
            *of_ranges(found.releases.ranges, table.ranges),
            *of_ranges(found.releases.unstable, table.unstable, " (unstable)"),
        ]
    )
    for difference in wrong:
        print(difference)
    versions = sum(len(message.valid_versions) for message in found.messages)
    print(
        f"{len(found.messages)} messages, {versions} versions of {len(MODULES)} releases merged: "
        f"{len(wrong)} unexplained differences to our schemas, {len(EXPLAINED)} explained"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
