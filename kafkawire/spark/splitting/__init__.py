"""Cuts captures into splits that are read independently.

It proves that together they give what one reader would have read.

For every file and every `split_bytes`, the packets of the splits, concatenated, are the
packets of `read_capture`: bytes, times, links, numbers; and the problems are its problems. What a
split guesses about its start is not used until `stitch` has proven it.

    files = inputs(["s3://bucket/captures", "/data/*.pcap"], options)
    splits = plan(file, split_bytes)           local: starts known; otherwise guessed later
    stitched = prove(splits, run)              run: splits -> proofs, by `probe`, on any machine
    stitched.splits, stitched.problems         proven and numbered; read them in any order:
    reading = read(split)                      iterate: packet blocks; then reading.proof

Or in one pass: read every split, keep its results beside `reading.proof`, `stitch` the proofs, and
read the splits in `.redo` again until it is empty. `first` of a block counts from `split.first`, or
from 1 if that is not known yet; `stitched.splits` have it.
"""

from .listing import inputs
from .planning import plan
from .reading import Reading, probe, read
from .splits import END, Edge, Mark, Proof, Split
from .stitching import Stitched, prove, stitch
from .stores import InputFile, Store

__all__ = [
    "END",
    "Edge",
    "InputFile",
    "Mark",
    "Proof",
    "Reading",
    "Split",
    "Stitched",
    "Store",
    "inputs",
    "plan",
    "probe",
    "prove",
    "read",
    "stitch",
]
