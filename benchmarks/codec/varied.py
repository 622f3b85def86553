"""Decodes and encodes thousands of different messages of each of the eight kinds, in turn.

No message comes twice in a loop; numbers, texts and lengths of arrays differ as they do from
broker to broker and from group to group. What stays: error codes, key types, null.

    a message of `bodies` ─▶ JSON ─▶ 2000 variants ─▶ bytes ─▶ decode, encode, one after the other
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import kafkawire

from ..measure import Figure, interleave
from .bodies import Body, bodies
from .copies import bind
from .peers import CONTENDERS

DECODE: Final = "decode, varied"
ENCODE: Final = "encode, varied"
VARIANTS: Final = 2000
SEED: Final = 11
KEPT: Final = frozenset({"errorCode", "keyType", "throttleTimeMs"})
"""Fields that a variant has as the original: not every number is valid."""
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-."
BITS: Final = 8
"""By how many bits numbers grow at most."""


def variants(body: Body, number: int, rng: random.Random) -> Iterator[Body]:
    """Make different messages of the size of one."""
    form = kafkawire.to_json(body.message, body.version)
    for _ in range(number):
        varied = {name: _varied(name, value, rng) for name, value in form.items()}
        yield Body(kafkawire.from_json(body.name, body.version, varied), body.version)


def _varied(name: str, value: Any, rng: random.Random) -> Any:
    if name in KEPT or isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if value < 0 else _number(value, rng)
    if isinstance(value, str):
        return _text(name, value, rng)
    if isinstance(value, list):
        return [_varied(name, each, rng) for each in _resized(value, rng)]
    return {field: _varied(field, each, rng) for field, each in value.items()}


def _number(value: int, rng: random.Random) -> int:
    """A number of about as many bits, so that it fits the field."""
    bits = max(value.bit_length(), 1)
    roomy = bits > BITS  # else it may be an int8
    return rng.randrange(1 << (bits if roomy else min(bits + 3, 7)))


def _text(name: str, value: str, rng: random.Random) -> str:
    if name == "metadata":  # base64
        return value
    return "".join(rng.choices(LETTERS, k=max(1, round(len(value) * rng.uniform(0.5, 1.5)))))


def _resized(values: list[Any], rng: random.Random) -> list[Any]:
    """Take half as many to one and a half times as many elements."""
    size = round(len(values) * rng.uniform(0.5, 1.5))
    return rng.choices(values, k=max(size, 1)) if values else values


def run(
    rounds: int, contenders: Sequence[str] | None = None, number: int = VARIANTS
) -> list[Figure]:
    """Measure; microseconds a message, in the mean of the variants."""
    figures: list[Figure] = []
    for body in bodies():
        rng = random.Random(SEED)
        case = f"{body.name} v{body.version}"
        bound = [bind(each, list(contenders or CONTENDERS)) for each in variants(body, number, rng)]
        for suite, call in ((DECODE, "decode"), (ENCODE, "encode")):
            loops = {
                name: partial(call_all, [getattr(codecs[name], call) for codecs in bound])
                for name in bound[0]
            }
            figures += [each.scaled(1 / number) for each in interleave(suite, case, loops, rounds)]
    return figures


def call_all(calls: Sequence[Callable[[], object]]) -> None:
    """Decode or encode all variants, one after the other."""
    for call in calls:
        call()
