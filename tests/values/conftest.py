from __future__ import annotations

from collections.abc import Iterator

import pytest

from .registry import SchemaRegistry, running


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as one:
        yield one
