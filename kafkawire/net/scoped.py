"""What `async with` opens and closes: each of the clients.

Law: leaving the block closes, whatever happened in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Scoped(ABC):
    """Something that is started, used and closed in one loop."""

    @abstractmethod
    async def start(self) -> None:
        """Open; `async with` does it."""

    @abstractmethod
    async def close(self) -> None:
        """Close; `async with` does it."""

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
