"""Plans a job: the files of each set in order, their parts, and what can be decoded in place.

Law: the files of a set are ordered by the time of their first packet, then by name, in whatever
order they were given. Splits are proven, so packets have their numbers before any is decoded.

    inputs --> files --cut--> splits --order, index--> parts, regions --> Plan
                                on the executors, if there is much to read
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from ...errors import CaptureError, UnsupportedLinkType
from ..errors import NoCaptures
from ..options import SPLIT_BYTES, Options, unknown
from ..shuffle.packets import Hashes, Partitioner, is_among
from ..shuffle.tasks import Run, begin_workers, core_count, on_workers
from ..splitting import Edge, InputFile, Proof, Split, Stitched, inputs, prove
from . import verdicts
from .connection_index import Sharing, SplitIndex, connection_ids, index_split, place_connections
from .opening import OpenedInput, choose_files, open_input, raise_first
from .parts import Part, Region, Visit
from .verdicts import FileStatus, SkippedInput, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


REMOTE_PLANNING_BYTES: Final = 1 << 28
"""From so many bytes of inputs on, executors do the planning."""

LOCAL_PLANNING_BYTES: Final = 1 << 30
"""The same for local files: the driver indexes them while workers start."""

TASK_BYTES: Final = 32 << 20
"""Bytes of inputs that justify a task: small files and splits share one."""

PARTITION_BYTES: Final = 32 << 20
"""Bytes of inputs for each bucket of connections."""

LEAST_SPLIT: Final = 8 << 20

INDEX_TASKS_PER_CORE: Final = 4
"""Tasks for each core that index splits: indexing takes no longer than starting a task."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Files by set and in order, the set of each, and the parts of all files.

    regions: the parts by the task that reads them; visits: the connections that are read in place.
    large: hashes of shuffled connections with many bytes; shuffled_bytes: bytes of all shuffled
    connections. fragments: whether there are IP fragments. has_problems: whether there are problems
    of files to report. verdicts: of each file; skipped: inputs that are not read.
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
        """The names of the files."""
        return [file.name for file in self.files]

    @property
    def bytes(self) -> int:
        """The size of the files as stored."""
        return sum(file.size for file in self.files)

    @property
    def shuffles(self) -> bool:
        """Whether any packet or problem is shuffled."""
        visited = self.visited
        return self.has_problems or any(
            one.shuffled is None or not is_among(visited, one.shuffled).all()
            for one in self.regions
        )

    @property
    def decodes_in_place(self) -> bool:
        """Whether any region decodes connections in place."""
        return any(one.shuffled is not None for one in self.regions)

    @property
    def visited(self) -> Hashes:
        """The connections that are visited, sorted."""
        return connection_ids(self.visits)

    def partitioner(self, count: int) -> Partitioner:
        """Return the partitioner for `count` buckets; large connections get their own bucket."""
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
    """Plan the reading of captures; without a session, everything runs in this process.

    whole: files are not cut. to_store: unknown options may belong to the store of the output.
    lenient: inputs that are missing, unreadable or not captures are skipped, and the rest is
    planned.

    Raises FileNotFoundError if nothing is found, PermissionError for a file without permission;
    BadOption for an unknown option; Unreadable for a file that is not a capture, if `failOnError`
    is set; OSError.
    """
    lenient = lenient and not options.fail_on_error
    skipped: list[SkippedInput] = []

    def missing(given: str, error: FileNotFoundError) -> None:
        reason = str(error).removeprefix(f"{given}: ")
        skipped.append(SkippedInput(given, Verdict(FileStatus.UNREADABLE, reason, None, 1)))

    files = inputs(paths, options.others, missing=missing if lenient else None)
    cores = core_count(spark)
    local = all(file.store.is_local for file in files)
    if local and not to_store:
        for name in options.others:  # no store to pass it to
            unknown(name)
    run = runner(spark, files, local=local)
    size = options.split_bytes or split_bytes(spark, files)

    # Indexing proves the starts of splits, too; only without executors are files walked first.
    walk = sum(file.size for file in files) < REMOTE_PLANNING_BYTES
    inputs_opened = run(
        partial(open_input, size=None if whole else size, walk=walk, lenient=lenient), files
    )
    readable, unread = choose_files(inputs_opened, lenient=lenient)
    skipped += unread
    if options.fail_on_error:
        raise_first(readable, skipped)
    cut = cut_plan(readable, skipped, options)
    sharing = Sharing(cores, options.chunk_bytes, options.partitions is not None)
    return cut if whole else with_placement(cut, run, size, sharing)


def runner(spark: SparkSession | None, files: Sequence[InputFile], *, local: bool) -> Run:
    """Return what calls functions for planning: the executors, if there is much to read."""
    on_executors = spark is not None and sum(file.size for file in files) >= (
        LOCAL_PLANNING_BYTES if local else REMOTE_PLANNING_BYTES
    )
    if spark is not None and not on_executors:
        begin_workers(spark)

    def run(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if on_executors and spark is not None and len(items) > 1:
            return on_workers(spark, function, items, INDEX_TASKS_PER_CORE * core_count(spark))
        return [function(item) for item in items]

    return run


def cut_plan(
    readable: Sequence[OpenedInput], skipped: Sequence[SkippedInput], options: Options
) -> Plan:
    """Order the files of each set, and list their parts, which are not proven yet."""
    set_of = options.sets.of
    order = sorted(
        readable, key=lambda each: (set_of(each.file.name), each.first_ns, each.file.name)
    )
    keys = [set_of(each.file.name) for each in order]
    places = {name: at for at, name in enumerate(dict.fromkeys(keys))}
    parts = [
        Part(at, places[key], split)
        for at, (key, each) in enumerate(zip(keys, order, strict=True))
        for split in each.splits
    ]
    return Plan(
        tuple(each.file for each in order),
        tuple(places[key] for key in keys),
        (*parts,),
        verdicts=tuple(each.verdict for each in order),
        skipped=(*skipped,),
    )


def with_placement(cut: Plan, run: Run, size: int, sharing: Sharing) -> Plan:
    """Prove the parts of a plan, and find out what can be decoded in place.

    run: calls a function for each item, on any machine; size: bytes that a task reads.
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
    split_indexes = [known[split.file, split.ordinal, split.start] for split in proven]
    parts = [
        replace(places[split.file], split=split, packets=packets[split.file]) for split in proven
    ]
    ranges = task_ranges(split_indexes, size)
    total = sum(index.bytes for index in split_indexes)
    placement = place_connections([split_indexes[start:end] for start, end in ranges], sharing)
    visited = connection_ids(placement.visits)  # a region with visited connections only is not read
    regions = [
        Region((*parts[start:end],), shuffled)
        for (start, end), shuffled in zip(ranges, placement.shuffled, strict=True)
        if any(
            index.has_problems or not is_among(visited, index.hashes).all()
            for index in split_indexes[start:end]
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
        fragments=any(index.fragments for index in split_indexes),
        has_problems=any(index.has_problems for index in split_indexes),
        verdicts=judge_files(cut, stitched, split_indexes),
    )


def task_ranges(split_indexes: Sequence[SplitIndex], size: int) -> list[tuple[int, int]]:
    """Group adjacent splits into ranges of about `size` bytes: what one task reads."""
    bounds = [0]
    range_bytes = 0
    for at, index in enumerate(split_indexes, 1):
        range_bytes += index.bytes
        if 4 * range_bytes >= 3 * size or at == len(split_indexes):  # file headers are not counted
            bounds.append(at)
            range_bytes = 0
    return list(pairwise(bounds))


def judge_files(
    cut: Plan, stitched: Stitched, split_indexes: Iterable[SplitIndex]
) -> tuple[Verdict, ...]:
    """Return the verdict of each file, from the problems of all of its splits."""
    problems = {file: list(found) for file, found in stitched.problems.items()}
    links: dict[InputFile, dict[str, CaptureError]] = {}
    for index in split_indexes:
        known = links.setdefault(index.proof.split.file, {})
        for problem in index.links:
            known.setdefault(problem.reason, problem)
    for file, found in links.items():
        file_problems = problems.setdefault(file, [])
        reported = {each.reason for each in file_problems if isinstance(each, UnsupportedLinkType)}
        file_problems += [problem for reason, problem in found.items() if reason not in reported]
    return tuple(
        verdicts.of_problems(problems.get(file, [])) if verdict.status is FileStatus.OK else verdict
        for file, verdict in zip(cut.files, cut.verdicts, strict=True)
    )


def split_bytes(spark: SparkSession | None, files: Sequence[InputFile]) -> int:
    """Return the split size: small enough for two splits per core if there is little to read."""
    cores = core_count(spark)
    total = sum(file.size for file in files)
    return max(LEAST_SPLIT, min(SPLIT_BYTES, -(-total // (2 * cores))))


def require_files(plan: Plan) -> Plan:
    """Return a plan that has files. Raises NoCaptures if all inputs were skipped."""
    if not plan.files:
        raise NoCaptures(len(plan.skipped), "".join(map(str, plan.skipped[:1])))
    return plan


def input_warnings(plan: Plan) -> list[str]:
    """Return a line for each input that was not read as a whole, with the reason."""
    read = (SkippedInput(*each) for each in zip(plan.names, plan.verdicts, strict=True))
    return [str(one) for one in (*read, *plan.skipped) if one.verdict.status is not FileStatus.OK]
