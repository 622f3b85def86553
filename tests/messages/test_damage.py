"""Damaged bytes: cut at every point, lengthened, one byte changed, counts made absurd.

The result is a DecodeError or a message, nothing else; the fast codec and the reference refuse
the same bytes with the same class.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, Final

import pytest

from kafkawire import Limits, reference
from kafkawire.errors import (
    DecodeError,
    EncodeError,
    InvalidLength,
    LimitExceeded,
    TrailingBytes,
    Truncated,
    UnexpectedNull,
)
from kafkawire.messages import REGISTRY
from kafkawire.reference import Node
from tests import vectors
from tests.vectors import NAMES, fast_alone, is_sampled, same, verdict, where

LONGEST_CUT: Final = 400
LONGEST_COMPARED: Final = 48
LONGEST_CHANGED: Final = 500
CHANGES: Final = 6
KINDS: Final = ("default", "full")

CUT_SHORT: Final = (Truncated, InvalidLength)
"""What a cut may be: bytes are missing, or a count is more than what is left."""


def rows_of(name: str, longest: int, test: str = "") -> list[tuple[dict[str, Any], bytes]]:
    """Take the plain and the full vector of every version, as far as they are short.

    test: its name, to take only the versions that it samples.
    """
    rows = [r for r in vectors.by_message("messages").get(name, []) if r["kind"] in KINDS]
    return [
        (r, bytes.fromhex(r["hex"]))
        for r in rows
        if len(r["hex"]) <= 2 * longest and (not test or is_sampled(test, name, r["version"]))
    ]


def test_most_vectors_are_short_enough_to_be_cut() -> None:
    cuts = sum(len(raw) for name in NAMES for _, raw in rows_of(name, LONGEST_CUT))
    assert cuts > 90_000


@pytest.mark.parametrize("name", NAMES)
def test_a_body_cut_anywhere_is_refused(name: str) -> None:
    with fast_alone():
        for row, raw in rows_of(name, LONGEST_CUT, "cut"):
            for cut in range(len(raw)):
                assert verdict(name, row["version"], raw[:cut]) in CUT_SHORT, f"{cut}: {where(row)}"


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_refuses_a_cut_body_for_the_same_reason(name: str) -> None:
    with fast_alone():
        for row, raw in rows_of(name, LONGEST_COMPARED, "compared"):
            for cut in range(len(raw)):
                slow = reference.parse(name, row["version"], raw[:cut]).error
                assert slow is not None, f"{cut}: {where(row)}"
                fast = verdict(name, row["version"], raw[:cut])
                assert fast is type(slow), f"{cut}: {where(row)}"
                assert slow.offset is not None, f"{cut}: {where(row)}"
                assert slow.offset <= cut, f"{cut}: {where(row)}"


@pytest.mark.parametrize("name", NAMES)
def test_bytes_after_the_body_are_refused_or_kept(name: str) -> None:
    cls = REGISTRY.load(name)
    for row, raw in rows_of(name, LONGEST_CHANGED, "after"):
        version = row["version"]
        with pytest.raises(TrailingBytes) as caught:
            cls.decode(raw + b"\x00\xff", version)
        assert (caught.value.path, caught.value.offset) == (name, len(raw)), where(row)
        kept = cls.decode(raw + b"\x00\xff", version, lenient=True)
        assert kept.deviations is not None, where(row)
        assert kept.deviations.trailing == b"\x00\xff", where(row)
        assert same(kept, cls.decode(raw, version)), where(row)
        assert kept.encode(version) == raw, where(row)
        assert kept.encode(version, lenient=True) == raw + b"\x00\xff", where(row)


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_byte_is_an_error_or_another_message(name: str) -> None:
    cls = REGISTRY.load(name)
    draw = random.Random(name)
    for row, raw in rows_of(name, LONGEST_CHANGED, "changed"):
        for _ in range(min(CHANGES, len(raw))):
            at, change = draw.randrange(len(raw)), draw.randrange(1, 256)
            changed = raw[:at] + bytes([raw[at] ^ change]) + raw[at + 1 :]
            for lenient in (False, True):
                agree(cls, name, row["version"], changed, lenient)


def agree(cls: Any, name: str, version: int, data: bytes, lenient: bool) -> None:
    """Check that both codecs make the same of any bytes, and write and read it again."""
    slow = reference.parse(name, version, data, lenient=lenient)
    scenario = f"{name} v{version} lenient={lenient} {data.hex()}"
    with fast_alone():
        fast = verdict(name, version, data, lenient=lenient)
    assert fast is (None if slow.error is None else type(slow.error)), scenario
    if fast is not None:
        return
    message = cls.decode(data, version, lenient=lenient)
    assert same(reference.values_of(message), slow.values), scenario
    assert message.deviations == slow.deviations, scenario
    if any(
        "unknown_tags" in flaw.path for flaw in slow.flaws
    ):  # twice, or no tag: read, not written
        with contextlib.suppress(EncodeError):
            message.encode(version, lenient=lenient)
        return
    written = message.encode(version, lenient=lenient)
    assert written == reference.encode(name, version, message, lenient=lenient), scenario
    assert same(cls.decode(written, version, lenient=lenient), message), scenario


MOST_FIELDS: Final = 12


def lengths(name: str, version: int, raw: bytes, label: str) -> list[tuple[Node, Node]]:
    """Find the first fields that have a length (or a count) in front, each with the node of it."""
    tree = reference.parse(name, version, raw).tree
    found = [
        (node, child)
        for node in tree.walk()
        for child in node.children
        if child.name == label and child.path == node.path and node.type != "tags"
    ]
    return found[:MOST_FIELDS]


HUGE: Final = {
    "uvarint": [b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08"],
    "int32": [b"\x7f\xff\xff\xff"],
    "int16": [b"\x7f\xff"],
}


@pytest.mark.parametrize("name", NAMES)
def test_an_absurd_length_is_refused_before_anything_is_made_for_it(name: str) -> None:
    for row, raw in rows_of(name, LONGEST_CHANGED, "absurd"):
        found = [f for label in NULLED for f in lengths(name, row["version"], raw, label)]
        for owner, node in found:
            for huge in HUGE[node.type]:
                changed = raw[: node.offset] + huge + raw[node.end :]
                slow = reference.parse(name, row["version"], changed).error
                assert isinstance(slow, CUT_SHORT), f"{owner.path} {where(row)}"
                assert slow.path == owner.path, f"{owner.path} {where(row)}"
                with fast_alone():
                    assert verdict(name, row["version"], changed) is type(slow), where(row)


NULLED: Final = ("length", "count")
NULL: Final = {"uvarint": b"\x00", "int32": b"\xff\xff\xff\xff", "int16": b"\xff\xff"}


@pytest.mark.parametrize("name", NAMES)
def test_null_is_read_where_the_schema_allows_it_and_only_there(name: str) -> None:
    for row, raw in rows_of(name, LONGEST_CHANGED, "null"):
        found = [f for label in NULLED for f in lengths(name, row["version"], raw, label)]
        for owner, node in found:
            changed = raw[: node.offset] + NULL[node.type] + raw[node.end :]
            error = reference.parse(name, row["version"], changed).error
            if "nullable" in owner.type:
                assert error is None or error.offset != node.offset, f"{owner.path} {where(row)}"
            else:
                assert isinstance(error, UnexpectedNull), f"{owner.path} {where(row)}"
                assert (error.path, error.offset) == (owner.path, node.offset), where(row)
            with fast_alone():
                fast = verdict(name, row["version"], changed)
                assert fast is (None if error is None else type(error)), where(row)


@pytest.mark.parametrize("name", NAMES)
def test_more_elements_than_the_limit_are_refused(name: str) -> None:
    for row, raw in rows_of(name, LONGEST_CHANGED, "elements"):
        version = row["version"]
        elements = counted(reference.parse(name, version, raw).tree)
        if elements == 0:
            continue
        assert verdict(name, version, raw, limits=Limits(max_elements=elements)) is None, where(row)
        tight = Limits(max_elements=elements - 1)
        with pytest.raises(LimitExceeded) as caught:
            REGISTRY.load(name).decode(raw, version, limits=tight)
        assert caught.value.path.startswith(f"{name}."), where(row)
        with fast_alone():
            assert verdict(name, version, raw, limits=tight) is LimitExceeded, where(row)


def counted(tree: Node) -> int:
    """Count what a limit counts: elements of arrays and unknown tagged fields."""
    elements = 0
    for node in tree.walk():
        if "[]" in node.type and isinstance(node.value, list):
            elements += len(node.value)
        if node.name.startswith("unknown_tags["):
            elements += 1
    return elements


def test_errors_of_damage_are_decode_errors() -> None:
    assert all(issubclass(kind, DecodeError) for kind in (*CUT_SHORT, UnexpectedNull))
