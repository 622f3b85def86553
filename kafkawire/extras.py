"""Imports packages of extras, and names the extra of one that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import MissingPackage


@contextmanager
def requires(package: str, extra: str) -> Iterator[None]:
    """Turn the failed import of a package into MissingPackage, which has the command."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingPackage(package, extra) from None
