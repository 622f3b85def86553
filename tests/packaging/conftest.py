"""Builds of these tests are quick ones: what they compile is run once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(scope="package", autouse=True)
def _quick_builds() -> Iterator[None]:
    with patch.dict(os.environ, {"KAFKAWIRE_COMPILE_OPTIMISATION": "0"}):
        yield
