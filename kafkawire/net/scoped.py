"""The async context manager of clients and servers.

Leaving the block closes them, whatever happened in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Scoped(ABC):
    """What is started, used and closed on one loop."""

    @abstractmethod
    async def start(self) -> None:
        """Start; `async with` calls it."""

    @abstractmethod
    async def close(self) -> None:
        """Close; `async with` calls it."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
