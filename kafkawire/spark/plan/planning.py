"""What a job is to do: the files of each set in order, their parts, and what can be decoded where
it lies.

Law: the order of the files of a set is that of their first packets, then of their names, whatever
order they were given in; parts are proven, so that packets have their numbers before any is
decoded.

    inputs --> files --cut--> splits --order, look through--> parts, regions --> Plan
                                on the workers, if there is much to read
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ...errors import CaptureError, UnsupportedLinkType
from ..decode.packets import Mixed, Placing, is_among
from ..decode.tasks import begin_workers, on_workers
from ..errors import NoCaptures
from ..options import SPLIT_BYTES, Options, unknown
from ..splitting import Edge, InputFile, Proof, Split, Stitched, inputs, prove
from . import verdicts
from .connection_index import Seen, Sharing, in_herds, look, shares
from .opening import chosen, opened, raise_first
from .parts import Part, Region, Visit
from .verdicts import FileStatus, LeftOut, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


class Run(Protocol):
    """Calls a function for each item; results in the order of the items."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]: ...


MUCH: Final = 1 << 28
"""Bytes of inputs from which on workers plan them."""

NEAR: Final = 1 << 30
"""The same of local files: the driver looks through them while workers start."""

TASK_BYTES: Final = 32 << 20
"""Bytes of inputs that are worth a task: small files and splits share one."""

PARTITION_BYTES: Final = 32 << 20
"""Bytes of inputs for which there is a bucket of connections."""

LEAST_SPLIT: Final = 8 << 20

LOOKS: Final = 4
"""Tasks for each core that look through splits, which takes no longer than to start a task."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Files by set and in their order there, the set of each, and the parts of all of them.

    regions: the same parts by the task that reads them; visits: what is read of them for
    connections that do not move. large: connections (mixed) that move and have many bytes;
    handed: bytes of all that move. fragments: whether IP datagrams come in pieces. tells: whether
    something is to be said of files. verdicts: of each file; left_out: inputs that are not among
    the files, as nothing of them is read.
    """

    files: tuple[InputFile, ...]
    sets: tuple[int, ...]
    parts: tuple[Part, ...]
    regions: tuple[Region, ...] = ()
    visits: tuple[Visit, ...] = ()
    large: tuple[int, ...] = ()
    handed: int = 0
    fragments: bool = False
    tells: bool = False
    verdicts: tuple[Verdict, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def names(self) -> list[str]:
        """What the files are called."""
        return [file.name for file in self.files]

    @property
    def bytes(self) -> int:
        """How much there is to read, as it is stored."""
        return sum(file.size for file in self.files)

    @property
    def moves(self) -> bool:
        """Whether anything goes from one task to another."""
        gone = self.visited
        return self.tells or any(
            one.moved is None or not is_among(gone, one.moved).all() for one in self.regions
        )

    @property
    def stays(self) -> bool:
        """Whether anything is decoded where it lies."""
        return any(one.moved is not None for one in self.regions)

    @property
    def visited(self) -> Mixed:
        """List the connections that do not move, sorted."""
        return in_herds(self.visits)

    def placing(self, count: int) -> Placing:
        """Say which bucket a connection is in, of so many; large ones have one of their own."""
        return Placing(count, self.large[: count // 2], self.visited)


def make_plan(
    spark: SparkSession | None,
    paths: Iterable[str],
    options: Options,
    *,
    whole: bool = False,
    to_store: bool = False,
    lenient: bool = False,
) -> Plan:
    """Plan the reading of captures; without a session, here. whole: files are not cut. to_store:
    options that nobody knows may be those of the store that is written to. lenient: inputs that are
    not there, may not be read or are not captures are left out, and the rest is planned.

    Raises FileNotFoundError where nothing is found, PermissionError for a file that may not be
    read; BadOption for an unknown option; Unreadable for a file that is not a capture, where
    `failOnError` asks for it; OSError.
    """
    lenient = lenient and not options.fail_on_error
    left_out: list[LeftOut] = []

    def missing(given: str, error: FileNotFoundError) -> None:
        reason = str(error).removeprefix(f"{given}: ")
        left_out.append(LeftOut(given, Verdict(FileStatus.UNREADABLE, reason, None, 1)))

    files = inputs(paths, options.others, missing=missing if lenient else None)
    cores = 1 if spark is None else spark.sparkContext.defaultParallelism
    near = all(file.store.is_local for file in files)
    if near and not to_store:
        for name in options.others:  # that no store is there to take
            unknown(name)
    much = spark is not None and sum(file.size for file in files) >= (NEAR if near else MUCH)
    if spark is not None and not much:
        begin_workers(spark)
    size = options.split_bytes or split_bytes(spark, files)

    def run(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if much and spark is not None and len(items) > 1:
            return on_workers(spark, function, items, LOOKS * cores)
        return [function(item) for item in items]

    # Looking through splits proves their starts, too; only without workers it is walked before.
    walk = sum(file.size for file in files) < MUCH
    tried = run(partial(opened, size=None if whole else size, walk=walk, lenient=lenient), files)
    begun, unread = chosen(tried, lenient=lenient)
    left_out += unread
    of = options.sets.of
    order = sorted(begun, key=lambda each: (of(each.file.name), each.first_ns, each.file.name))
    keys = [of(each.file.name) for each in order]
    places = {name: at for at, name in enumerate(dict.fromkeys(keys))}
    if options.fail_on_error:
        raise_first(begun, left_out)
    parts = [
        Part(at, places[key], split)
        for at, (key, each) in enumerate(zip(keys, order, strict=True))
        for split in each.splits
    ]
    cut = Plan(
        tuple(each.file for each in order),
        tuple(places[key] for key in keys),
        (*parts,),
        verdicts=tuple(each.verdict for each in order),
        left_out=(*left_out,),
    )
    sharing = Sharing(cores, options.chunk_bytes, options.partitions is not None)
    return cut if whole else looked_through(cut, run, size, sharing)


def looked_through(cut: Plan, run: Run, size: int, sharing: Sharing) -> Plan:
    """Prove the parts of a plan, and find out what can be decoded where it lies; run: calls a
    function for each item, anywhere; size: bytes that a task reads.
    """
    places = {part.split.file: part for part in cut.parts}
    known: dict[tuple[InputFile, int, Edge | None], Seen] = {}

    def proofs(splits: Sequence[Split]) -> list[Proof]:
        told = run(look, [(split, places[split.file].set) for split in splits])
        found = [seen.proof for seen in told]
        keys = [(proof.split.file, proof.split.ordinal, proof.start) for proof in found]
        known.update(zip(keys, told, strict=True))
        return found

    stitched = prove([part.split for part in cut.parts], proofs)
    packets = Counter[InputFile]()
    for proof in stitched.proven:
        packets[proof.split.file] += proof.packets
    proven = stitched.splits
    every = [known[split.file, split.ordinal, split.start] for split in proven]
    parts = [
        replace(places[split.file], split=split, packets=packets[split.file]) for split in proven
    ]
    bounds = [0]
    held = 0
    for at, seen in enumerate(every, 1):
        held += seen.bytes
        if 4 * held >= 3 * size or at == len(every):  # headers of the file are not counted
            bounds.append(at)
            held = 0
    stretches = list(pairwise(bounds))
    total = sum(seen.bytes for seen in every)
    shared = shares([every[start:end] for start, end in stretches], sharing)
    visited = in_herds(shared.herds)  # where that is all of a region, nobody else reads it
    regions = [
        Region((*parts[start:end],), moved)
        for (start, end), moved in zip(stretches, shared.moved, strict=True)
        if any(seen.tells or not is_among(visited, seen.numbers).all() for seen in every[start:end])
    ]
    return replace(
        cut,
        parts=(*parts,),
        regions=(*regions,),
        visits=tuple(
            Visit(ids, tuple(parts[at] for at in places), size > sharing.too_large(total))
            for ids, size, places in shared.herds
        ),
        large=shared.large,
        handed=shared.handed,
        fragments=any(seen.fragments for seen in every),
        tells=any(seen.tells for seen in every),
        verdicts=judged(cut, stitched, every),
    )


def judged(cut: Plan, stitched: Stitched, every: Iterable[Seen]) -> tuple[Verdict, ...]:
    """Judge each file by what all of its splits show."""
    problems = {file: list(found) for file, found in stitched.problems.items()}
    links: dict[InputFile, dict[str, CaptureError]] = {}
    for seen in every:
        known = links.setdefault(seen.proof.split.file, {})
        for problem in seen.links:
            known.setdefault(problem.reason, problem)
    for file, found in links.items():
        mine = problems.setdefault(file, [])
        said = {each.reason for each in mine if isinstance(each, UnsupportedLinkType)}
        mine += [problem for reason, problem in found.items() if reason not in said]
    return tuple(
        verdicts.of_problems(problems.get(file, [])) if verdict.status is FileStatus.OK else verdict
        for file, verdict in zip(cut.files, cut.verdicts, strict=True)
    )


def split_bytes(spark: SparkSession | None, files: Sequence[InputFile]) -> int:
    """Say how large splits are: enough of them for all cores, where there is little to read."""
    cores = 1 if spark is None else spark.sparkContext.defaultParallelism
    total = sum(file.size for file in files)
    return max(LEAST_SPLIT, min(SPLIT_BYTES, -(-total // (2 * cores))))


def require_files(plan: Plan) -> Plan:
    """Return a plan that has files. Raises NoCaptures where all inputs were left out."""
    if not plan.files:
        raise NoCaptures(len(plan.left_out), "".join(map(str, plan.left_out[:1])))
    return plan


def complaints(plan: Plan) -> list[str]:
    """Name each input that was not read as a whole, and say why."""
    read = (LeftOut(*each) for each in zip(plan.names, plan.verdicts, strict=True))
    return [str(one) for one in (*read, *plan.left_out) if one.verdict.status is not FileStatus.OK]


def numbers(spark: SparkSession, count: int, tasks: int | None = None) -> Any:
    """Make a frame of the numbers below `count`, in so many partitions: one for each, if not said
    otherwise.
    """
    return spark.range(0, count, 1, max(1, min(count, tasks or count)))
