"""The replicas of a node, as its request handlers use them.

Law: what the machines need not decide is decided here, as in a cluster in memory: topics by id,
internal topics, the content of records, fetch sessions. The rest is handed to the machines.
"""

from __future__ import annotations

from collections import Counter
from copy import copy

from ...broker.log.validation import RecordsRejected, Rules, check, rules
from ...broker.replication.deleting import deletion_failed
from ...broker.replication.offsets import lookup_error, offset_failed
from ...broker.replication.producing import TOPIC_IDS_FROM, failed, rejected
from ...broker.replication.reading import READ_COMMITTED
from ...broker.replication.sessions import FetchContext, Sessions
from ...broker.request import DELAYED, Outcome, Request
from ...broker.topics import INTERNAL
from ...messages.delete_records_request import DeleteRecordsRequest
from ...messages.delete_records_response import DeleteRecordsTopicResult
from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ...messages.list_offsets_request import ListOffsetsRequest
from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ...messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ...messages.produce_response import ProduceResponse, TopicProduceResponse
from ...protocol import ErrorCode
from .listeners import Listeners
from .metadata_cache import ImageMetadata, TopicView
from .plans import (
    AsItIs,
    DeletionPlan,
    FetchPlan,
    OffsetsPlan,
    PlannedPartition,
    ProducePlan,
    whole,
)
from .quotas.throttling import Throttling
from .requests import Submit
from .transactions.produce import ProduceVerification
from .transactions.verification import Errors

E = ErrorCode


class NodeReplicas:
    """`Replicas` of a node."""

    def __init__(
        self,
        node_id: int,
        listeners: Listeners,
        metadata: ImageMetadata,
        submit: Submit,
        verification: ProduceVerification,
        throttling: Throttling,
    ) -> None:
        context = listeners.context
        self._node_id = node_id
        self._context = context
        self._channel = listeners.channel
        self._verification = verification
        self._metadata = metadata
        self._submit = submit
        self._throttling = throttling
        self._rules: dict[str, Rules] = {}
        self.sessions = Sessions(
            context.settings.number("max.incremental.fetch.session.cache.slots"),
            context.new_uuid,
            context.bounds.session_partitions,
        )

    def showing(self, metadata: ImageMetadata) -> NodeReplicas:
        """Return the same replicas, for the clients of another listener."""
        made = copy(self)
        made._metadata = metadata
        return made

    def configs_changed(self) -> None:
        """Read the rules of topics again."""
        self._rules.clear()

    # -- Produce

    def produce(
        self, request: Request, body: ProduceRequest, now: float
    ) -> ProduceResponse | Outcome:
        """Validate records, and hand those that are valid to the machines."""
        topics, accepted = [], []
        for topic in body.topic_data:
            planned, valid = self._planned(topic, request, body, now)
            topics.append((topic.name, topic.topic_id, planned))
            if valid:
                accepted.append(
                    TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=valid)
                )
        plan = ProducePlan(request.version, self._metadata, topics)
        if not accepted:
            return plan.response(ProduceResponse())
        made = ProduceRequest(
            transactional_id=body.transactional_id,
            acks=body.acks,
            timeout_ms=body.timeout_ms,
            topic_data=accepted,
        )

        def then(errors: Errors, now: float) -> None:
            self._append_verified(request, made, plan, errors, now)

        if self._verification.verify(request.version, made, then, now):
            return DELAYED
        if body.acks == 0:
            self._throttling.produced(request, now)
            self._submit(None, made, AsItIs(), now)
            known = [each.known for _, _, planned in topics for each in planned if each.known]
            return ProduceResponse(responses=[TopicProduceResponse(partition_responses=known)])
        self._submit(request, made, plan, now)
        return DELAYED

    def _append_verified(
        self,
        request: Request,
        body: ProduceRequest,
        plan: ProducePlan,
        errors: Errors,
        now: float,
    ) -> None:
        """Hand those records of a transaction to the machines that its coordinator knows of."""
        if request.reply_to not in self._channel.pending:
            return  # the client has disconnected; another request has the records again
        for name, topic_id, planned in plan.topics:
            found = name or self._metadata.topic_name(topic_id)
            for each in planned:
                error = errors.get((found, each.index))
                if error and each.known is None:
                    each.known = failed(each.index, error)
        accepted = []
        for topic in body.topic_data:
            found = topic.name or self._metadata.topic_name(topic.topic_id)
            rest = [each for each in topic.partition_data if (found, each.index) not in errors]
            if rest:
                topic.partition_data = rest
                accepted.append(topic)
        body.topic_data = accepted
        if accepted:
            self._submit(request, body, plan, now)
        else:
            self._channel.respond(request.reply_to, plan.response(ProduceResponse()), now)

    def _planned(
        self, topic: TopicProduceData, request: Request, body: ProduceRequest, now: float
    ) -> tuple[list[PlannedPartition], list[PartitionProduceData]]:
        """Return what is known of the partitions of a topic, and those with valid records."""
        topics, version = self._metadata.topics, request.version
        transactional = body.transactional_id is not None
        found = (
            topics.by_id(topic.topic_id) if version >= TOPIC_IDS_FROM else topics.get(topic.name)
        )
        planned, valid = [], []
        for data in topic.partition_data:
            each = PlannedPartition(data.index)
            planned.append(each)
            if found is None:
                unknown = version >= TOPIC_IDS_FROM
                error = E.UNKNOWN_TOPIC_ID if unknown else E.UNKNOWN_TOPIC_OR_PARTITION
                each.known = failed(data.index, error)
            elif found.is_internal:
                each.known = failed(data.index, E.INVALID_TOPIC_EXCEPTION)
            else:
                checked = self._checked(found, each, data, version, transactional, now)
                if checked is not None:
                    valid.append(checked)
        return planned, valid

    def _checked(
        self,
        topic: TopicView,
        planned: PlannedPartition,
        data: PartitionProduceData,
        version: int,
        transactional: bool,
        now: float,
    ) -> PartitionProduceData | None:
        """Validate the records of a partition that this node leads; None if they are invalid."""
        partition = topic.partition(data.index)
        if partition is None or partition.leader_id != self._node_id:
            return data  # the machines say what is wrong
        try:
            wall_ms = self._context.wall_ms(now)
            of_topic = self._rules_of(topic)
            found = check(data.records, version, of_topic, wall_ms, transactional)
        except RecordsRejected as reason:
            planned.known = rejected(data.index, reason, version)
            return None
        planned.log_append_time_ms = found.log_append_time_ms
        return PartitionProduceData(index=data.index, records=found.stored(0, 0).data)

    def _rules_of(self, topic: TopicView) -> Rules:
        found = self._rules.get(topic.name)
        if found is None:
            made = rules(self._context.settings, topic.configs)
            found = self._rules[topic.name] = made
        return found

    # -- Fetch

    def fetch(self, request: Request, body: FetchRequest, now: float) -> FetchResponse | Outcome:
        """Read records; a consumer has a session, a follower has none."""
        version = request.version
        if request.is_from_follower:
            self._submit(request, body, AsItIs(), now)
            return DELAYED
        context = self.sessions.resolve(body, version, now)
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context)
        read_committed = body.isolation_level == READ_COMMITTED
        plan = FetchPlan(version, self._metadata, context, read_committed)
        self._submit(request, self._whole(request, body, context), plan, now)
        return DELAYED

    def _whole(self, request: Request, body: FetchRequest, context: FetchContext) -> FetchRequest:
        """Return a Fetch of all partitions of a session, and of no more than a quota allows."""
        made = whole(body, context)
        most = self._throttling.most_fetched(request)
        if most is not None:
            made.max_bytes = min(made.max_bytes, most)
            made.min_bytes = min(made.min_bytes, made.max_bytes)
        return made

    # -- offsets

    def list_offsets(self, request: Request, body: ListOffsetsRequest, now: float) -> Outcome:
        """Look up offsets by timestamp."""
        times = Counter(
            (topic.name, each.partition_index) for topic in body.topics for each in topic.partitions
        )
        known = {}
        for at, topic in enumerate(body.topics):
            for position, each in enumerate(topic.partitions):
                index = each.partition_index
                error = lookup_error(each, request.version, times[topic.name, index])
                if error is not None:
                    known[at, position] = offset_failed(index, error)
        self._submit(request, body, OffsetsPlan(request.version, known), now)
        return DELAYED

    def offsets_for_leader_epoch(
        self, request: Request, body: OffsetForLeaderEpochRequest, now: float
    ) -> Outcome:
        """Look up the end offsets of leader epochs."""
        self._submit(request, body, AsItIs(), now)
        return DELAYED

    def delete_records(self, request: Request, body: DeleteRecordsRequest, now: float) -> Outcome:
        """Move log start offsets, but not those of internal topics."""
        known = {}
        rest = []
        for at, topic in enumerate(body.topics):
            if topic.name not in INTERNAL:
                rest.append(topic)
                continue
            error = E.INVALID_TOPIC_EXCEPTION
            results = [deletion_failed(each.partition_index, error) for each in topic.partitions]
            known[at] = DeleteRecordsTopicResult(name=topic.name, partitions=results)
        made = DeleteRecordsRequest(topics=rest, timeout_ms=body.timeout_ms)
        self._submit(request, made, DeletionPlan(known), now)
        return DELAYED

    def forget(self, reply_to: int) -> None:
        """Do nothing: what the machines delay they complete at its deadline."""
