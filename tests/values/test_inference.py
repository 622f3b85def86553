"""Inferred schemas allow the values that they were inferred from."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.values.inference import MAX_KEYS, Inference
from tests.cli.reports import run
from tests.fuzzing import examples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SCALARS = (
    st.none() | st.booleans() | st.integers(-100, 100) | st.floats(-9, 9) | st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


def schema_of(*values: object) -> dict[str, Any]:
    inference = Inference()
    for value in values:
        inference.add(value)
    return inference.schema()


@settings(max_examples=examples(60))
@given(st.lists(VALUES, max_size=5))
def test_all_values_are_valid(values: list[object]) -> None:
    validator = jsonschema_rs.validator_for(schema_of(*values))
    for value in values:
        validator.validate(value)


def test_what_is_inferred() -> None:
    found = schema_of(
        {"id": 1, "at": "2026-01-31T12:00:00Z", "tags": ["a"], "to": {"zip": 1}},
        {"id": 1.5, "at": "2026-01-31T12:00:00.5+02:00", "tags": [], "to": None, "more": True},
    )
    del found["$schema"]
    assert found == {
        "type": "object",
        "properties": {
            "id": {"type": "number"},
            "at": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "to": {
                "type": ["null", "object"],
                "properties": {"zip": {"type": "integer"}},
                "required": ["zip"],
            },
            "more": {"type": "boolean"},
        },
        "required": ["id", "at", "tags", "to"],
    }


def test_memory_is_bounded() -> None:
    inference = Inference()
    for number in range(MAX_KEYS * 3):
        inference.add({str(number): {"a": 1}})
    assert "properties" not in inference.schema()
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert len(json.dumps(schema_of(deep))) < 10_000


@pytest.mark.parametrize(
    ("data", "code"), [(b'{"a": 1}\n\n{"a": 2}', 0), (b'{"a": 1}\n{\x1b\n', 1)]
)
def test_the_verb(data: bytes, code: int) -> None:
    done = run("values", "infer", "--title", "T", stdin=data)
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)
    assert (found["title"], found["properties"]) == ("T", {"a": {"type": "integer"}})
    assert ("line 2: invalid JSON" in done.stderr) == bool(code)
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("data", [b"", b"\n \n", b"nothing\n"])
def test_no_values_have_no_schema(data: bytes) -> None:
    done = run("values", "infer", stdin=data)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no values" in done.stderr.splitlines()[-1]


COMPRESSIONS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gz": gzip.compress,
    "two.gz": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "zst": zstd.compress,
    "gz.zst": lambda data: zstd.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("kind", COMPRESSIONS)
@pytest.mark.parametrize("piped", [False, True])
def test_compressed_values_are_read(kind: str, piped: bool, tmp_path: Path) -> None:
    data = b'{"a": 1}\n' * 2000 + b'{"a": 2}'
    path = tmp_path / f"values.{kind}"
    path.write_bytes(COMPRESSIONS[kind](data))
    source = ("-", path.read_bytes()) if piped else (path, None)
    done = run("values", "infer", source[0], stdin=source[1])
    assert done.exit_code == 0, done.output
    assert done.stdout == run("values", "infer", stdin=data).stdout


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-9], "truncated compressed data"),
        (lambda data: data[:12] + bytes(9) + data[21:], "corrupt compressed data"),
        (lambda data: data + b"more", "trailing bytes behind the compressed data"),
    ],
)
def test_damaged_values_are_refused(
    damage: Callable[[bytes], bytes], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "values.gz"
    path.write_bytes(damage(gzip.compress(b'{"a": 1}\n{"b": 22}')))
    done = run("values", "infer", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"kafkawire values: {path}: {reason}")
