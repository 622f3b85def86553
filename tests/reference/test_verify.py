"""Canonical or not: never a false yes, and a reason with its place for every no."""

from __future__ import annotations

import random

import pytest

import kafkawire
from kafkawire.errors import DecodeError, EncodeError, UnsupportedVersion
from kafkawire.messages import REGISTRY
from kafkawire.reference import parse, verify
from tests import vectors
from tests.vectors import NAMES, where

SOFTWARE = "ApiVersionsRequest"
ANSWER = "ApiVersionsResponse"
EPOCH = ".finalized_features_epoch"
TOPICS = "DescribeTopicPartitionsRequest"

ODD = [
    (SOFTWARE, 3, "820061026200", "varint of 2 bytes", ".client_software_name", 0),
    (SOFTWARE, 3, "026102628000", "varint of 2 bytes", "", 4),
    (SOFTWARE, 3, "0261026202650164640101", "stands behind tag 101", ".unknown_tags[1]", 8),
    (SOFTWARE, 3, "0261026202640101640102", "tag 100 stands there twice", ".unknown_tags[1]", 8),
    (SOFTWARE, 3, "026102620001", "1 byte after the last field", "", 5),
    (SOFTWARE, 3, "0361c3026200", "is not UTF-8", ".client_software_name", 2),
    (SOFTWARE, 3, "0261026201ffffffff0700", "not a tag that can be written", ".unknown_tags[0]", 5),
    (ANSWER, 3, "00000100000000010108" + "ff" * 8, "at its default", EPOCH, 8),
    (ANSWER, 3, "00000100000000010109" + "00" * 8, "of 9 bytes takes 8", EPOCH, 9),
    ("MetadataRequest", 1, "fffffffe", "the length -2, not -1", ".topics", 0),
    ("MetadataRequest", 4, "ffffffff02", "written as 0x02", ".allow_auto_topic_creation", 4),
    ("HeartbeatRequest", 3, "0001670000000100016dfffe", "length -2", ".group_instance_id", 10),
    (TOPICS, 0, "01000007d0fe00", "null is marked fe, not ff", ".cursor", 5),
    (TOPICS, 0, "01000007d0000274000000010000", "marked 00, not 01", ".cursor", 5),
    ("MetadataRequest", 1, "000000", "4 bytes wanted, 3 left", ".topics", 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "version", "data", "reason", "path", "offset"), ODD, ids=[odd[3] for odd in ODD]
)
def test_bytes_that_no_encoder_writes_are_reported_with_the_reason(
    name: str, version: int, data: str, reason: str, path: str, offset: int
) -> None:
    verdict = kafkawire.verify(name, version, bytes.fromhex(data))
    assert not verdict
    assert not verdict.canonical
    first = verdict.reasons[0]
    assert reason in first.reason
    assert (first.path, first.offset) == (f"{name}{path}", offset)
    assert len(verdict.reasons) == 1
    assert str(verdict).startswith(f"{name} version {version}: not canonical\n  {name}{path}: ")


def test_several_reasons_come_in_the_order_of_their_bytes() -> None:
    verdict = verify(SOFTWARE, 3, bytes.fromhex("82006182006280000000"))
    assert [reason.offset for reason in verdict.reasons] == [0, 3, 6, 8]


@pytest.mark.parametrize("name", NAMES)
def test_golden_vectors_are_canonical(name: str) -> None:
    for row in vectors.by_message("messages").get(name, []):
        verdict = verify(name, row["version"], bytes.fromhex(row["hex"]))
        assert verdict, f"{verdict} {where(row)}"
        assert str(verdict) == f"{name} version {row['version']}: canonical"


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_that_of_the_definition(name: str) -> None:
    cls = REGISTRY.load(name)
    draw = random.Random(name)
    for row in vectors.by_message("messages").get(name, [])[::3]:
        raw, version = bytearray.fromhex(row["hex"]), row["version"]
        if not 0 < len(raw) < 300:
            continue
        raw[draw.randrange(len(raw))] ^= draw.randrange(1, 256)
        changed = bytes(raw)
        verdict = verify(name, version, changed)
        try:
            same = cls.decode(changed, version).encode(version) == changed
        except (DecodeError, EncodeError):
            same = False
        assert bool(verdict) == same, f"{changed.hex()} {where(row)}"
        assert same == (not verdict.reasons)


@pytest.mark.parametrize("name", NAMES)
def test_a_varint_longer_than_needed_is_found_wherever_it_stands(name: str) -> None:
    for row in vectors.by_message("messages").get(name, []):
        raw, version = bytes.fromhex(row["hex"]), row["version"]
        if row["kind"] != "full" or len(raw) > 300:
            continue
        leaves = [n for n in parse(name, version, raw).tree.leaves() if n.type == "uvarint"]
        for node in leaves[:8]:
            if len(node.raw) > 4:
                continue
            longer = node.raw[:-1] + bytes([node.raw[-1] | 0x80, 0])
            changed = raw[: node.offset] + longer + raw[node.end :]
            found = [
                reason
                for reason in verify(name, version, changed).reasons
                if "where fewer would do" in reason.reason
            ]
            assert [(r.path, r.offset) for r in found] == [(node.path, node.offset)], where(row)


def test_a_version_that_is_not_there_is_no_verdict() -> None:
    with pytest.raises(UnsupportedVersion):
        verify(SOFTWARE, 99, b"")
