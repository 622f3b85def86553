"""The names in requests of a run: all begin with its prefix, so that nothing of others changes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from ..messages.api_key import ApiKey
from ..primitives import ZERO_UUID

SPARE: Final = 4
"""Topics and groups of each kind that requests may create and delete."""
KINDS: Final = ("CONSUMER", "SHARE", "STREAMS")
"""Kinds of groups, as in names of APIs; others use classic groups."""
LONGEST: Final = 249
"""Characters of a topic's name, at most."""
BOUNDARIES: Final = (
    "",
    " ",
    ".",
    "/../x",
    "é" * 20,
    "\N{ZERO WIDTH JOINER}\N{PILE OF POO}",
    "\0",
    "\x1b[31m",
    "*",
    "__consumer_offsets",
)
"""What follows the prefix in unusual names."""


@dataclass(frozen=True)
class Names:
    """The names of a run.

    prefix: of every name. topic, topic_id: of the topic that exists throughout the run.
    """

    prefix: str
    topic: str
    topic_id: bytes = ZERO_UUID

    def of(self, entity_type: str, api: ApiKey, rng: random.Random, case: int) -> str:
        """Draw a usual name of an entity; case: its number."""
        number = rng.randrange(SPARE)
        match entity_type:
            case "groupId":
                kind = next((each for each in KINDS if each in api.name), "classic").lower()
                # a member waits for others of its group: a group for each JoinGroup
                return f"{self.prefix}-{kind}-{case if api is ApiKey.JOIN_GROUP else number}"
            case "transactionalId":
                return f"{self.prefix}-transaction-{number}"
            case _ if api is ApiKey.DELETE_TOPICS or rng.random() < 0.4:
                return f"{self.prefix}-spare-{number}"
            case _:
                return self.topic

    def id(self, api: ApiKey, rng: random.Random) -> bytes:
        """Draw the id of a topic."""
        if api is ApiKey.DELETE_TOPICS or rng.random() < 0.3:
            return rng.choice((ZERO_UUID, rng.randbytes(len(ZERO_UUID))))
        return self.topic_id

    def unusual(self, rng: random.Random) -> str:
        """Draw a name at the boundaries of what names may be."""
        size = rng.choice((LONGEST, LONGEST + 1, 0x7FFF))
        filled = f"{self.prefix}-".ljust(size, "x")
        return rng.choice((filled, *(f"{self.prefix}-{each}" for each in BOUNDARIES)))
