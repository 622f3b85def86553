"""`kafkawire reassign`: replicas of a live cluster are moved to other brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...live.reassign.files import Partition, as_file
from ...live.reassign.options import (
    ALL_MOVES,
    CANCEL,
    EXECUTE,
    GENERATE,
    NO_ACTION,
    NO_THROTTLING,
    VERIFY,
    Actions,
    Moves,
    Throttling,
    Wanted,
    checked,
)
from ...live.reassign.replicas import current_replicas, target_replicas
from ...live.reassign.throttles import STAYS, apply, moves_of, throttled, unthrottled
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import PartitionReassignment

COMPLETE: Final = "complete"
IN_PROGRESS: Final = "in progress"
FAILED: Final = "not as in the file"


def reassign(
    options: ClusterOptions = NO_OPTIONS,
    actions: Actions = NO_ACTION,
    moves: Moves = ALL_MOVES,
    throttling: Throttling = NO_THROTTLING,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    form: FormOption = Form.TABLE,
) -> None:
    """Move replicas to other brokers: propose, execute, verify, cancel.

    \b
    kafkawire reassign -b localhost:9092
    kafkawire reassign -b localhost:9092 --generate --topic orders --to 1,2,4
    kafkawire reassign -b localhost:9092 --execute --topic orders --to 1,2,4 --dry-run
    kafkawire reassign -b localhost:9092 --execute --reassignment-json-file moves.json
    kafkawire reassign -b localhost:9092 --execute --throttle 10000000 \\
        --reassignment-json-file moves.json
    kafkawire reassign -b localhost:9092 --verify --reassignment-json-file moves.json
    kafkawire reassign -b localhost:9092 --cancel --topic orders

    Files are those of kafka-reassign-partitions. A proposal keeps replicas where they are as far
    as their brokers remain and have no more than their share; racks are respected. Throttles are
    removed by --verify or --cancel, as soon as nothing in the cluster is in progress.

    Exit code 1: an error of the cluster, such as an unknown topic, a cancellation that was refused
    at the prompt, or, with --verify, replicas that are not (yet) where they shall be; 2: usage
    error.
    """
    wanted = checked(actions, moves, throttling)
    changing = wanted.action in (EXECUTE, CANCEL)
    confirmation.check(CANCEL if wanted.action == CANCEL else None, changing=changing)
    client = live.admin_configuration(options)
    ACTIONS[wanted.action](client, wanted, confirmation, form)


def _show(client: live.Configuration, wanted: Wanted, _: ChangeOptions, form: Form) -> None:
    """Show the reassignments in progress."""
    rows: dict[Partition, PartitionReassignment] = {}

    async def work() -> None:
        async with live.admin(client.values) as admin:
            partitions = None if not wanted.topics else list(await current_replicas(admin, wanted))
            rows.update(await admin.list_partition_reassignments(partitions))

    live.run(work, client)
    head = ("topic", ">partition", "replicas", "adding", "removing")

    def sections() -> list[Section]:
        shown = [
            (topic, str(number), *map(_ids, moving)) for (topic, number), moving in rows.items()
        ]
        return [Section("Reassignments", head, shown)]

    def as_json() -> dict[str, Any]:
        return {
            "reassignments": [
                {"topic": topic, "partition": number, **moving._asdict()}
                for (topic, number), moving in rows.items()
            ]
        }

    print_report(form, sections, as_json, "No reassignments in progress.")


def _generate(client: live.Configuration, wanted: Wanted, _: ChangeOptions, form: Form) -> None:
    """Show where replicas are and where they could be, as kafka-reassign-partitions does."""
    parts: dict[str, dict[str, Any]] = {}

    async def work() -> None:
        async with live.admin(client.values) as admin:
            current = await current_replicas(admin, wanted)
            target = await target_replicas(admin, wanted, current)
            parts.update(current=as_file(current), proposed=as_file(target))

    live.run(work, client)
    print_report(
        form,
        lambda: [
            Section("Current replicas", lines=[json.dumps(parts["current"])]),
            Section("Proposed replicas", lines=[json.dumps(parts["proposed"])]),
        ],
        lambda: parts,
    )


def _execute(
    client: live.Configuration, wanted: Wanted, options: ChangeOptions, form: Form
) -> None:
    """Move what is not where it shall be."""
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            current = await current_replicas(admin, wanted)
            in_progress = await admin.list_partition_reassignments()
            moving = [partition for partition in current if partition in in_progress]
            if moving and not wanted.additional:
                raise _already(moving[0])
            target = await target_replicas(admin, wanted, current)
            changed = {
                partition: replicas
                for partition, replicas in target.items()
                if partition in moving or tuple(replicas) != tuple(current[partition])
            }
            if changed and wanted.throttle is not None:
                moves = moves_of(current, in_progress, changed)
                configs = await throttled(admin, moves, wanted.throttle)
                await apply(admin, configs, report.add, dry_run=options.dry_run)
            if changed and not options.dry_run:
                await admin.alter_partition_reassignments(changed)
            for partition, replicas in changed.items():
                report.add(_change("alter", partition, current[partition], replicas))
            if form is Form.TABLE and not (changed and wanted.throttle is None):
                typer.echo(STAYS if changed else "Nothing to move.")

    with report.printed():
        live.run(work, client)


def _already(partition: Partition) -> Exception:
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    topic, number = partition
    detail = f"{topic}-{number} is being reassigned already: --additional changes that"
    return BrokerError(ErrorCode.REASSIGNMENT_IN_PROGRESS, detail)


def _verify(client: live.Configuration, wanted: Wanted, _: ChangeOptions, form: Form) -> None:
    """Show which partitions are settled; exit code 1 unless all are.

    Throttles are removed if nothing in the cluster is in progress.
    """
    states: dict[Partition, tuple[str, tuple[int, ...]]] = {}
    removals: list[Change] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            current = await current_replicas(admin, wanted)
            moving = await admin.list_partition_reassignments()
            if not moving and not wanted.preserves_throttles:
                configs = await unthrottled(admin, current)
                await apply(admin, configs, removals.append, dry_run=False)
            for partition, replicas in current.items():
                target = (wanted.assignment or current)[partition]
                settled = COMPLETE if tuple(target) == tuple(replicas) else FAILED
                states[partition] = (IN_PROGRESS if partition in moving else settled, replicas)

    live.run(work, client)
    head = ("topic", ">partition", "replicas", "state")
    rows = [
        (topic, str(number), _ids(replicas), state)
        for (topic, number), (state, replicas) in states.items()
    ]

    def as_json() -> dict[str, Any]:
        return {
            "partitions": [
                {"topic": topic, "partition": number, "replicas": list(replicas), "state": state}
                for (topic, number), (state, replicas) in states.items()
            ],
            "changes": [change.json() for change in removals],
        }

    lines = [change.text(dry_run=False) for change in removals]
    print_report(form, lambda: [Section("Reassignments", head, rows, lines)], as_json)
    if any(state != COMPLETE for state, _ in states.values()):
        raise typer.Exit(1)


def _cancel(client: live.Configuration, wanted: Wanted, options: ChangeOptions, form: Form) -> None:
    """Cancel exactly the reassignments that were confirmed.

    Throttles are removed if nothing else in the cluster is in progress.
    """
    moving: dict[Partition, PartitionReassignment] = {}
    others: set[Partition] = set()

    async def find() -> None:
        async with live.admin(client.values) as admin:
            current = await current_replicas(admin, wanted)
            in_progress = await admin.list_partition_reassignments()
            moving.update(item for item in in_progress.items() if item[0] in current)
            others.update(in_progress.keys() - moving.keys())

    live.run(find, client)
    if not moving:
        print_report(form, lambda: (), lambda: {"changes": []}, "No reassignments in progress.")
        return
    options.confirm([f"reassignment of {topic}-{number}" for topic, number in moving], "cancel")
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if not options.dry_run:
                await admin.alter_partition_reassignments(dict.fromkeys(moving))
            for partition, before in moving.items():
                back = [broker for broker in before.replicas if broker not in before.adding]
                report.add(_change("cancel", partition, before.replicas, back))
            if not others and not wanted.preserves_throttles:
                configs = await unthrottled(admin, moving)
                await apply(admin, configs, report.add, dry_run=options.dry_run)

    with report.printed():
        live.run(work, client)


ACTIONS: Final = {
    None: _show,
    GENERATE: _generate,
    EXECUTE: _execute,
    VERIFY: _verify,
    CANCEL: _cancel,
}


def _change(action: str, partition: Partition, before: tuple[int, ...], after: list[int]) -> Change:
    topic, number = partition
    return Change(
        action,
        "reassignment",
        f"of {topic}-{number} from {_ids(before)} to {_ids(after)}",
        fields={
            "topic": topic,
            "partition": number,
            "replicas": list(after),
            "previous_replicas": list(before),
        },
    )


def _ids(brokers: tuple[int, ...] | list[int]) -> str:
    return ",".join(map(str, brokers))
