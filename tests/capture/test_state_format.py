"""A state makes values of known classes, whatever its bytes are."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.rows import Status
from kafkawire.capture.snapshot import InvalidState, dump, load
from kafkawire.capture.state_format import CLASSES, DEPTH, MESSAGES, Reader, Writer, _class
from kafkawire.capture.tcp.flow import Budget
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.fetch_request import FetchRequest, FetchTopic
from kafkawire.primitives.shared import SharedInts
from tests.recordings import recording

from . import engine_halves

VALUES: list[Any] = [
    None, True, False, 0, -1, 127, 128, -(1 << 80), 1 << 64, 1.5, b"", bytes(300), "",
    "a\udc80\u20ac", (), (1, (2,)), [], [1, [2]], {}, {"a": {1: b"x"}}, {1, 2}, frozenset({"a"}),
    bytearray(b"ab"),
    Counter(a=3), OrderedDict(b=1, a=2), deque([1, 2], 5), defaultdict(list, {1: [2]}), Status.OK,
    ApiKey.FETCH, SharedInts([1, 2]), FetchRequest(session_id=7, topics=[FetchTopic(topic="a")]),
    Exchange(1, "a", "b", None, None),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_what_they_were(value: Any) -> None:
    made = load(dump(value))
    assert made == value
    assert type(made) is type(value)
    assert repr(made) == repr(value)  # the order of keys, the length of a deque


def test_objects_that_are_used_twice_stay_one() -> None:
    """Also those that refer to themselves."""
    budget, row, itself = Budget(), ["row"], list[Any]()
    itself.append(itself)
    made = load(dump(([budget, budget], {"a": row}, row, itself)))
    assert made[0][0] is made[0][1]
    assert made[1]["a"] is made[2]
    assert made[3][0] is made[3]


class Stranger(NamedTuple):
    """A class that no state has."""

    value: int


@pytest.mark.parametrize("value", [Stranger(1), Path("a"), print, object, 1j, defaultdict(Path)])
def test_other_objects_are_not_written(value: Any) -> None:
    with pytest.raises(InvalidState, match="a state has no"):
        dump(value)


def named(name: str, payload: bytes = b"U\0") -> bytes:
    """Write an object of a class by hand."""
    return b"O" + bytes([len(name)]) + name.encode() + payload


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"X",
        b"L\x05N",  # fewer values than stated
        b"B\xff\xff\xff\xff\x7f",  # more bytes than there are
        b"M" + b"\xff" * 12,
        b"R\0",  # nothing was written yet
        b"E\1a",  # not given
        b"NN",
        b"S\1\xff",
        b"Z\1L\0",  # a list in a set
        b"L\1" * (DEPTH + 2) + b"N",
        named("os:system", b"U\1S\4true"),
        named("builtins:eval", b"U\1S\x011"),
        named("posix:system"),
        named("kafkawire.messages.api_key:__import__"),
        named("kafkawire.messages.api_key:IntEnum"),
        named("kafkawire.messages.index:import_module", b"U\1S\2os"),
        named("kafkawire.messages.fetch_request:FetchRequest"),  # too few fields
        named("kafkawire.capture.frames.apis:Apis", b"S\x0bantigravity"),
        named("collections:defaultdict", b"G\x0bbuiltins:id" + b"M\0"),
        named("kafkawire.capture.rows:Status", b"U\1S\1x"),
        named("kafkawire.capture.tcp.flow:Budget", b"M\1S\x09__class__N"),
        named("kafkawire.capture.tcp.flow:Budget", b"M\1I\1\1N"),
    ],
)
def test_a_damaged_state(data: bytes) -> None:
    with pytest.raises(InvalidState):
        Reader(data, 0, {}, {Budget: ()}).whole()


def test_names_of_classes_lead_to_classes() -> None:
    assert all(isinstance(_class(name), type) for name in CLASSES)
    assert MESSAGES.fullmatch("kafkawire.messages.fetch_request:FetchRequest")
    for name in ("kafkawire.messages.a.b:C", "kafkawire.messages:C", "kafkawire.errors:C"):
        assert not MESSAGES.fullmatch(name)


def test_mutated_states_raise_one_error() -> None:
    """Of an engine in the middle of a capture."""
    state, _ = engine_halves.begin(str(recording("mixed-a.pcap")))
    head = len(state.partition(b"\n")[0]) + 1
    for _ in range(200):
        data = bytearray(state)
        for _ in range(random.choice([1, 3])):
            data[random.randrange(head, len(data))] = random.randrange(256)
        if random.random() < 0.3:
            del data[random.randrange(head, len(data)) :]
        try:
            load(bytes(data), key_log=None)
        except InvalidState:
            continue


def test_memory_is_that_of_the_input() -> None:
    """A size counts for nothing before its values are there."""
    writer = Writer({}, {})
    writer.write([b"x"] * 100)
    data = bytes(writer.out)
    assert len(data) < 400
    assert Reader(data, 0, {}, {}).whole() == [b"x"] * 100
    with pytest.raises(InvalidState, match="exceeds the state"):
        Reader(b"L" + data[1:].replace(b"d", b"\x7f", 1)[:50], 0, {}, {}).whole()
