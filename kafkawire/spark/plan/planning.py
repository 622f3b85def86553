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
from ..decode.packets import Hashes, Partitioner, is_among
from ..decode.tasks import begin_workers, on_workers
from ..errors import NoCaptures
from ..options import SPLIT_BYTES, Options, unknown
from ..splitting import Edge, InputFile, Proof, Split, Stitched, inputs, prove
from . import verdicts
from .connection_index import Sharing, SplitIndex, connection_ids, index_split, place_connections
from .opening import choose_files, open_input, raise_first
from .parts import Part, Region, Visit
from .verdicts import FileStatus, SkippedInput, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


class Run(Protocol):
    """Calls a function for each item; results in the order of the items."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]: ...


REMOTE_PLANNING_BYTES: Final = 1 << 28
"""Bytes of inputs from which on workers plan them."""

LOCAL_PLANNING_BYTES: Final = 1 << 30
"""The same of local files: the driver looks through them while workers start."""

TASK_BYTES: Final = 32 << 20
"""Bytes of inputs that are worth a task: small files and splits share one."""

PARTITION_BYTES: Final = 32 << 20
"""Bytes of inputs for which there is a bucket of connections."""

LEAST_SPLIT: Final = 8 << 20

INDEX_TASKS_PER_CORE: Final = 4
"""Tasks for each core that look through splits, which takes no longer than to start a task."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Files by set and in their order there, the set of each, and the parts of all of them.

    regions: the same parts by the task that reads them; visits: what is read of them for
    connections that do not move. large: connections (mixed) that move and have many bytes;
    handed: bytes of all that move. fragments: whether IP datagrams come in pieces. tells: whether
    something is to be said of files. verdicts: of each file; skipped: inputs that are not among
    the files, as nothing of them is read.
    """

    files: tuple[InputFile, ...]
    sets: tuple[int, ...]
    parts: tuple[Part, ...]
    regions: tuple[Region, ...] = ()
    visits: tuple[Visit, ...] = ()
    large: tuple[int, ...] = ()
    shuffled_bytes: int = 0
    fragments: bool = False
    has_problems: bool = False
    verdicts: tuple[Verdict, ...] = ()
    skipped: tuple[SkippedInput, ...] = ()

    @property
    def names(self) -> list[str]:
        """What the files are called."""
        return [file.name for file in self.files]

    @property
    def bytes(self) -> int:
        """How much there is to read, as it is stored."""
        return sum(file.size for file in self.files)

    @property
    def shuffles(self) -> bool:
        """Whether anything goes from one task to another."""
        visited = self.visited
        return self.has_problems or any(
            one.shuffled is None or not is_among(visited, one.shuffled).all()
            for one in self.regions
        )

    @property
    def decodes_in_place(self) -> bool:
        """Whether anything is decoded where it lies."""
        return any(one.shuffled is not None for one in self.regions)

    @property
    def visited(self) -> Hashes:
        """List the connections that do not move, sorted."""
        return connection_ids(self.visits)

    def partitioner(self, count: int) -> Partitioner:
        """Say which bucket a connection is in, of so many; large ones have one of their own."""
        return Partitioner(count, self.large[: count // 2], self.visited)


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
    skipped: list[SkippedInput] = []

    def missing(given: str, error: FileNotFoundError) -> None:
        reason = str(error).removeprefix(f"{given}: ")
        skipped.append(SkippedInput(given, Verdict(FileStatus.UNREADABLE, reason, None, 1)))

    files = inputs(paths, options.others, missing=missing if lenient else None)
    cores = 1 if spark is None else spark.sparkContext.defaultParallelism
    local = all(file.store.is_local for file in files)
    if local and not to_store:
        for name in options.others:  # that no store is there to take
            unknown(name)
    on_executors = spark is not None and sum(file.size for file in files) >= (
        LOCAL_PLANNING_BYTES if local else REMOTE_PLANNING_BYTES
    )
    if spark is not None and not on_executors:
        begin_workers(spark)
    size = options.split_bytes or split_bytes(spark, files)

    def run(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if on_executors and spark is not None and len(items) > 1:
            return on_workers(spark, function, items, INDEX_TASKS_PER_CORE * cores)
        return [function(item) for item in items]

    # Looking through splits proves their starts, too; only without workers it is walked before.
    walk = sum(file.size for file in files) < REMOTE_PLANNING_BYTES
    inputs_opened = run(
        partial(open_input, size=None if whole else size, walk=walk, lenient=lenient), files
    )
    readable, unread = choose_files(inputs_opened, lenient=lenient)
    skipped += unread
    set_of = options.sets.of
    order = sorted(
        readable, key=lambda each: (set_of(each.file.name), each.first_ns, each.file.name)
    )
    keys = [set_of(each.file.name) for each in order]
    places = {name: at for at, name in enumerate(dict.fromkeys(keys))}
    if options.fail_on_error:
        raise_first(readable, skipped)
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
        skipped=(*skipped,),
    )
    sharing = Sharing(cores, options.chunk_bytes, options.partitions is not None)
    return cut if whole else with_placement(cut, run, size, sharing)


def with_placement(cut: Plan, run: Run, size: int, sharing: Sharing) -> Plan:
    """Prove the parts of a plan, and find out what can be decoded where it lies; run: calls a
    function for each item, anywhere; size: bytes that a task reads.
    """
    places = {part.split.file: part for part in cut.parts}
    known: dict[tuple[InputFile, int, Edge | None], SplitIndex] = {}

    def proofs(splits: Sequence[Split]) -> list[Proof]:
        indexes = run(index_split, [(split, places[split.file].set) for split in splits])
        found = [index.proof for index in indexes]
        keys = [(proof.split.file, proof.split.ordinal, proof.start) for proof in found]
        known.update(zip(keys, indexes, strict=True))
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
    for at, index in enumerate(every, 1):
        held += index.bytes
        if 4 * held >= 3 * size or at == len(every):  # headers of the file are not counted
            bounds.append(at)
            held = 0
    ranges = list(pairwise(bounds))
    total = sum(index.bytes for index in every)
    placement = place_connections([every[start:end] for start, end in ranges], sharing)
    visited = connection_ids(
        placement.visits
    )  # where that is all of a region, nobody else reads it
    regions = [
        Region((*parts[start:end],), shuffled)
        for (start, end), shuffled in zip(ranges, placement.shuffled, strict=True)
        if any(
            index.has_problems or not is_among(visited, index.numbers).all()
            for index in every[start:end]
        )
    ]
    return replace(
        cut,
        parts=(*parts,),
        regions=(*regions,),
        visits=tuple(
            Visit(ids, tuple(parts[at] for at in places), size > sharing.too_large(total))
            for ids, size, places in placement.visits
        ),
        large=placement.large,
        shuffled_bytes=placement.shuffled_bytes,
        fragments=any(index.fragments for index in every),
        has_problems=any(index.has_problems for index in every),
        verdicts=judge_files(cut, stitched, every),
    )


def judge_files(cut: Plan, stitched: Stitched, every: Iterable[SplitIndex]) -> tuple[Verdict, ...]:
    """Judge each file by what all of its splits show."""
    problems = {file: list(found) for file, found in stitched.problems.items()}
    links: dict[InputFile, dict[str, CaptureError]] = {}
    for index in every:
        known = links.setdefault(index.proof.split.file, {})
        for problem in index.links:
            known.setdefault(problem.reason, problem)
    for file, found in links.items():
        mine = problems.setdefault(file, [])
        reported = {each.reason for each in mine if isinstance(each, UnsupportedLinkType)}
        mine += [problem for reason, problem in found.items() if reason not in reported]
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
        raise NoCaptures(len(plan.skipped), "".join(map(str, plan.skipped[:1])))
    return plan


def input_warnings(plan: Plan) -> list[str]:
    """Name each input that was not read as a whole, and say why."""
    read = (SkippedInput(*each) for each in zip(plan.names, plan.verdicts, strict=True))
    return [str(one) for one in (*read, *plan.skipped) if one.verdict.status is not FileStatus.OK]


def number_frame(spark: SparkSession, count: int, tasks: int | None = None) -> Any:
    """Make a frame of the numbers below `count`, in so many partitions: one for each, if not said
    otherwise.
    """
    return spark.range(0, count, 1, max(1, min(count, tasks or count)))
