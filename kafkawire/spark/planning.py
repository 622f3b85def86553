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
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from ..capture.blocks import NO_TIME
from .errors import Unreadable
from .options import SPLIT_BYTES, Options, unknown
from .packets import Mixed, Placing, is_among
from .parts import Part, Region, Visit
from .presence import Seen, Sharing, in_herds, look, shares
from .splitting import Edge, InputFile, Proof, Split, inputs, plan, prove, read
from .tasks import begin_workers, on_workers

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
    something is to be said of files.
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
) -> Plan:
    """Plan the reading of captures; without a session, here. whole: files are not cut. to_store:
    options that nobody knows may be those of the store that is written to.

    Raises FileNotFoundError where nothing is found; BadOption for an option that nobody knows;
    Unreadable for a file that is no capture, where `failOnError` asks for it; OSError.
    """
    files = inputs(paths, options.others)
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
    begun = run(partial(opened, size=None if whole else size, walk=walk), files)
    of = options.sets.of
    order = sorted(begun, key=lambda each: (of(each.file.name), each.first_ns, each.file.name))
    keys = [of(each.file.name) for each in order]
    places = {name: at for at, name in enumerate(dict.fromkeys(keys))}
    for each in order:
        if options.fail_on_error and each.problem is not None:
            raise Unreadable(each.file.name, each.problem)
    parts = [
        Part(at, places[key], split)
        for at, (key, each) in enumerate(zip(keys, order, strict=True))
        for split in each.splits
    ]
    cut = Plan(tuple(each.file for each in order), tuple(places[key] for key in keys), (*parts,))
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
    )


def split_bytes(spark: SparkSession | None, files: Sequence[InputFile]) -> int:
    """Say how large splits are: enough of them for all cores, where there is little to read."""
    cores = 1 if spark is None else spark.sparkContext.defaultParallelism
    total = sum(file.size for file in files)
    return max(LEAST_SPLIT, min(SPLIT_BYTES, -(-total // (2 * cores))))


class Opened(NamedTuple):
    """A file, its splits, when its first packet was captured (NO_TIME without any), and what is
    wrong if there is none.
    """

    file: InputFile
    splits: list[Split]
    first_ns: int
    problem: str | None


def opened(file: InputFile, size: int | None, *, walk: bool) -> Opened:
    """Cut a file, where there is a size; walk: as `splitting.plan`, for a local one."""
    splits = [as_one(file)] if size is None else plan(file, size, walk=None if walk else False)
    return Opened(file, splits, *begins(splits))


def as_one(file: InputFile) -> Split:
    """Make one split of a file."""
    return Split(file, whole=True, start=Edge(0), first=1)


def begins(splits: Sequence[Split]) -> tuple[int, str | None]:
    """Say when a file's first packet was captured, or NO_TIME and what is wrong with it."""
    said = None
    for split in splits:
        reading = read(split)
        for block in reading:
            if len(block):
                return int(block.ts[0]), None
        said = next(map(str, reading.proof.problems), said)
    return NO_TIME, said


def numbers(spark: SparkSession, count: int, tasks: int | None = None) -> Any:
    """Make a frame of the numbers below `count`, in so many partitions: one for each, if not said
    otherwise.
    """
    return spark.range(0, count, 1, max(1, min(count, tasks or count)))
