"""Instances as values: they compare, print, copy, pickle and match, whatever their message."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from kafkawire.messages import REGISTRY
from kafkawire.messages.fetch_request import FetchRequest
from tests import vectors
from tests.conftest import FIXTURES
from tests.vectors import NAMES, same, where


def examples(name: str) -> list[tuple[dict[str, Any], Any]]:
    rows = vectors.by_message("messages").get(name, [])
    return [(row, vectors.instance(row)) for row in rows if row["kind"] in ("default", "full")][-4:]


@pytest.mark.parametrize("name", NAMES)
def test_instances_copy_and_pickle(name: str) -> None:
    for row, message in examples(name):
        assert same(copy.copy(message), message), where(row)
        deep = copy.deepcopy(message)
        assert same(deep, message), where(row)
        for attribute in message.__match_args__:
            held = getattr(message, attribute)
            if isinstance(held, list):
                assert getattr(deep, attribute) is not held, f"{attribute} {where(row)}"
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert same(pickle.loads(pickle.dumps(message, protocol)), message), where(row)


@pytest.mark.parametrize("name", NAMES)
def test_a_repr_is_the_expression_that_makes_the_instance(name: str) -> None:
    for row, message in examples(name):
        scope = dict(
            vars(sys.modules[type(message).__module__]), nan=float("nan"), inf=float("inf")
        )
        assert same(eval(repr(message), scope), message), where(row)


@pytest.mark.parametrize("name", NAMES)
def test_instances_differ_when_a_field_does(name: str) -> None:
    cls = REGISTRY.load(name)
    assert cls() == cls()
    assert cls() != object()
    for row in cls.__fields__:
        if row.type in ("int8", "int16", "int32", "int64"):
            other = cls()
            setattr(other, row.attribute, getattr(other, row.attribute) ^ 1)
            assert other != cls(), row.attribute


@pytest.mark.parametrize("name", NAMES)
def test_instances_match_their_class_and_its_first_field(name: str) -> None:
    cls = REGISTRY.load(name)
    message = cls()
    match message:
        case cls():
            matched = True
        case _:
            matched = False
    assert matched
    if cls.__match_args__:
        match message:
            case cls(first):
                assert first == getattr(message, cls.__match_args__[0])
            case _:
                pytest.fail("the first field does not match by position")


@pytest.mark.parametrize("name", NAMES)
def test_no_two_instances_share_a_list(name: str) -> None:
    cls = REGISTRY.load(name)
    one, other = cls(), cls()
    for attribute in cls.__match_args__:
        held = getattr(one, attribute)
        if isinstance(held, list):
            assert held is not getattr(other, attribute), attribute


def test_instances_are_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(REGISTRY.load("FetchRequest")())


def test_what_was_bent_survives_a_pickle() -> None:
    cls = REGISTRY.load("HeartbeatRequest")
    message = cls.decode(cls(group_id="g").encode(4) + b"\x01", 4, lenient=True)
    again = pickle.loads(pickle.dumps(message))
    assert again.deviations == message.deviations
    assert again.encode(4, lenient=True) == message.encode(4, lenient=True)


def test_decode_takes_bytes_and_nothing_like_them() -> None:
    cls = REGISTRY.load("HeartbeatRequest")
    for data in (bytearray(b"\x00"), memoryview(b"\x00"), "\x00"):
        with pytest.raises(TypeError, match="bytes object expected"):
            cls.decode(data, 4)


@pytest.mark.parametrize("name", ["FetchRequest", "HeartbeatRequest", "EndTxnMarker"])
def test_an_instance_may_be_the_last_to_go_of_anything_deep(name: str) -> None:
    # what CPython frees 50 levels deep it defers, in a way that only collected types can take
    program = f"""
from kafkawire.messages import REGISTRY
for depth in range(40, 60):
    for _ in range(20):
        held = REGISTRY.load({name!r})()
        for _ in range(depth):
            held = [held]
        del held
"""
    checking = {**os.environ, "PYTHONMALLOC": "debug"}
    subprocess.run([sys.executable, "-c", program], check=True, env=checking)


def test_pickles_of_another_build_load() -> None:
    """The file was written by an interpreted build: compiled and interpreted ones read the same."""
    stored = FIXTURES / "pickles" / "interpreted.pickle"
    made = pickle.loads(stored.read_bytes())
    assert [type(message).__name__ for message in made] == ["FetchRequest", "MetadataResponse"]
    fetch, metadata = made
    assert fetch.topics[0].partitions[0].fetch_offset == 42
    assert metadata.unknown_tags == [(9, b"kept")]
    assert metadata.deviations.trailing == b"\x00\x01"
    assert FetchRequest.decode(fetch.encode(12), 12) == fetch
