"""Imports packages of extras, and names the extra of one that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import MissingPackage


@contextmanager
def requires(package: str, extra: str, distribution: str = "") -> Iterator[None]:
    """Turn the failed import of a package into MissingPackage, which has the command.

    distribution: the name of the package on PyPI, if that is another.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingPackage(distribution or package, extra) from None
