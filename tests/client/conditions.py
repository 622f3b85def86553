"""How unreliable a network is, and one connection over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass
class NetworkConditions:
    """How unreliable the network is.

    delay_s: maximum delay of a chunk. split: probability that a chunk is split. reset: probability
    that a chunk resets its connection.
    """

    delay_s: float = 0.02
    split: float = 0.2
    reset: float = 0.0

    def parts(self, data: bytes, random: Random) -> list[bytes]:
        """Cut bytes as they will arrive."""
        parts = [data]
        while random.random() < self.split and len(parts[-1]) > 1:
            last = parts.pop()
            cut = random.randrange(1, len(last))
            parts += [last[:cut], last[cut:]]
        return parts


@dataclass
class Pipe:
    """One connection: number is the simulation's; client and local identify the client's end.

    reached: whether the broker knows it.
    """

    number: int
    client: str
    local: int
    node: int
    open: bool = True
    reached: bool = False
    arrives: dict[str, float] = field(default_factory=lambda: {"up": 0.0, "down": 0.0})
