"""Writes a capture of varied traffic."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import capture
from .network import Damage


def main() -> None:
    """Write a capture."""
    parser = argparse.ArgumentParser(prog="benchmarks.varied", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("megabytes", type=int, help="of 10^6 bytes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets not captured")
    parser.add_argument(
        "--reordering", type=float, default=0.0, help="share of packets captured after the next"
    )
    chosen = parser.parse_args()
    damage = Damage(chosen.loss, chosen.reordering)
    with chosen.out.open("wb", buffering=1 << 20) as out:
        for piece in capture(chosen.megabytes * 10**6, chosen.seed, damage):
            out.write(piece)


if __name__ == "__main__":
    main()
