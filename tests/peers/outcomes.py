"""What becomes of the tests of a suite."""

from __future__ import annotations

from typing import Final

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

Outcomes = dict[str, str]
"""PASSED, FAILED or SKIPPED, by the name of a test."""
