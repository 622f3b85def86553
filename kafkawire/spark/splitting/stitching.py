"""Proves guessed starts: every split must start where the one before it ended.

The result is what one reader from the start would have found, by induction: the first start is
certain, and an end that follows from a certain start is certain.

    split 0   |start ........ end|
    split 1                      |start ...... end|         equal: proven
    split 2                                       X  |start ... end|     not equal: read again
                                                  ^ from here
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import CaptureError, UnsupportedLinkType
from .splits import END, Edge, Proof, Split
from .stores import InputFile


@dataclass(frozen=True, slots=True)
class Stitched:
    """What proofs show together.

    proven: the splits that have packets or problems, numbered, each with its valid proof, in the
    order of files and packets; all of them if `redo` is empty. redo: splits to read again, from
    their real starts.
    """

    proven: tuple[Proof, ...]
    redo: tuple[Split, ...]

    @property
    def splits(self) -> list[Split]:
        """The proven splits: start and first are known."""
        return [proof.split for proof in self.proven]

    @property
    def problems(self) -> dict[InputFile, list[CaptureError]]:
        """The problems of each file, as the serial reader reports them."""
        problems: dict[InputFile, list[CaptureError]] = {}
        for proof in self.proven:
            of_file = problems.setdefault(proof.split.file, [])
            of_file += _news(of_file, proof.problems)
        return problems


def stitch(proofs: Iterable[Proof]) -> Stitched:
    """Compare the ends of splits with the starts of the next.

    proofs: of all splits of any files, in any order; of a split that was read again, all of them.
    """
    files: dict[InputFile, dict[int, list[Proof]]] = {}
    for proof in proofs:
        file = files.setdefault(proof.split.file, defaultdict(list))
        file[proof.split.ordinal].append(proof)
    proven: list[Proof] = []
    redo: list[Split] = []
    for file in files.values():
        _stitch_file([file[ordinal] for ordinal in sorted(file)], proven, redo)
    return Stitched(tuple(proven), tuple(redo))


def prove(splits: Sequence[Split], run: Callable[[Sequence[Split]], Iterable[Proof]]) -> Stitched:
    """Read splits, and read those that were guessed wrong again, until all are proven.

    run: reads splits and returns their proofs, in any order: `map(probe, splits)`, or the same on
    many machines.
    """
    proofs = list(run(splits))
    while (stitched := stitch(proofs)).redo:
        proofs += run(stitched.redo)
    return stitched


def _stitch_file(parts: list[list[Proof]], proven: list[Proof], redo: list[Split]) -> None:
    """Walk the splits of a file, each with its proofs.

    After the first split that must be read again nothing is certain, but its end is probably right
    (a wrong start soon resynchronises), so the following splits are checked on that assumption.
    """
    expected: Edge | None = parts[0][0].split.start
    assert expected is not None
    first, certain = 1, True
    for tries in parts:
        split = tries[0].split
        if expected.position >= split.high:
            continue
        proof = next((each for each in tries if each.start == expected), None)
        if proof is None:
            certain = False
            redo.append(replace(split, start=expected, first=None))
            expected = _probable_end(tries, expected)
            if expected is None:
                return
            continue
        if certain:
            numbered = replace(split, start=expected, first=first)
            proven.append(replace(proof, split=numbered, start=numbered.start))
            first += proof.packets
        expected = proof.end


def _probable_end(tries: list[Proof], start: Edge) -> Edge | None:
    """Return the probable end of a split that is to be read from another start."""
    for proof in tries:
        if proof.start is None or proof.end.position == END:
            continue
        guessed, end = proof.start, proof.end
        learned = end.interfaces[len(guessed.interfaces) :]
        if end.order == guessed.order and end.interfaces == guessed.interfaces + learned:
            return replace(end, order=start.order, interfaces=start.interfaces + learned)
        return end
    return None


def _news(earlier: list[CaptureError], problems: Iterable[CaptureError]) -> Iterator[CaptureError]:
    """Skip interfaces that were already reported: each split reports them, a file does once."""
    reported = {each.reason for each in earlier if isinstance(each, UnsupportedLinkType)}
    for problem in problems:
        if not isinstance(problem, UnsupportedLinkType) or problem.reason not in reported:
            yield problem
