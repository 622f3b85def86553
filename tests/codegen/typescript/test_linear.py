"""The text of a message takes time in proportion to its schema."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kafkawire_codegen import model
from kafkawire_codegen.schema import load_file
from kafkawire_codegen.targets.typescript import module
from tests.calls import calls
from tests.codegen.test_linear import SHAPES, STEEPEST, written


@pytest.mark.parametrize("shape", SHAPES)
def test_generating_takes_time_in_proportion(shape: str, tmp_path: Path) -> None:
    make, size = SHAPES[shape]
    made = [model.build(load_file(written(tmp_path, make(n * size)))) for n in (1, 10)]
    few, many = (calls(partial(module, each)) for each in made)
    short, long = (len(module(each)) for each in made)
    assert many < STEEPEST * few
    assert long < STEEPEST * short
