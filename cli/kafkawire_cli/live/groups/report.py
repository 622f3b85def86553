"""Shows groups of a live cluster, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkawire.display import plural

from ...render.report import Section, count_text, ranges_text
from .reading import SHARE, Description, Group, Member, Numbers

if TYPE_CHECKING:
    from kafkawire.net.admin import Subtopology, TopologyDescription, TopologyNode

KINDS: Final = {"warmup": "warm-up"}
"""Headings of kinds of tasks, if they are others than their names."""
COLUMNS: Final[Mapping[str, Callable[[Member], str]]] = {
    "member": lambda member: member.member_id,
    ">epoch": lambda member: "" if member.epoch is None else str(member.epoch),
    "instance": lambda member: member.instance_id or "",
    "client": lambda member: member.client_id,
    "host": lambda member: member.client_host,
    "process": lambda member: member.process_id,
}
UNLESS_EMPTY: Final = (">epoch", "instance", "process", "standby", "warm-up")
"""Columns that are left out if no member has a value."""
PLUGIN_FAILED: Final = "ERROR"
GLOBAL: Final = "global"
"""In the column of subtopologies, for nodes of global state stores, which are in none."""
OPTIONAL: Final = ("process", "host", "instance", "client")


# -- as text


def list_section(groups: Sequence[Group]) -> Section:
    """Return a table with a row for each group."""
    head = ("group", "state", "type", "protocol", ">members", ">lag")
    rows = [
        (
            group.listing.group_id,
            group.state,
            group.type,
            group.description.protocol if group.description else "",
            count_text(len(group.description.members)) if group.description else "?",
            _number(group.lag),
        )
        for group in groups
    ]
    return Section("Groups", head, rows)


def sections(group: Group) -> list[Section]:
    """Return the state, members and offsets of a group."""
    described = group.description
    lines = [f"protocol {described.protocol}"] if described and described.protocol else []
    if described and described.epochs:
        epochs = (f"{name} {epoch}" for name, epoch in described.epochs.items())
        lines.append(f"epochs: {', '.join(epochs)}")
    if described and described.graph_status == PLUGIN_FAILED:
        lines.append("topology description: the broker's plugin failed")
    title = f"Group {group.listing.group_id}: {group.state}"
    if group.lag is not None:
        title += f", lag {group.lag:,}"
    if group.type == SHARE:
        lines.append(f"{plural(len(group.starts), 'partition')} with offsets")
    else:
        lines.append(plural(len(group.commits), "commit"))
    result = [Section(title, lines=lines)]
    if described is not None:
        result += [_members(described.members), _topology(described)]
    if described is not None and described.graph is not None:
        result.append(_graph(described.graph))
    return [*result, _starts(group) if group.type == SHARE else _commits(group)]


def _members(members: Sequence[Member]) -> Section:
    columns = {heading: [text(member) for member in members] for heading, text in COLUMNS.items()}
    for kind in members[0].assignment if members else ():
        columns[KINDS.get(kind, kind)] = [_ranges(member.assignment[kind]) for member in members]
    shown = {
        heading: cells
        for heading, cells in columns.items()
        if heading not in UNLESS_EMPTY or any(cells)
    }
    return Section(
        "Members", tuple(shown), list(zip(*shown.values(), strict=True)), optional=OPTIONAL
    )


def _ranges(numbers: Numbers) -> str:
    return "  ".join(f"{name} {ranges_text(of_name)}" for name, of_name in numbers.items())


def _topology(description: Description) -> Section:
    head = ("subtopology", "sources", "repartitions", "changelogs")
    rows = [
        (
            row.subtopology_id,
            " ".join(
                (*row.source_topics, *(topic.name for topic in row.repartition_source_topics))
            ),
            " ".join(row.repartition_sink_topics),
            " ".join(topic.name for topic in row.state_changelog_topics),
        )
        for row in description.subtopologies
    ]
    return Section("Topology", head, rows)


def _graph(graph: TopologyDescription) -> Section:
    nodes = [(name, node) for name, of_name in graph.subtopologies.items() for node in of_name]
    nodes += [(GLOBAL, node) for pair in graph.global_stores for node in pair]
    rows = [
        (
            name,
            node.name,
            node.type,
            node.sink_topic or " ".join(node.source_topics),
            " ".join(node.stores),
            " ".join(node.successors),
        )
        for name, node in nodes
    ]
    head = ("subtopology", "node", "type", "topics", "stores", "successors")
    return Section("Topology description", head, rows)


def _commits(group: Group) -> Section:
    head = ("topic", ">partition", ">committed", ">end", ">lag", "metadata")
    rows = [
        (
            row.topic,
            str(row.partition),
            f"{row.offset:,}",
            _number(row.end),
            _number(row.lag),
            row.metadata,
        )
        for row in group.commits
    ]
    return Section("Offsets", head, rows)


def _starts(group: Group) -> Section:
    rows = [
        (row.topic, str(row.partition), f"{row.start_offset:,}", _number(row.lag))
        for row in group.starts
    ]
    return Section("Offsets", ("topic", ">partition", ">start", ">lag"), rows)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


# -- as JSON


def as_json(group: Group) -> dict[str, Any]:
    """Return a group as JSON."""
    fields: dict[str, Any] = group.listing._asdict()
    described = group.description
    if described is not None:
        fields |= {"state": described.state, "protocol": described.protocol}
        fields |= {f"{name}_epoch": epoch for name, epoch in described.epochs.items()}
        fields["members"] = [_member(member) for member in described.members]
    if described is not None and described.subtopologies:
        fields["subtopologies"] = [_subtopology(row) for row in described.subtopologies]
    if described is not None and described.graph_status:
        fields["topology_description_status"] = described.graph_status
        graph = described.graph
        fields["topology_description"] = None if graph is None else _graph_fields(graph)
    commits = [row._asdict() | {"lag": row.lag} for row in group.commits]
    fields["offsets"] = [*commits, *(row._asdict() for row in group.starts)]
    fields["lag"] = group.lag
    return fields


def _member(member: Member) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }
    if member.epoch is not None:
        fields["epoch"] = member.epoch
    if member.process_id:
        fields["process_id"] = member.process_id
    return fields | dict(member.assignment)


def _subtopology(row: Subtopology) -> dict[str, Any]:
    topics = {
        name: [topic._asdict() | {"configs": dict(topic.configs)} for topic in internal]
        for name, internal in (
            ("state_changelog_topics", row.state_changelog_topics),
            ("repartition_source_topics", row.repartition_source_topics),
        )
    }
    return row._asdict() | topics


def _graph_fields(graph: TopologyDescription) -> dict[str, Any]:
    def fields(nodes: Sequence[TopologyNode]) -> list[dict[str, Any]]:
        return [node._asdict() for node in nodes]

    return {
        "subtopologies": {name: fields(nodes) for name, nodes in graph.subtopologies.items()},
        "global_stores": [
            dict(zip(("source", "processor"), fields(pair), strict=True))
            for pair in graph.global_stores
        ],
    }
