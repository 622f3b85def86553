"""Runs conformance checks against a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kafkawire.client.config import read_config
from kafkawire.conformance.behaviour import Behaviour
from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.connection import Target
from kafkawire.conformance.run import Outcome, Result, run
from kafkawire.net.admin import ADMIN_KEYS
from kafkawire.net.server import ServerConfig

PREFIX: Final = "conformance-test"
WITHOUT_DELAY: Final = {"group.initial.rebalance.delay.ms": "0"}


def config(**fields: object) -> ServerConfig:
    """A broker whose groups do not wait for more members."""
    return ServerConfig(settings=WITHOUT_DELAY, **fields)  # type: ignore[arg-type]


def checked(
    bootstrap: str,
    behaviours: Iterable[Behaviour] = ALL,
    captures: Path | None = None,
    timeout_s: float = 30.0,
) -> list[Result]:
    """Check behaviours of a broker."""
    values = read_config(ADMIN_KEYS, {"bootstrap.servers": bootstrap})
    return asyncio.run(run(Target(values, timeout_s), behaviours, PREFIX, captures))


def problems(results: Iterable[Result]) -> list[str]:
    """Describe the checks that failed, and what was not deleted."""
    return [
        f"{each.behaviour.api.name} {each.version} {each.behaviour.name}: {each.detail} {each.left}"
        for each in results
        if each.outcome is Outcome.FAILED or each.left
    ]
