"""Marks tests by what they need, so that `make quick` runs those that need nothing and are fast.

Markers follow from where a test is, which fixtures it has and what its modules import, never
from what its author remembered; a test that is not marked `java` or `spark` and starts Java fails.

    java    a real Kafka, or another program in Java: fixtures, folders
    spark   a Spark session or cluster (which starts Java, too)
    peers   other implementations of Kafka's protocol: imports, directly or through modules of tests
    builds  builds packages, or starts many processes with Java: `make builds`, not `make test`
    simulation  runs hundreds of seeds of a simulation: `make simulation`, not `make test`
    slow    takes seconds of CPU time: SLOW; or nine in ten tests of every message: SAMPLED
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

TESTS: Final = Path(__file__).resolve().parent
JAVA_FIXTURES: Final = frozenset(
    {"installation", "java", "kafka", "kafka_tools", "own_kafka", "serialised_by_java"}
)
JAVA_FOLDERS: Final = (
    "client/real/test_kafka_3_9.py",
    "conformance/test_kafka_3_9.py",
    "interop",
    "real",
)
SPARK_FOLDERS: Final = ("spark",)
NO_SPARK_FOLDERS: Final = ("spark/splitting",)
"""Under a folder of Spark's, but without a session."""
PEERS_FOLDERS: Final = ("interop",)
PEERS: Final = frozenset({"aiokafka", "confluent_kafka", "dpkt", "kafka", "kio", "snappy"})
SLOW: Final = (
    "broker/handlers/test_every_version.py",
    "broker/test_hostile.py::test_a_client_that_does_not_read_gets_no_more_responses",
    "broker/test_restoring.py",
    "broker/network/test_scheduler.py",
    "broker/groups/test_consumer_groups.py::test_a_thousand_members_settle_in_linear_work",
    "broker/groups/test_stateful_consumer_group.py",
    "broker/groups/test_stateful_group.py",
    "broker/groups/test_stateful_migration.py",
    "broker/log/test_stateful_log.py",
    "capture/files/test_damaged_files.py::test_damage",
    "capture/test_damaged_traffic.py",
    "capture/test_fast_paths.py",
    "capture/test_independence.py",
    "capture/exchanges/test_inference.py",
    "capture/files/test_pcap.py::test_damage_takes_linear_time",
    "capture/files/test_pcap.py::test_the_start_of_a_split_is_found_and_proved_by_the_one_before",
    "capture/jsonl/test_quick_text.py",
    "capture/tcp/test_reassembly_properties.py",
    "capture/frames/test_resynchronisation_work.py",
    "capture/test_snapshot.py::test_builds_read_each_others_state",
    "capture/tables/test_records_memory.py",
    "capture/tables/test_table_bodies.py",
    "capture/tables/test_table_columns.py",
    "capture/tables/test_table_tasks.py",
    "capture/tables/test_tables.py::test_records_match_the_truth",
    "capture/tables/test_tables.py::test_tables_agree_with_each_other",
    "capture/test_traffic_properties.py",
    "cli/test_completion.py",
    "cli/verbs/test_changes.py",
    "cli/verbs/test_consume_options.py",
    "cli/test_corners.py",
    "cli/test_whole_files.py",
    "cli/verbs/test_encode.py::test_codegen_explains_mistakes",
    "cli/verbs/test_encode.py::test_codegen_makes_a_package",
    "cli/test_growth.py",
    "cli/verbs/test_hostile_broker.py",
    "cli/input/test_interrupts.py::test_a_packet_that_was_cut_is_no_problem_of_the_capture",
    "cli/input/test_interrupts.py::test_a_report_on_a_pipe_shows_what_it_has",
    "cli/parallel/test_jobs.py",
    "cli/parallel/test_pool.py",
    "cli/render/test_fitting.py",
    "cli/verbs/test_unreachable.py",
    "cli/input/test_progress.py",
    "cli/verbs/test_readiness.py",
    "cli/verbs/test_report.py",
    "cli/verbs/test_report_in_browser.py",
    "cli/verbs/test_schema_verbs.py",
    "cli/verbs/test_site_in_browser.py",
    "cli/verbs/test_sql.py",
    "cli/verbs/test_summary.py::test_lines_fit_the_terminal",
    "cli/verbs/test_tables.py::test_pandas_is_not_imported",
    "cli/verbs/test_top.py::test_a_screen_with_keys",
    "cli/verbs/test_top.py::test_ctrl_c_leaves_the_screen",
    "cli/verbs/test_top.py::test_lines_come_while_the_pipe_is_quiet",
    "client/consumer/test_assignors.py",
    "client/consumer/test_membership.py::TestCoordinated",
    "client/consumer/test_sessions.py::TestAgreeing",
    "client/net/test_tls.py",
    "client/producer/test_transaction_tables.py::test_a_coordinator_s_error_has_the_outcome_of_the_table",
    "client/test_client_meets_broker.py",
    "client/test_client_meets_broker_in_consumer_groups.py",
    "client/test_client_meets_broker_in_groups.py",
    "client/test_client_meets_broker_producing.py",
    "client/test_exactly_once.py",
    "codegen/test_arrow.py",
    "codegen/test_generate.py",
    "codegen/test_hostile_schemas.py",
    "codegen/test_json_schema.py::test_a_file_for_each_version",
    "codegen/test_linear.py",
    "codegen/test_lint.py",
    "codegen/test_merge.py",
    "codegen/test_schema_mutations.py",
    "codegen/wireshark",
    "codegen/test_site.py",
    "codegen/test_site_of_others.py",
    "codegen/test_user_templates.py::test_a_folder_is_read_and_written",
    "codegen/test_user_templates.py::test_go_compiles_the_target_of_the_page",
    "controller/test_simulation.py",
    "codegen/test_user_templates.py::test_the_command_reports_errors_and_writes_nothing",
    "codegen/test_user_templates.py::test_values_are_those_of_the_generator",
    "codegen/typescript",
    "log/test_hostile.py",
    "messages/test_golden.py::test_the_reference_gives_the_same_verdicts",
    "messages/test_memory.py",
    "net/server/test_cluster_disks.py::test_clients_go_on_while_disks_are_slow_fail_and_are_full",
    "net/server/test_fixture.py::test_a_marker_that_is_wrong_fails_its_test_in_plain_words",
    "net/test_wrong_types.py",
    "node/groups/test_simulation.py",
    "node/pipelines/test_mutants.py",
    "node/pipelines/test_simulation.py",
    "node/test_damage.py",
    "node/test_log_directories.py",
    "node/test_metadata_log.py",
    "node/test_node.py",
    "node/test_old_versions.py",
    "node/test_releases.py",
    "node/test_replica_log.py",
    "node/test_simulation.py",
    "node/test_slices.py",
    "node/test_voters.py",
    "notebook/test_notebook.py::test_the_notebook_of_the_guide_shows_what_it_does",
    "packaging/test_completion.py",
    "protocol/test_fields.py::test_only_one_module_walks_over_fields",
    "protocol/test_json_form.py",
    "protocol/test_json_text.py",
    "records/test_linear.py",
    "raft/test_simulation.py",
    "records/test_round_trip.py",
    "records/test_rows.py::test_damaged_records",
    "records/test_rows.py::test_drawn_records",
    "replication/test_mutants.py",
    "replication/test_simulation.py",
    "reference/test_explain.py::test_frames_are_explained_whole",
    "reports/diagnosis/test_captures.py::test_the_page_counts_findings",
    "spark/splitting",
    "sql/test_needs.py",
    "storage/test_killed.py",
    "storage/test_recovery.py::test_a_torn_tail_is_cut_at_every_byte",
    "storage/test_simulation.py",
    "storage/test_unified_log.py::test_it_does_what_the_log_in_memory_does",
    "test_benchmarks.py",
    "test_examples.py",
    "test_guide.py",
    "test_layout.py",
    "test_magic_numbers.py",
    "test_markers.py",
    "test_pages.py",
    "test_varied_traffic.py",
    "test_walks.py",
)
"""Folders, files, and functions or classes of tests that take half a second of CPU time or more
together, and that other tests of the same code stand beside.
"""
BUILDS: Final = (
    "codegen/typescript/test_types.py",
    "conformance/test_kafka_3_9.py",
    "net/server/test_hostile_sockets.py",
    "net/server/test_killed_nodes.py",
    "net/server/test_streams.py::test_words_are_counted_exactly_once_on_nodes",
    "net/server/test_transactions.py::test_kafka_s_own_clients_have_transactions_of_version_2",
    "net/server/test_nodes_beside_kafka.py",
    "net/server/test_quotas_beside_kafka.py",
    "packaging/test_build_examples.py",
    "packaging/test_compile.py",
    "packaging/test_distributions.py",
    "packaging/test_explained.py",
    "packaging/test_typing.py",
    "packaging/test_users_builds.py",
    "real/test_data_directories.py",
    "real/test_mixed_cluster.py",
    "real/test_mixed_listeners.py",
    "real/test_raft.py",
    "real/test_replication.py",
    "real/test_transaction_log.py",
    "spark/test_archive.py",
    "spark/test_cluster.py",
    "spark/watching/test_killed.py",
    "storage/test_reads_kafka.py",
    "test_benchmarks.py::test_two_commits_are_built_and_measured_in_turns",
)
"""Files and functions of tests that take ten seconds or more for a build, or for processes that
they start one after the other.
"""
SIMULATION: Final = (
    "controller/test_simulation_seeds.py",
    "node/groups/test_mutants.py",
    "node/test_mutants.py",
    "node/test_simulation_seeds.py",
    "raft/test_simulation_seeds.py",
    "replication/test_many_seeds.py",
    "storage/test_simulation_seeds.py",
)
"""Files of tests that run a simulation for hundreds of seeds."""
SAMPLED: Final = (
    "codegen/test_facts.py",
    "codegen/test_json_schema.py",
    "codegen/test_show.py",
    "messages",
    "node/test_simulation_seeds.py",
    "reference",
)
"""Files and folders of tests with a parameter for each message, or for some of many seeds: one in
ten of these is not slow, the same ones in each run; of all, a run can take its SHARE.
"""
MANY: Final = (
    "broker/handlers/test_every_version.py",
    "capture/packets/test_encapsulations.py",
    "capture/test_damaged_traffic.py",
    "capture/test_encapsulated_traffic.py",
    "capture/test_traffic_properties.py",
    "client/test_client_meets_broker.py",
    "client/test_client_meets_broker_in_consumer_groups.py",
    "client/test_client_meets_broker_in_groups.py",
    "client/test_client_meets_broker_producing.py",
    "codegen/test_archives.py",
    "codegen/test_schema_mutations.py",
    "codegen/test_site.py",
    "codegen/test_user_templates.py",
    "conformance/test_our_broker.py",
    "interop/test_hostile_peers.py",
    "interop/test_matrix.py",
    "node/pipelines/test_mutants.py",
)
"""Files of tests with many parameters, each of which takes its time: a run can take its SHARE of
these, too.
"""
SHARE: Final = int(os.environ.get("KAFKAWIRE_SHARE", "1"))
"""A run takes one in so many of the SAMPLED tests and of MANY that have parameters. `.ci/run`
repeats the tests of messages in an interpreted build so, after those in a compiled one; and a slow
machine, which would not be done in time, takes a share of the others.
"""
SHARE_SEED: Final = os.environ.get("KAFKAWIRE_SHARE_SEED")
"""Chooses the share; without it, the random seed of the run does."""

RERUN: Final = frozenset({"java", "peers", "spark"})
"""Markers of tests with processes of other projects, which on a busy machine do not always keep
the order of events that a test expects: they run a second time if they fail, with the same random
seed, and the summary lists them. Kafka's own build does so.
"""

_running: dict[str, str | None] = {"test": None}


def marks(item: pytest.Item) -> set[str]:
    """Find the markers of a test."""
    found = set(marks_of_file(item.path))
    fixtures = set(getattr(item, "fixturenames", ()))
    params = getattr(getattr(item, "callspec", None), "params", {})
    fixtures |= {each for each in params.values() if isinstance(each, str)}  # getfixturevalue
    if fixtures & JAVA_FIXTURES:
        found.add("java")
    if "spark" in fixtures:
        found.add("spark")
    if _place(item) in SLOW:
        found.add("slow")
    if _place(item) in BUILDS:
        found.add("builds")
    if "sampled" in found:
        found.remove("sampled")
        if params and not chosen(item.nodeid, 10):
            found.add("slow")
    return found


def chosen(nodeid: str, share: int, seed: object = "") -> bool:
    """Whether a test is one of the one in `share` that a seed chooses."""
    return zlib.crc32(f"{seed}{nodeid}".encode()) % share == 0


def left_out(item: pytest.Item, share: int, seed: object) -> bool:
    """Whether a test is one of the SAMPLED or MANY, with parameters, that a run does not take."""
    is_shared = "sampled" in marks_of_file(item.path) or any(map(item.path.match, MANY))
    return hasattr(item, "callspec") and is_shared and not chosen(item.nodeid, share, seed)


@cache
def marks_of_file(path: Path) -> frozenset[str]:
    """Find the markers that all tests of a file have; "sampled" is that of a part of them."""
    path = path.resolve()
    if not path.is_relative_to(TESTS):
        return frozenset()
    here = path.relative_to(TESTS).as_posix()
    found = {
        "java": _in(here, JAVA_FOLDERS),
        "spark": _in(here, SPARK_FOLDERS) and not _in(here, NO_SPARK_FOLDERS),
        "peers": _in(here, PEERS_FOLDERS) or bool(imported(path) & PEERS),
        "builds": _in(here, BUILDS),
        "slow": _in(here, SLOW),
        "sampled": _in(here, SAMPLED),
        "simulation": _in(here, SIMULATION),
    }
    return frozenset(name for name, holds in found.items() if holds)


def _place(item: pytest.Item) -> str:
    """Return the file of a test below TESTS, with its class or else its function."""
    file, _, name = item.nodeid.partition("::")
    return f"{file.removeprefix('tests/')}::{name.partition('::')[0].partition('[')[0]}"


def _in(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


@cache
def imported(path: Path) -> frozenset[str]:
    """List the top-level packages that a module of tests imports, itself or through others of
    tests.
    """
    found: set[str] = set()
    seen = {path}
    todo = [path]
    while todo:
        one = todo.pop()
        for name in _names(one):
            found.add(name.partition(".")[0])
            if name.startswith("tests."):
                place = TESTS.parent.joinpath(*name.split("."))
                for file in (place.with_suffix(".py"), place / "__init__.py"):
                    if file.is_file() and file not in seen:
                        seen.add(file)
                        todo.append(file)
    return frozenset(found)


IMPORT: Final = re.compile(
    r"""^[ \t]*(?:
        from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]*
            (?:\((?P<lines>[^)]*)\) | (?P<line>(?:\\\n|[^\n#(])+))
        | import[ \t]+(?P<modules>[^\n#]+)
    )""",
    re.MULTILINE | re.VERBOSE,
)
"""An import statement, at any depth; also one in a text, which may be a program of a test."""


@cache
def _names(path: Path) -> frozenset[str]:
    """List the absolute names of what a module imports."""
    package = path.relative_to(TESTS.parent).parent.parts
    return frozenset(names_in(path.read_text(encoding="utf-8"), package))


def names_in(text: str, package: tuple[str, ...]) -> Iterator[str]:
    """List the absolute names of what the text of a module in a package imports: a twelfth of the
    CPU time of `ast.parse`, which each process of pytest-xdist would spend on each file.
    """
    for found in IMPORT.finditer(text):
        if found["modules"]:
            yield from _first_words(found["modules"])
        else:
            dots = len(found["dots"])
            start = package[: len(package) - dots + 1] if dots else ()
            module = ".".join([*start, *([found["module"]] if found["module"] else [])])
            yield module
            for name in _first_words(found["lines"] or found["line"]):
                yield f"{module}.{name}"


def _first_words(listed: str) -> Iterator[str]:
    """List `a` and `b` of `a, b as c  # comment`."""
    for each in re.sub(r"#[^\n]*|\\\n", "", listed).split(","):
        yield from each.split()[:1]


EXPRESSION: Final = re.compile(r"(?:not )?\w+(?: and not \w+)*")
PLACES: Final = {"builds": BUILDS, "simulation": SIMULATION}
"""Markers of which all places are listed."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which an expression would take no test: one such as `not java and not
    slow`, or `simulation and not slow`.
    """
    expression: str = config.getoption("markexpr")
    if collection_path.suffix != ".py" or not EXPRESSION.fullmatch(expression):
        return None
    required, *excluded = re.split(r"(?:^| and )not ", expression)
    if PLACES.keys() & {required} and not _has_any(collection_path.resolve(), PLACES[required]):
        return True
    return bool({*excluded} & marks_of_file(collection_path)) or None


def _has_any(path: Path, places: tuple[str, ...]) -> bool:
    """Whether a file of tests is one of the places, or has one of them."""
    return any(path == TESTS / place.partition("::")[0] for place in places)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SHARE > 1:
        seed = SHARE_SEED or config.getoption("randomly_seed", "")
        rest = [item for item in items if left_out(item, SHARE, seed)]
        config.hook.pytest_deselected(items=rest)
        gone = set(rest)
        items[:] = [item for item in items if item not in gone]
    for item in items:
        for name in marks(item):
            item.add_marker(name)
        if not RERUN.isdisjoint(mark.name for mark in item.iter_markers()):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if "spark" in getattr(item, "fixturenames", ()):  # one session, in one worker
            item.add_marker(pytest.mark.xdist_group("spark"))


ORDER: Final = ("kafka", "spark", "java", "")
"""Which tests begin. Those with Java mostly wait, and some share one Kafka or one Spark session:
begun last, they would keep one worker busy after the others have ended.
"""


def turn(item: pytest.Item) -> int:
    """Return the place of a marked test in ORDER."""
    group = item.get_closest_marker("xdist_group")
    if group is not None and "kafka" in group.args:
        return ORDER.index("kafka")
    return ORDER.index(
        next((name for name in ORDER[1:-1] if item.get_closest_marker(name) is not None), "")
    )


# -- what is not marked starts no Java


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    starts = any(item.get_closest_marker(name) for name in ("java", "spark"))
    _running["test"] = None if starts else item.nodeid
    try:
        return (yield)
    finally:
        _running["test"] = None


def check_start(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise AssertionError where a test that is not marked starts Java."""
    if event == "subprocess.Popen" and _running["test"] is not None:
        executable, command = arguments[:2]
        first = executable or (command if isinstance(command, str) else next(iter(command), ""))
        if Path(str(first)).name == "java":
            raise AssertionError(f"{_running['test']} starts Java, and is not marked java or spark")


sys.addaudithook(check_start)
