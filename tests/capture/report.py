"""Every capture against its truth, as a table: `python -m tests.capture.report` (`make captures`).

Exit code 1 if a message is missing, invented or in the wrong place anywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.recordings import THIRD_PARTY

from .bodies import bodies, files
from .comparison import Verdict, cases, compare

HEAD = "capture", *Verdict._fields[1:]
"""Columns: as in `Verdict`."""


def main() -> int:
    """Print the table; return the exit code."""
    verdicts: list[Verdict] = []
    print(_line(HEAD))
    for case in cases():
        verdicts.append(compare(case))
        print(_line(verdicts[-1]), flush=True)
    for path in files():
        verdicts.append(_of_bodies(path))
        print(_line(verdicts[-1]), flush=True)
    total = Verdict("total", *(sum(column) for column in list(zip(*verdicts, strict=True))[1:]))
    print(_line(total))
    print(f"{len(verdicts)} captures and files of bodies, {total.faults} faults")
    if not THIRD_PARTY.exists():
        print("only those of this repository: captures of others are not beside the checkout")
    return min(total.faults, 1)


def _of_bodies(path: Path) -> Verdict:
    """Hold fixtures against themselves; those that are no message count as beyond reach."""
    found = missing = beyond = 0
    for body in bodies(path):
        whole = bool(body.versions)
        found += whole
        beyond += not whole and body.broken is not None
        missing += not whole and body.broken is None
    return Verdict(path.stem, found + missing + beyond, found, beyond, missing, 0, 0, 0, 0, 0)


def _line(values: tuple[object, ...]) -> str:
    first, *rest = values
    widths = (len(name) + 2 for name in HEAD[1:])
    cells = (f"{value:>{width}}" for value, width in zip(rest, widths, strict=True))
    return f"{first:30}" + "".join(cells)


if __name__ == "__main__":
    sys.exit(main())
