"""Plans a job: the files of each set in order, their parts, and what can be decoded in place.

Law: the files of a set are ordered by the time of their first packet, then by name, in whatever
order they were given. Splits are proven, so packets have their numbers before any is decoded.

    inputs --> files --cut--> splits --order, index--> parts, regions --> Plan
                                on the executors, if there is much to read
"""

# over 300 lines: one plan, each step a short function

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ...errors import CaptureError, UnsupportedLinkType
from ..errors import NoCaptures
from ..options import SPLIT_BYTES, Options, unknown
from ..shuffle.packets import Hashes, Partitioner, is_among
from ..shuffle.tasks import Run, begin_workers, core_count, on_workers
from ..splitting import Edge, InputFile, Proof, Split, Stitched, inputs, prove
from . import verdicts
from .connection_index import (
    Sharing,
    connection_ids,
    index_split,
    place_connections,
    unvisited,
)
from .index_columns import SplitIndex, index_columns
from .opening import OpenedInput, choose_files, open_all, open_input, raise_first
from .parts import Part, Region, Visit
from .small_files import SmallFiles, batches, index_small, joined
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
    small = joined(run(index_small, batches(files, size)))
    open_file = partial(open_input, size=None if whole else size, walk=walk, lenient=lenient)
    inputs_opened = open_all(files, small, run, open_file, whole=whole)
    readable, unread = choose_files(inputs_opened, lenient=lenient)
    skipped += unread
    if options.fail_on_error:
        raise_first(readable, skipped)
    cut = cut_plan(readable, skipped, options)
    sharing = Sharing(cores, options.chunk_bytes, options.partitions is not None)
    if whole:
        return cut
    rows = {files[at].name: row for row, at in enumerate(small.rows.tolist())}
    return with_placement(cut, IndexedFiles(rows, small), run, size, sharing)


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


class IndexedFiles(NamedTuple):
    """Files that were indexed when they were opened: name -> row, and the columns."""

    rows: Mapping[str, int]
    columns: SmallFiles


def with_placement(cut: Plan, indexed: IndexedFiles, run: Run, size: int, sharing: Sharing) -> Plan:
    """Prove the parts of a plan, and find out what can be decoded in place.

    run: calls a function for each item, on any machine; size: bytes that a task reads.
    """
    rest = [part for part in cut.parts if cut.files[part.file].name not in indexed.rows]
    stitched, split_indexes = prove_parts(rest, run)
    parts, places = arranged(cut, indexed, stitched)
    index = index_columns(indexed.columns, split_indexes, places, [part.set for part in parts])
    ranges = task_ranges(index.bytes.tolist(), size)
    placement = place_connections(index, ranges, sharing)
    left = unvisited(index, placement.visits)  # a region with visited connections only is not read
    total = int(index.bytes.sum())
    regions = [
        Region((*parts[start:end],), shuffled)
        for (start, end), shuffled in zip(ranges, placement.shuffled, strict=True)
        if left[start:end].any()
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
        fragments=index.fragments,
        has_problems=any(one.has_problems for one in split_indexes),
        verdicts=judge_files(cut, stitched, split_indexes),
    )


def prove_parts(parts: Sequence[Part], run: Run) -> tuple[Stitched, list[SplitIndex]]:
    """Read the splits of parts until their starts are proven; also returns their indexes."""
    sets = {part.split.file: part.set for part in parts}
    known: dict[tuple[InputFile, int, Edge | None], SplitIndex] = {}

    def proofs(splits: Sequence[Split]) -> list[Proof]:
        indexes = run(index_split, [(split, sets[split.file]) for split in splits])
        found = [index.proof for index in indexes]
        keys = [(proof.split.file, proof.split.ordinal, proof.start) for proof in found]
        known.update(zip(keys, indexes, strict=True))
        return found

    stitched = prove([part.split for part in parts], proofs)
    return stitched, [known[split.file, split.ordinal, split.start] for split in stitched.splits]


def arranged(cut: Plan, indexed: IndexedFiles, stitched: Stitched) -> tuple[list[Part], list[int]]:
    """List the proven parts in the order of the files.

    Also returns the place of each part's index: its row in `indexed`, or behind those.
    """
    proven: dict[str, list[tuple[int, Proof]]] = {}
    for at, proof in enumerate(stitched.proven, len(indexed.rows)):
        proven.setdefault(proof.split.file.name, []).append((at, proof))
    parts: list[Part] = []
    places: list[int] = []
    packets_of = indexed.columns.packets.tolist()
    done = -1
    for part in cut.parts:
        name = cut.files[part.file].name
        row = indexed.rows.get(name)
        if row is not None:
            parts.append(Part(part.file, part.set, part.split, packets_of[row]))
            places.append(row)
        elif part.file != done:  # all splits of the file at once
            done = part.file
            proofs = proven.get(name, [])
            packets = sum(proof.packets for _, proof in proofs)
            parts += [Part(part.file, part.set, proof.split, packets) for _, proof in proofs]
            places += [at for at, _ in proofs]
    return parts, places


def task_ranges(volumes: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Group adjacent splits into ranges of about `size` bytes: what one task reads.

    volumes: the bytes of each split.
    """
    bounds = [0]
    range_bytes = 0
    for at, volume in enumerate(volumes, 1):
        range_bytes += volume
        if 4 * range_bytes >= 3 * size or at == len(volumes):  # file headers are not counted
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
