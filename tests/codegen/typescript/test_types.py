"""The generated TypeScript is right in the eyes of its compiler, as strict as it can be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.codegen.hostile import write

from .conftest import Check
from .hostile import HOSTILE
from .node import HERE, package


def test_types_of_kafkas_messages(sources: Path, check: Check) -> None:
    assert check(sources) == ""


def test_types_of_hostile_schemas(tmp_path: Path, check: Check) -> None:
    assert check(package(tmp_path / "out", write(tmp_path / "schemas", HOSTILE))) == ""


def test_types_that_a_user_sees(tmp_path: Path, check: Check) -> None:
    """Lines of user.ts with @ts-expect-error are errors."""
    shutil.copy(HERE / "user.ts", tmp_path)
    assert check(tmp_path) == ""


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("export const text: string = 5;", "TS2322"),
        ("export const value: { a?: number } = { a: undefined };", "TS2375"),
        ('import { CodecError } from "kafka-messages";\nexport {};', "TS6133"),
    ],
)
def test_the_check_is_strict(wrong: str, code: str, tmp_path: Path, check: Check) -> None:
    (tmp_path / "wrong.ts").write_text(wrong)
    assert code in check(tmp_path)
