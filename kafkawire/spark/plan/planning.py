"""Plans a job: the files of each set in order, their parts, and what can be decoded in place.

The files of a set are ordered by the time of their first packet, then by name, in whatever
order they were given. Splits are proven, so packets have their numbers before any is decoded.

    inputs --> files --cut--> splits --order, index--> parts, regions --> Plan
                                on the executors, if there is much to read
"""

# over 300 lines: one plan, each step a short function

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from ...capture.files.columns import Ints
from ...errors import CaptureError, UnsupportedLinkType
from ..errors import NoCaptures
from ..options import SPLIT_BYTES, Options, unknown
from ..shuffle.packets import Hashes, Partitioner, is_among
from ..shuffle.tasks import Run, begin_workers, core_count, on_workers
from ..splitting import Edge, InputFile, Proof, Split, Stitched, inputs, prove
from ..splitting.file_list import FileList
from . import verdicts
from .connection_index import (
    Sharing,
    connection_ids,
    place_connections,
    unvisited,
)
from .index_columns import index_columns
from .opening import choose_files, open_input, raise_first
from .ordering import OrderedFiles, ordered_files
from .part_columns import Selected
from .parts import Part, Region, Visit
from .small_files import batches, index_small, joined
from .split_index import SplitIndex, first_packets, index_split
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

INDEX_THREADS: Final = 4
"""Threads of the driver that index splits at most; reading and C run beside each other."""

INDEX_TASKS_PER_CORE: Final = 4
"""Tasks for each core that index splits: indexing takes no longer than starting a task."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Files by set and in order, the set of each, and the parts of all files.

    regions: the parts by the task that reads them; visits: the connections that are read in place.
    large: hashes of shuffled connections with many bytes; shuffled_bytes: bytes of all shuffled
    connections. fragments: whether there are IP fragments. has_problems: whether there are problems
    of files to report. verdicts: of each file; skipped: inputs that are not read. first_packets: of
    all connections, in order, as far as headers show; for visits only, which write rows with the
    numbers of connections at once. What decoding finds is compared with them.
    """

    files: Sequence[InputFile]
    sets: Sequence[int]
    parts: Sequence[Part]
    regions: tuple[Region, ...] = ()
    visits: tuple[Visit, ...] = ()
    large: tuple[int, ...] = ()
    shuffled_bytes: int = 0
    fragments: bool = False
    has_problems: bool = False
    verdicts: Sequence[Verdict] = ()
    skipped: tuple[SkippedInput, ...] = ()
    first_packets: Ints | None = None

    @property
    def names(self) -> Sequence[str]:
        """The names of the files."""
        files = self.files
        return files.names if isinstance(files, FileList) else [file.name for file in files]

    @property
    def tunnels(self) -> tuple[str, ...]:
        """The tunnels on other UDP ports, an option."""
        return self.files[0].tunnels if self.files else ()

    @property
    def bytes(self) -> int:
        """The size of the files as stored."""
        files = self.files
        return files.bytes if isinstance(files, FileList) else sum(file.size for file in files)

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

    Workers start meanwhile.

    whole: files are not cut. to_store: unknown options may belong to the store of the output.
    lenient: inputs that are missing, unreadable or not captures are skipped, and the rest is
    planned.

    Raises FileNotFoundError if nothing is found, PermissionError for a file without permission;
    BadOption for an unknown option; Unreadable for a file that is not a capture, if `failOnError`
    is set; OSError.
    """
    if spark is not None:
        begin_workers(spark)
    lenient = lenient and not options.fail_on_error
    files, skipped = list_inputs(paths, options, lenient=lenient)
    files = replace(files, tunnels=options.tunnels)
    cores = core_count(spark)
    local = files.is_local
    if local and not to_store:
        for name in options.others:  # no store to pass it to
            unknown(name)
    run, index = (runner(spark, files, local=local, threads=each) for each in (1, cores))
    size = options.split_bytes or split_bytes(spark, files)

    # Indexing proves the starts of splits, too; only without executors are files walked first.
    walk = files.bytes < REMOTE_PLANNING_BYTES
    small = joined(run(index_small, batches(files, size)))
    open_file = partial(open_input, size=None if whole else size, walk=walk, lenient=lenient)
    rest = np.setdiff1d(np.arange(len(files)), small.rows)
    opened = zip(rest.tolist(), run(open_file, [files[row] for row in rest.tolist()]), strict=True)
    readable, refused = choose_files(files, small.rows, opened, lenient=lenient)
    skipped += refused
    if options.fail_on_error:
        raise_first((each for _, each in readable), skipped)
    ordered = ordered_files(files, small, readable, options.sets)
    cut = Plan(
        ordered.files,
        ordered.sets,
        ordered.unproven(whole=whole),
        verdicts=ordered.verdicts,
        skipped=(*skipped,),
    )
    sharing = Sharing(cores, options.chunk_bytes, options.partitions is not None)
    return cut if whole else with_placement(cut, ordered, index, size, sharing)


def list_inputs(
    paths: Iterable[str], options: Options, *, lenient: bool
) -> tuple[FileList, list[SkippedInput]]:
    """List the files of inputs, and what is not read: what is missing, directories in others.

    Raises FileNotFoundError for what is missing, unless lenient; OSError.
    """
    skipped: list[SkippedInput] = []

    def missing(path: str, error: FileNotFoundError) -> None:
        reason = str(error).removeprefix(f"{path}: ")
        skipped.append(SkippedInput(path, Verdict(FileStatus.UNREADABLE, reason, None, 1)))

    def ignored(directory: str, reason: str) -> None:
        skipped.append(SkippedInput(directory, Verdict(FileStatus.IGNORED, reason, None, 1)))

    files = inputs(paths, options.others, missing=missing if lenient else None, ignored=ignored)
    return files, skipped


def runner(spark: SparkSession | None, files: FileList, *, local: bool, threads: int) -> Run:
    """Return what calls functions for planning: the executors, if there is much to read.

    Otherwise the driver does, with so many threads, at most INDEX_THREADS.
    """
    on_executors = spark is not None and files.bytes >= (
        LOCAL_PLANNING_BYTES if local else REMOTE_PLANNING_BYTES
    )

    def run(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if on_executors and spark is not None and len(items) > 1:
            return on_workers(spark, function, items, INDEX_TASKS_PER_CORE * core_count(spark))
        if threads == 1 or len(items) == 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(min(threads, INDEX_THREADS)) as pool:
            return [*pool.map(function, items)]

    return run


def with_placement(cut: Plan, ordered: OrderedFiles, run: Run, size: int, sharing: Sharing) -> Plan:
    """Prove the parts of a plan, and find out what can be decoded in place.

    run: calls a function for each item, on any machine; size: bytes that a task reads.
    """
    rest = [
        Part(file, cut.sets[file], split)
        for file, each in ordered.opened.items()
        for split in each.splits
    ]
    stitched, split_indexes = prove_parts(rest, run)
    parts, places = ordered.proven(stitched.proven)
    sets = np.asarray(ordered.sets)[parts.file]
    index = index_columns(ordered.columns, split_indexes, places, sets)
    ranges = task_ranges(index.bytes, size)
    placement = place_connections(index, ranges, sharing)
    left = unvisited(index, placement.visits)  # a region with visited connections only is not read
    total = int(index.bytes.sum())
    regions = [
        Region(Selected(parts, range(start, end)), shuffled)
        for (start, end), shuffled in zip(ranges, placement.shuffled, strict=True)
        if left[start:end].any()
    ]
    return replace(
        cut,
        parts=parts,
        regions=(*regions,),
        visits=tuple(
            Visit(ids, Selected(parts, places.astype(np.int32)), size > sharing.too_large(total))
            for ids, size, places in placement.visits
        ),
        large=placement.large,
        shuffled_bytes=placement.shuffled_bytes,
        fragments=index.fragments,
        has_problems=any(one.has_problems for one in split_indexes),
        verdicts=judge_files(ordered, stitched, split_indexes),
        first_packets=first_packets(parts, [split_indexes[place] for place in places.tolist()])
        if placement.visits and not index.fragments and len(places) == len(split_indexes)
        else None,
    )


def prove_parts(parts: Sequence[Part], run: Run) -> tuple[Stitched, list[SplitIndex]]:
    """Read the splits of parts until their starts are proven; also returns their indexes."""
    sets = {part.split.file: part.set for part in parts}
    by_key: dict[tuple[InputFile, int, Edge | None], SplitIndex] = {}

    def proofs(splits: Sequence[Split]) -> list[Proof]:
        indexes = run(index_split, [(split, sets[split.file]) for split in splits])
        found_proofs = [index.proof for index in indexes]
        keys = [(proof.split.file, proof.split.ordinal, proof.start) for proof in found_proofs]
        by_key.update(zip(keys, indexes, strict=True))
        return found_proofs

    stitched = prove([part.split for part in parts], proofs)
    return stitched, [by_key[split.file, split.ordinal, split.start] for split in stitched.splits]


def task_ranges(volumes: Ints, size: int) -> list[tuple[int, int]]:
    """Group adjacent splits into ranges of about `size` bytes: what one task reads.

    volumes: the bytes of each split.
    """
    ends = np.cumsum(volumes)
    least = -(-3 * size // 4)  # file headers are not counted
    bounds = [0]
    while (start := bounds[-1]) < len(ends):
        before = int(ends[start - 1]) if start else 0
        bounds.append(min(int(np.searchsorted(ends, before + least)) + 1, len(ends)))
    return list(pairwise(bounds))


def judge_files(
    ordered: OrderedFiles, stitched: Stitched, split_indexes: Iterable[SplitIndex]
) -> Sequence[Verdict]:
    """Return the verdict of each file, from the problems of all of its splits."""
    problems = {file: list(by_reason) for file, by_reason in stitched.problems.items()}
    links: dict[InputFile, dict[str, CaptureError]] = {}
    for index in split_indexes:
        of_file = links.setdefault(index.proof.split.file, {})
        for problem in index.links:
            of_file.setdefault(problem.reason, problem)
    for file, by_reason in links.items():
        file_problems = problems.setdefault(file, [])
        reported = {each.reason for each in file_problems if isinstance(each, UnsupportedLinkType)}
        file_problems += [
            problem for reason, problem in by_reason.items() if reason not in reported
        ]
    return ordered.judged(
        {
            file_index: verdicts.of_problems(problems.get(each.file, []))
            if each.verdict.status is FileStatus.OK
            else each.verdict
            for file_index, each in ordered.opened.items()
        }
    )


def split_bytes(spark: SparkSession | None, files: FileList) -> int:
    """Return the split size: small enough for two splits per core if there is little to read."""
    cores = core_count(spark)
    return max(LEAST_SPLIT, min(SPLIT_BYTES, -(-files.bytes // (2 * cores))))


def require_files(plan: Plan) -> Plan:
    """Return a plan that has files. Raises NoCaptures if all inputs were skipped."""
    if not plan.files:
        refused = [one for one in plan.skipped if one.verdict.refused]
        raise NoCaptures(len(refused), "".join(map(str, refused[:1])))
    return plan


def input_warnings(plan: Plan) -> list[str]:
    """Return a line for each input that was not read as a whole, with the reason."""
    bad = [file for file, each in enumerate(plan.verdicts) if each.status is not FileStatus.OK]
    read = [SkippedInput(plan.names[file], plan.verdicts[file]) for file in bad]
    skipped = [one for one in plan.skipped if one.verdict.status is not FileStatus.OK]
    return [*map(str, (*read, *skipped))]
