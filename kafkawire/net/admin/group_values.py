"""Results of the admin client about groups, under Kafka's names.

They are plain tuples: they compare, print and pickle.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class GroupListing(NamedTuple):
    """A group; state, type: "" from brokers that do not report them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class MemberInfo(NamedTuple):
    """A member of a group.

    metadata, assignment: as the members wrote them (`kafkawire.messages.consumer_protocol_*` for
    consumers).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupInfo(NamedTuple):
    """A group and its members; protocol: the assignor, if the group has one."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberInfo, ...]


class CommittedOffset(NamedTuple):
    """A committed offset of a group; leader_epoch: -1 if unknown."""

    offset: int
    leader_epoch: int
    metadata: str


class ShareGroupOffset(NamedTuple):
    """Where a share group is in a partition. lag: records that it has not finished, -1: unknown."""

    start_offset: int
    leader_epoch: int
    lag: int


class ShareMemberInfo(NamedTuple):
    """A member of a share group. rack_id: None without one.

    member_epoch: of the assignment that it received last. assignment: (topic, partition), sorted;
    other members may have the same.
    """

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    assignment: tuple[tuple[str, int], ...]


class ShareGroupInfo(NamedTuple):
    """A share group (KIP-932) and its members, sorted by id. state: Empty, Stable or Dead.

    group_epoch: grows when members, subscriptions or topics change. assignment_epoch: the group
    epoch that the assignment was computed for. assignor: its name.
    """

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMemberInfo, ...]


class ConsumerMemberInfo(NamedTuple):
    """A member of a group of consumers. group_instance_id, rack_id: None without one.

    subscribed_regex: None if it subscribes to names only. assignment: what it has, (topic,
    partition), sorted; target_assignment: what it will have. is_classic: whether it uses the
    classic protocol, None if the broker does not report it. member_epoch and target_assignment are
    None in a group of the classic protocol.
    """

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    member_epoch: int | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    assignment: tuple[tuple[str, int], ...]
    target_assignment: tuple[tuple[str, int], ...] | None
    is_classic: bool | None


class ConsumerGroupInfo(NamedTuple):
    """A group of consumers and its members, sorted by id. type: consumer (KIP-848) or classic.

    group_epoch, assignment_epoch: as of `ShareGroupInfo`, None in a classic group. assignor: its
    name.
    """

    group_id: str
    type: str
    state: str
    group_epoch: int | None
    assignment_epoch: int | None
    assignor: str
    members: tuple[ConsumerMemberInfo, ...]


class StreamsTopic(NamedTuple):
    """An internal topic. partitions: 0 if not yet decided; replication_factor: 0 is the default.

    configs: (name, value), sorted.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


class Subtopology(NamedTuple):
    """A part of a Streams topology, of which each task is a partition; topics are sorted."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopic, ...]
    repartition_source_topics: tuple[StreamsTopic, ...]


class StreamsTasks(NamedTuple):
    """Tasks of a member, (subtopology id, partition), sorted."""

    active: tuple[tuple[str, int], ...]
    standby: tuple[tuple[str, int], ...]
    warmup: tuple[tuple[str, int], ...]


class StreamsMemberInfo(NamedTuple):
    """A member of a Streams group. group_instance_id, rack_id: None without one.

    topology_epoch: of the topology that it runs. process_id: the same for all members of a process.
    user_endpoint: host and port for interactive queries, None without one. client_tags: (key,
    value), sorted. task_offsets, task_end_offsets: sums of the offsets in changelogs that it
    reported, by (subtopology id, partition). assignment: what it has; target_assignment: what it
    will have. is_classic: whether it uses the classic protocol.
    """

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: tuple[tuple[str, str], ...]
    task_offsets: dict[tuple[str, int], int]
    task_end_offsets: dict[tuple[str, int], int]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


class TopologyDescriptionStatus(Enum):
    """Whether a broker has the description of a topology, by Kafka's names (KIP-1331).

    NOT_REQUESTED: also from brokers before 4.4. NOT_STORED: e.g. it has no plugin that stores
    descriptions. ERROR: the plugin failed. UNKNOWN: a status of a later version.
    """

    UNKNOWN = -1
    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class TopologyNode(NamedTuple):
    """A node of a Streams topology. type: source, processor or sink.

    source_topics: that a source reads, sorted. sink_topic: that a sink writes, None for one that
    chooses the topic of each record, and for other types. stores: names of the state stores of a
    processor, sorted. successors: names of the nodes that get its output, sorted.
    """

    name: str
    type: str
    source_topics: tuple[str, ...]
    sink_topic: str | None
    stores: tuple[str, ...]
    successors: tuple[str, ...]


class TopologyDescription(NamedTuple):
    """The graph of a Streams topology, as its broker's plugin stored it (KIP-1331).

    subtopologies: nodes by subtopology id, sorted by id. global_stores: (source, processor) of
    each global state store. Nodes are in the order of the broker.
    """

    subtopologies: dict[str, tuple[TopologyNode, ...]]
    global_stores: tuple[tuple[TopologyNode, TopologyNode], ...]


class StreamsGroupInfo(NamedTuple):
    """A Streams group (KIP-1071) and its members, sorted by id. state: e.g. NotReady or Stable.

    group_epoch, assignment_epoch: as of `ShareGroupInfo`. assignor: None from brokers before 4.4.
    topology_epoch: the version of the topology, None before a member has sent one. subtopologies:
    sorted by id, empty before then. topology_description: None unless its status is AVAILABLE.
    """

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str | None
    topology_epoch: int | None
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMemberInfo, ...]
    topology_description_status: TopologyDescriptionStatus = TopologyDescriptionStatus.NOT_REQUESTED
    topology_description: TopologyDescription | None = None
