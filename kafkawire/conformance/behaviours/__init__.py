"""The behaviours that are checked, by subject."""

from __future__ import annotations

from typing import Final

from ..behaviour import Behaviour
from . import (
    apis,
    committed_offsets,
    consumer_groups,
    fetching,
    groups,
    offsets,
    producing,
    streams_groups,
    topics,
    transactions,
)

ALL: Final[tuple[Behaviour, ...]] = (
    *apis.BEHAVIOURS,
    *topics.BEHAVIOURS,
    *producing.BEHAVIOURS,
    *fetching.BEHAVIOURS,
    *offsets.BEHAVIOURS,
    *groups.BEHAVIOURS,
    *committed_offsets.BEHAVIOURS,
    *consumer_groups.BEHAVIOURS,
    *streams_groups.BEHAVIOURS,
    *transactions.BEHAVIOURS,
)
