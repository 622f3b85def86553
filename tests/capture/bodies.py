"""Bodies that other implementations keep as fixtures, without frames around them: does each decode,
and encode to the same bytes.

Of a fixture that does not say its version, one version at least must give back its bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafkawire.errors import WireError
from kafkawire.messages import REGISTRY
from tests.recordings import third_party

BROKEN: Final = {
    "v1_response_missing_throttle_time": "kafkajs: made to lack a field",
    "listPartitionReassignments/fixtures/v0_request": "kafkajs: partitions not in compact form",
    "listPartitionReassignments/fixtures/v0_response": "kafkajs: partitions not in compact form",
    "apiVersionsResponseUnsupportedVersionV1V2": "a response in version 0 to another version",
    "apiVersionsResponseUnsupportedVersionV3": "sarama: no version has these bytes",
    "apiVersionsResponseUnsupportedVersionV4": "sarama: no version has these bytes",
    "describeLogDirsResponseEmptyV2": "sarama: null for an array that is not nullable",
    "describeLogDirsResponseEmptyV4": "sarama: null for an array that is not nullable",
}
"""Fixtures that are no message of their version, and why."""

NAMES: Final = {
    "aclcreate": "createacls",
    "acldelete": "deleteacls",
    "acldescribe": "describeacls",
    "offset": "listoffsets",
    "deleteoffsets": "offsetdelete",
    "consumermetadata": "findcoordinator",
}
"""What sarama calls an API -> what Kafka does."""


class Body(NamedTuple):
    """A body. name: where it is from; version: None where nothing says it."""

    name: str
    message: str
    version: int | None
    data: bytes

    @property
    def broken(self) -> str | None:
        """Why it is no message, for one that is none."""
        return next((why for part, why in BROKEN.items() if self.name.endswith(part)), None)

    @property
    def versions(self) -> list[int]:
        """The versions in which it decodes, and encodes to the same bytes."""
        info = REGISTRY.get(self.message)
        tried = range(info.first, info.last + 1) if self.version is None else [self.version]
        return [version for version in tried if self._same(version)]

    def _same(self, version: int) -> bool:
        try:
            again: bytes = REGISTRY.load(self.message).decode(self.data, version).encode(version)
        except WireError:
            return False
        return again == self.data


def bodies(path: Path) -> Iterator[Body]:
    """Read the bodies of requests and responses among fixtures."""
    apis = (info for info in REGISTRY if info.type in ("request", "response"))
    known = {info.name.lower(): info.name for info in apis}
    read = _of_sarama if "sarama" in path.name else _of_kafkajs
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        parsed = read(row)
        if parsed is not None and parsed[0] in known:
            yield Body(parsed[2], known[parsed[0]], parsed[1], bytes.fromhex(row["hex"]))


def files() -> list[Path]:
    """List the files of fixtures."""
    return third_party("bytes", "*.jsonl")


def _of_kafkajs(row: dict[str, str]) -> tuple[str, int, str] | None:
    if "kind" not in row:
        return None  # parts of messages: record batches, assignments, tokens
    return (
        (row["api"] + row["kind"]).lower(),
        int(row["version"]),
        row["path"].removesuffix(".json"),
    )


def _of_sarama(row: dict[str, str]) -> tuple[str, int | None, str]:
    *api, kind = row["path"].removesuffix("_test.go").split("_")
    called = "".join(api)
    version = re.search(r"[vV](\d+)", row["name"])
    return (
        NAMES.get(called, called) + kind,
        None if version is None else int(version[1]),
        row["name"],
    )
