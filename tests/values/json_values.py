"""Draws values that JSON has, and Python's `json` reads."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1e999999999", "NaN", "ff", "2026-01-31", "9" * 5000, "AA==", "\ud800"]),
)


def any_json(names: Sequence[str]) -> st.SearchStrategy[object]:
    """Draw any value; `names` are those of most members."""
    name = st.one_of(st.sampled_from(names), st.text(max_size=3))
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(name, inner, max_size=3),
        max_leaves=8,
    )
