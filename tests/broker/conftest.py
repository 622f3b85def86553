"""Fails tests in which the broker logs an unexpected error."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_unexpected_errors(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> Iterator[None]:
    """An exception in the broker becomes an error response: tests must notice it."""
    yield
    if "expected_errors" not in request.fixturenames:
        assert errors_of(caplog) == []


@pytest.fixture
def expected_errors(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """For tests that cause errors: the log."""
    return caplog


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors that the broker has logged."""
    return [
        f"{each.getMessage()}\n{each.exc_text or ''}"
        for each in caplog.records
        if each.name == "kafkawire.broker" and each.levelno >= logging.ERROR
    ]
