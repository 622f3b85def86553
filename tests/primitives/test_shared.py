"""What decoded messages share: nothing that can be told apart from values of their own, but that it
cannot be changed.
"""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.primitives import Reader, Writer, shared
from tests.twins import twin

NATIVE: Final = str(shared.__file__).endswith(tuple(EXTENSION_SUFFIXES))
TWIN: Final = twin(shared)
UNSEEN: Final = count(1_000_000_000)
"""Integers that no other test of this module uses."""

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)

CHANGES: list[Callable[[list[int]], Any]] = [
    lambda x: x.append(1),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.remove(2),
    lambda x: x.pop(),
    lambda x: x.clear(),
    lambda x: x.sort(),
    lambda x: x.reverse(),
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__delitem__(0),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
]


def read_ints(items: list[int]) -> list[int]:
    writer = Writer()
    writer.write_int32_array(items, True)
    reader = Reader(writer.getvalue())
    return reader.read_int32_items(reader.read_array_length(True))


def read_text(raw: bytes, *, lenient: bool = False) -> tuple[str, int]:
    writer = Writer()
    writer.write_length(len(raw), True)
    reader = Reader(writer.getvalue() + raw, lenient=lenient)
    text = reader.read_string(True)
    assert reader.pos == reader.end
    return text, reader.invalid_text


def response(*lists: list[int]) -> MetadataResponse:
    partitions = [MetadataResponsePartition(replica_nodes=x, isr_nodes=[*x]) for x in lists]
    made = MetadataResponse(topics=[MetadataResponseTopic(name="orders", partitions=partitions)])
    return MetadataResponse.decode(made.encode(9), 9)


@given(st.lists(INT32, max_size=20))
def test_lists_are_what_was_written_however_often_they_are_read(items: list[int]) -> None:
    assert [read_ints(items) for _ in range(3)] == [items] * 3


@given(st.text(max_size=40))
def test_texts_are_what_was_written_however_often_they_are_read(text: str) -> None:
    raw = text.encode()
    assert [read_text(raw) for _ in range(3)] == [(text, 0)] * 3


@pytest.mark.parametrize("size", range(1, 40))
def test_every_byte_counts(size: int) -> None:
    """A value is found again by words that overlap: none of its bytes may be outside of them."""
    plain = b"a" * size
    assert read_text(plain) == (plain.decode(), 0)
    for place in range(size):
        other = plain[:place] + b"b" + plain[place + 1 :]
        assert read_text(other) == (other.decode(), 0)
    assert read_text(plain) == (plain.decode(), 0)


@pytest.mark.parametrize("size", range(1, 12))
def test_every_integer_counts(size: int) -> None:
    for place in range(size):
        for bit in range(31):
            items = [0] * size
            items[place] = 1 << bit
            assert read_ints(items) == items
    assert read_ints([0] * size) == [0] * size


def test_text_that_is_not_utf8_is_counted_each_time() -> None:
    raw = b"caf\xe9 au lait"
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            read_text(raw)
        assert read_text(raw, lenient=True) == ("caf\udce9 au lait", 1)


def test_a_list_that_comes_again_is_one_object() -> None:
    first, second, third = response([1, 2, 3], [4, 5, 6], [1, 2, 3]).topics[0].partitions
    assert first.isr_nodes is third.replica_nodes is third.isr_nodes
    assert first.replica_nodes == first.isr_nodes
    assert first.offline_replicas is second.offline_replicas
    assert second.replica_nodes == [4, 5, 6]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_shared_cannot_be_changed(change: Callable[[list[int]], Any]) -> None:
    partition = response([2, 1, 3]).topics[0].partitions[0]
    with pytest.raises(TypeError, match="set the field to a list of its own"):
        change(partition.replica_nodes)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 1, 3], [2, 1, 3])


def test_a_field_takes_a_list_of_its_own() -> None:
    message = response([1, 2, 3], [1, 2, 3])
    first, second = message.topics[0].partitions
    first.isr_nodes = [x for x in first.isr_nodes if x != 3]
    first.isr_nodes.append(7)
    again = MetadataResponse.decode(message.encode(9), 9).topics[0].partitions
    assert again[0].isr_nodes == [1, 2, 7]
    assert again[0].replica_nodes == again[1].isr_nodes == second.isr_nodes == [1, 2, 3]


@pytest.mark.parametrize(
    "remade", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_shared_list_is_a_list(remade: Callable[[Any], Any]) -> None:
    items = response([1, 2, 3]).topics[0].partitions[0].replica_nodes
    assert isinstance(items, list)
    assert repr(items) == json.dumps(items) == "[1, 2, 3]"
    partition = response(items).topics[0].partitions[0]
    assert remade(items) == items
    assert remade(partition) == partition
    # pickle and deepcopy keep one object one: two fields must not come back with a list to change
    pair = remade([items, items])
    with pytest.raises(TypeError):
        pair[0].append(4)


# -- C and Python


def outcome(call: Callable[..., Any], data: bytes, p: int, size: int) -> Any:
    """Call a function of either version; a refusal is a value here."""
    try:
        return call(data, p, size)
    except (IndexError, UnicodeDecodeError) as error:
        return type(error), str(error)


@given(st.binary(max_size=80), st.integers(-2, 90), st.integers(-2, 90))
def test_c_finds_what_the_twin_finds(data: bytes, p: int, size: int) -> None:
    for name in ("shared_text", "shared_int32_items"):
        length = size if name == "shared_text" else size // 4 * 4
        found = [
            outcome(getattr(module, name), data, p, length) for module in (shared, TWIN, shared)
        ]
        assert found[0] == found[1] == found[2]


@given(st.text(min_size=1, max_size=40))
def test_c_finds_the_texts_that_the_twin_finds(text: str) -> None:
    data = f"..{text}..".encode()
    for _ in range(3):
        for module in (shared, TWIN):
            assert module.shared_text(data, 2, len(data) - 4) == text


def test_functions_refuse_what_is_not_theirs() -> None:
    if NATIVE:  # Python compares nothing before it is used
        for args in ((b"abcd",), ("abcd", 0, 4), (b"abcd", 0, 4, 0), (b"abcd", 1 << 70, 4)):
            with pytest.raises((TypeError, OverflowError)):
                shared.shared_text(*args)
    with pytest.raises(TypeError):
        shared.shared_text(b"abcd", "0", 4)  # type: ignore[arg-type]


def test_a_text_that_comes_again_is_one_object() -> None:
    raw = str(next(UNSEEN)).encode()
    _, second, third = (read_text(raw)[0] for _ in range(3))
    assert second is third


def test_the_garbage_collector_need_not_visit_a_list_of_integers() -> None:
    """It would visit two in each partition of a MetadataResponse."""
    items = read_ints([next(UNSEEN), next(UNSEEN)])
    assert gc.is_tracked(items) is not NATIVE
    assert type(items) is shared.SharedInts


def test_a_list_keeps_its_integers_alive_and_lets_go_of_them() -> None:
    number = next(UNSEEN)
    _, items = (read_ints([number, number]) for _ in range(2))  # stored when it comes again
    first = items[0]
    held = sys.getrefcount(first)
    again = [read_ints([number, number]) for _ in range(5)]
    assert all(each is items for each in again)
    assert sys.getrefcount(first) == held
    references = sys.getrefcount(items)
    del again
    assert sys.getrefcount(items) == references - 5
    for number in [next(UNSEEN) for _ in range(10_000)]:  # until the table has forgotten it
        for _ in range(2):
            read_ints([number, number])
    del items
    assert sys.getrefcount(first) == held - 1


def test_the_memory_of_a_list_is_as_list_expects() -> None:
    """Nobody should, but whoever calls `list.append` by its name harms no memory."""
    items = read_ints([next(UNSEEN)] * 3)
    for number in range(100):
        list.append(items, number)
    assert len(items) == 103
    list.sort(items)
    list.clear(items)
    assert items == []
    made = shared.SharedInts(range(50))
    assert (made, made[3:5], [*made, 1]) == (list(range(50)), [3, 4], [*range(50), 1])


def test_a_table_forgets_what_came_long_ago() -> None:
    """Thousands of different values pass through; what is read stays right."""
    numbers = [next(UNSEEN) for _ in range(5000)]
    for _ in range(2):
        assert [read_ints([number, -number]) for number in numbers] == [[n, -n] for n in numbers]
        assert [read_text(b"%d" % number)[0] for number in numbers] == [str(n) for n in numbers]
