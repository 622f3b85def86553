"""Hypothesis strategies for every message and version, built from the model.

What they draw can be encoded in that version: fields of other versions stay at their defaults.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kafkawire.messages import REGISTRY
from kafkawire.reference.schemas import message_model
from kafkawire_codegen import model
from tests.fuzzing import examples

MOST_ELEMENTS: Final = 3
MOST_TAGS: Final = 2
MOST_BYTES: Final = 12

EXAMPLES: Final = settings(
    max_examples=examples(5),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Few examples a message: there are 292 messages."""

TAGS: Final = st.one_of(st.integers(0, 200), st.integers(0, 2**31 - 2))


def versions(name: str) -> st.SearchStrategy[int]:
    """Draw a version of a message, its oldest and newest more often."""
    info = REGISTRY.get(name)
    return st.sampled_from([info.first, info.last]) | st.integers(info.first, info.last)


@cache
def messages(name: str, version: int) -> st.SearchStrategy[Any]:
    """Draw a message that can be encoded in a version."""
    return instances(name, message_model(name).root, version)


def instances(name: str, struct: model.Struct, version: int) -> st.SearchStrategy[Any]:
    cls = getattr(sys.modules[REGISTRY.load(name).__module__], struct.name)
    drawn = {
        f.attribute: field_values(name, f, version) for f in struct.fields if version in f.versions
    }
    if version in struct.flexible:
        known = {f.tag for f in struct.tagged_fields}
        drawn["unknown_tags"] = unknown_tags(known)
    return st.fixed_dictionaries(drawn).map(lambda values: cls(**values))


def unknown_tags(known: set[int | None]) -> st.SearchStrategy[list[tuple[int, bytes]] | None]:
    """Draw unknown tagged fields as a decoder gives them: in ascending order, None for none."""
    tags = st.lists(
        st.tuples(TAGS.filter(lambda tag: tag not in known), st.binary(max_size=MOST_BYTES)),
        max_size=MOST_TAGS,
        unique_by=lambda entry: entry[0],
    )
    return tags.map(lambda entries: sorted(entries) or None)


def field_values(name: str, f: model.Field, version: int) -> st.SearchStrategy[Any]:
    if f.struct is not None:
        one = instances(name, f.struct, version)
    else:
        assert f.wire is not None
        one = primitives(f.wire.name, f.wire.low, f.wire.high)
    whole = st.lists(one, max_size=MOST_ELEMENTS) if f.is_array else one
    return st.none() | whole if version in f.nullable else whole


def primitives(kind: str, low: int | None, high: int | None) -> st.SearchStrategy[Any]:
    if low is not None and high is not None:
        return st.integers(low, high) | st.sampled_from([low, -1 if low < 0 else 1, 0, high])
    match kind:
        case "bool":
            return st.booleans()
        case "string":
            return st.text(max_size=MOST_BYTES)
        case "uuid":
            return st.binary(min_size=16, max_size=16)
        case "float64":
            return st.floats(allow_nan=False)
        case _:
            return st.binary(max_size=MOST_BYTES)
