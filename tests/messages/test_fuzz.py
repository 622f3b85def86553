"""Mutated vectors of all messages through everything that reads bytes.

What comes out is a value or a WireError; paths begin with the message, offsets lie within the
bytes; memory is bounded by the size of the input.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from typing import Final

import pytest

import kafkawire
from kafkawire.errors import DecodeError, EncodeError, WireError
from kafkawire.primitives import Message
from kafkawire.protocol.locate.locators import LOCATORS
from kafkawire.reference import as_json, explain
from tests import vectors
from tests.fuzzing import mutate, replayable, seeds
from tests.vectors import NAMES, same

LONGEST: Final = 600
FIXED_COST: Final = 4_000_000
MAX_RATIO: Final = 4000
"""Memory that all readers together may take: for caches, and for each byte of the input; a tree
that explains a byte takes about 1000 bytes, and its text as much."""


def check_error(error: WireError, name: str, data: bytes) -> None:
    assert error.path == name or error.path.startswith(f"{name}."), error
    assert error.offset is None or 0 <= error.offset <= len(data), error


def decoded(name: str, version: int, data: bytes, lenient: bool) -> Message | None:
    """Decode bytes, and check the error of what is refused."""
    try:
        return kafkawire.decode(name, version, data, lenient=lenient)
    except DecodeError as error:
        check_error(error, name, data)
        return None


def check_json(name: str, version: int, message: Message) -> None:
    """Check that a message's JSON form holds all of it."""
    text = json.dumps(kafkawire.to_json(message, version))
    assert same(kafkawire.from_json(name, version, json.loads(text)), message), text


def check(name: str, version: int, data: bytes) -> None:
    strict = decoded(name, version, data, False)
    lenient = decoded(name, version, data, True)
    assert strict is None or (lenient is not None and same(strict, lenient))
    for read in (strict, lenient):
        if read is not None:
            check_json(name, version, read)
    explanation = explain(name, version, data)
    assert (explanation.error is None) == (strict is not None)
    assert b"".join(row.raw for row in explanation.rows) == data
    assert str(explanation)
    assert json.dumps(as_json(explanation))
    verdict = kafkawire.verify(name, version, data)
    for flaw in verdict.reasons:
        assert 0 <= flaw.offset <= len(data), flaw
        assert flaw.path.startswith(name), flaw
    if strict is not None:
        try:
            is_same = strict.encode(version) == data
        except EncodeError as error:
            check_error(error, name, data)
            is_same = False
        assert bool(verdict) == is_same
    found = LOCATORS.decode("kafkawire.messages", name, data, version, False, kafkawire.Limits())
    assert strict is None or found is None


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("name", NAMES)
def test_mutated_vectors(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    rows = vectors.by_message("messages").get(name, [])
    short = [row for row in rows if len(row["hex"]) <= 2 * LONGEST]
    with replayable(seed):
        for row in rng.sample(short, min(8, len(short))):
            data = mutate(bytes.fromhex(row["hex"]), rng)
            check(name, row["version"], data)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(20))
def test_the_memory_of_mutated_vectors(seed: int) -> None:
    rng = random.Random(seed)
    rows = [row for each in vectors.by_message("messages").values() for row in each]
    with replayable(seed):
        row = rng.choice([row for row in rows if len(row["hex"]) <= 2 * LONGEST])
        data = mutate(bytes.fromhex(row["hex"]), rng)
        check(row["message"], row["version"], b"")
        tracemalloc.start()
        try:
            check(row["message"], row["version"], data)
            assert tracemalloc.get_traced_memory()[1] < FIXED_COST + MAX_RATIO * len(data)
        finally:
            tracemalloc.stop()
