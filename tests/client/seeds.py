"""Which seeds are played: a thousand, or those that the environment names.

KAFKAWIRE_SEEDS=50 plays 50 of them; KAFKAWIRE_SEED=7 plays seed 7 and no other, to the byte as it
was played before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

SEEDS: Sequence[int] = range(int(os.environ.get("KAFKAWIRE_SEEDS", "1000")))
if "KAFKAWIRE_SEED" in os.environ:
    SEEDS = (int(os.environ["KAFKAWIRE_SEED"]),)


def chunk(part: int, chunks: int) -> Sequence[int]:
    """Give one of several equal parts of the seeds."""
    return SEEDS[part * len(SEEDS) // chunks : (part + 1) * len(SEEDS) // chunks]


@contextmanager
def told(seed: int) -> Iterator[None]:
    """Let whatever fails say which seed it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}: KAFKAWIRE_SEED={seed} plays it again")
        raise
