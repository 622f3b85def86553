"""The tree of a message: every byte in one leaf, every leaf at its place."""

from __future__ import annotations

import pytest

from kafkawire import reference
from kafkawire.errors import UnknownApiKey, UnsupportedVersion
from kafkawire.reference import Node
from tests import vectors
from tests.vectors import NAMES, where

BODY = bytes.fromhex("00000001000474657374")


def named(tree: Node, path: str) -> Node:
    return next(node for node in tree.walk() if node.path == path)


def test_a_node_knows_its_place_its_bytes_and_its_value() -> None:
    tree = reference.parse("MetadataRequest", 0, BODY).tree
    topics = named(tree, "MetadataRequest.topics")
    assert (topics.offset, topics.size, topics.type) == (0, 10, "[]MetadataRequestTopic")
    name = named(tree, "MetadataRequest.topics[0].name")
    assert (name.offset, name.raw, name.value) == (4, b"\x00\x04test", "test")
    assert [(c.name, c.offset, c.raw, c.type) for c in name.children] == [
        ("length", 4, b"\x00\x04", "int16"),
        ("text", 6, b"test", "UTF-8"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_is_in_exactly_one_leaf(name: str) -> None:
    for row in vectors.by_message("messages").get(name, []):
        raw = bytes.fromhex(row["hex"])
        at = 0
        for leaf in reference.parse(name, row["version"], raw).tree.leaves():
            assert leaf.offset == at, f"{leaf.path} {where(row)}"
            at = leaf.end
        assert at == len(raw), where(row)


@pytest.mark.parametrize("name", ["FetchResponse", "JoinGroupRequest", "PartitionChangeRecord"])
def test_the_tree_of_a_cut_message_ends_where_its_last_whole_field_does(name: str) -> None:
    row = next(r for r in vectors.by_message("messages")[name] if r["kind"] == "full")
    raw = bytes.fromhex(row["hex"])
    for cut in range(len(raw)):
        parsed = reference.parse(name, row["version"], raw[:cut])
        assert b"".join(leaf.raw for leaf in parsed.tree.leaves()) == raw[: parsed.end]
        assert not parsed.tree.closed
        assert parsed.values is None


def test_a_message_may_begin_anywhere_and_end_before_the_data_does() -> None:
    parsed = reference.parse("MetadataRequest", 0, b"??" + BODY + b"!", start=2, whole=False)
    assert (parsed.tree.offset, parsed.end, parsed.error) == (2, 12, None)


def test_what_is_not_there_cannot_be_parsed() -> None:
    with pytest.raises(UnsupportedVersion, match="MetadataRequest has versions 0-13, not 14"):
        reference.parse("MetadataRequest", 14, b"")
    for name in ("Nothing", "../schemas/FetchRequest", ""):
        with pytest.raises(UnknownApiKey):
            reference.parse(name, 0, b"")
