"""Every recording against what others saw in it: message by message, value by value."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.rows import Located, Status
from tests import recordings

from . import bodies, comparison, truth
from .comparison import Case

CAPTURES = truth.captures()


def messages(path: Path) -> list[Located]:
    return [found for found in decode_capture(path) if found.row.is_message]


@pytest.mark.parametrize("case", comparison.cases(), ids=lambda case: case.name)
def test_every_message_is_found_and_none_invented(case: Case) -> None:
    """Rotated sets are one capture; where bytes are missing, the messages that are whole count."""
    verdict = comparison.compare(case)
    assert verdict.messages > 0
    assert verdict.faults == 0, verdict
    assert verdict.beyond == 0, verdict


def test_every_capture_with_truth_is_compared() -> None:
    compared = [file for case in comparison.cases() for file in case.files]
    assert len(compared) == len(set(compared))
    assert set(recordings.own(recordings.ANY_CAPTURE)) <= set(compared)


@pytest.mark.third_party
@pytest.mark.parametrize("name", ["kafkajs", "sarama"])
def test_bodies_of_others_decode_without_loss(name: str) -> None:
    found = list(bodies.bodies(recordings.THIRD_PARTY / "bytes" / f"{name}-fixtures.jsonl"))
    assert len(found) == {"kafkajs": 89, "sarama": 178}[name]
    assert [body.name for body in found if not body.versions] == [
        body.name for body in found if body.broken
    ]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".truth")[0])
def test_client_ids_are_the_truth(path: Path) -> None:
    ours = [
        f.row.client_id for f in messages(truth.capture_of(path)) if f.row.direction == "request"
    ]
    wanted = [row["client_id"] for row in truth.lines(path) if row["dir"] == "req"]
    assert ours == wanted


# where franz-go's form shows a name for a number, or a default of its own for an absent field
NAMED_NUMBERS = {
    "AlterClientQuotas", "AlterConfigs", "CreateAcls", "DeleteAcls", "DescribeAcls",
    "DescribeClientQuotas", "DescribeConfigs", "IncrementalAlterConfigs",
}  # fmt: skip
ABSENT = {
    "AlterPartitionReassignments": {"True"},
    "DescribeCluster": {"1"},
    "ListOffsets": {"1", "30000"},
}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".truth")[0])
def test_bodies_hold_the_values_that_another_implementation_reads(path: Path) -> None:
    compared = 0
    theirs = truth.lines(truth.kmsg_of(path))
    for found, other in zip(messages(truth.capture_of(path)), theirs, strict=True):
        row = found.row
        if not other.get("roundtrip"):
            continue
        assert row.message is not None, row
        assert row.body_version is not None
        name = row.api_name or ""
        mine = truth.our_values(row.message, row.body_version)
        wanted = truth.their_values(other["body"])
        if name in NAMED_NUMBERS:
            mine, wanted = without_numbers(mine), without_numbers(wanted)
        for absent in ABSENT.get(name, ()):
            del mine[absent], wanted[absent]
        assert mine == wanted, (name, row.api_version, row.packet)
        compared += 1
    assert compared > 0


def without_numbers(values: Counter[str]) -> Counter[str]:
    """Leave out small numbers and the names they go by."""
    left = {t: n for t, n in values.items() if not re.fullmatch(r"-?\d{1,2}|'[A-Z_]+'", t)}
    return Counter(left)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".truth")[0])
def test_every_decoded_body_encodes_to_the_bytes_it_came_from(path: Path) -> None:
    for found in messages(truth.capture_of(path)):
        row = found.row
        if row.message is None or row.body_version is None:
            continue
        again = row.message.encode(row.body_version, lenient=True)
        head = row.length - len(again)
        assert head in (4, 5) or (row.direction == "request" and head >= 8), row


# -- what is odd in these recordings, and real

QUIRKS = [
    # file, API, version, status, what the error says
    ("ck-group-range", "ApiVersions", 3, Status.LENIENT, "after the last field"),
    ("ck-group-range", "Metadata", 13, Status.LENIENT, "1 byte after the last field"),
    ("kjs-all", "LeaveGroup", 3, Status.MALFORMED, "LeaveGroupResponse.members"),
    ("ck-admin-kf", "AlterUserScramCredentials", 0, Status.LENIENT, "1 byte after the last field"),
    ("ck-acks0-kf", "Metadata", 13, Status.LENIENT, "3 bytes after the last field"),
]


@pytest.mark.parametrize(("name", "api", "version", "status", "says"), QUIRKS)
def test_quirks_are_reported(name: str, api: str, version: int, status: Status, says: str) -> None:
    path = recordings.recording(f"{name}.pcap")
    found = [
        f.row
        for f in messages(path)
        if (f.row.api_name, f.row.api_version, f.row.status) == (api, version, status)
    ]
    assert found
    assert any(says in row.error for row in found), [row.error for row in found]
