"""The replicas of a node, as its request handlers use them.

What the replica manager does not know of clients is decided here: topics that they may not write,
how their records are validated, fetch sessions. The replica manager is called for the rest.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import Final

from ...broker.fetch_sessions import Sessions
from ...broker.fetched import Fetched
from ...broker.forwarding import AsItIs
from ...broker.handlers.delete_records import deletion_failed
from ...broker.handlers.list_offsets import OLD_STYLE_TO, lookup_error, offset_failed
from ...broker.handlers.produce import TOPIC_IDS_FROM
from ...broker.log.validation import RecordsRejected, Rules, check, rules
from ...broker.metadata_cache import MetadataCache
from ...broker.request import DELAYED, Outcome, Request
from ...broker.topics import INTERNAL
from ...messages.delete_records_request import DeleteRecordsRequest
from ...messages.delete_records_response import DeleteRecordsResponse, DeleteRecordsTopicResult
from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse
from ...messages.list_offsets_request import ListOffsetsRequest
from ...messages.list_offsets_response import ListOffsetsResponse
from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ...messages.produce_request import ProduceRequest
from ...messages.produce_response import ProduceResponse
from ...protocol import ErrorCode
from ...records.validated import ValidatedBatch
from ...replication import Append, AppendRejected, AppendResult
from ...replication.fetch_params import fetch_of, session_fetch
from .listeners import Listeners
from .machines import NodeMachines
from .plans import DeletionPlan, FetchPlan, OffsetsPlan, ProducePlan
from .quotas.throttling import Throttling
from .transactions.produce import ProduceVerification
from .transactions.verification import Errors

E = ErrorCode
READ_COMMITTED: Final = 1


class NodeReplicas:
    """`Replicas` of a node."""

    def __init__(
        self,
        listeners: Listeners,
        metadata: MetadataCache,
        machines: NodeMachines,
        verification: ProduceVerification,
        throttling: Throttling,
    ) -> None:
        context = listeners.context
        self._context = context
        self._listeners = listeners
        self._channel = listeners.channel
        self._verification = verification
        self._metadata = metadata
        self._machines = machines
        self._throttling = throttling
        self._rules: dict[str, Rules] = {}
        self.sessions = Sessions(
            context.settings.number("max.incremental.fetch.session.cache.slots"),
            context.new_uuid,
            context.bounds.session_partitions,
        )

    def showing(self, metadata: MetadataCache) -> NodeReplicas:
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
        """Append records, those of a transaction after its coordinator has verified them."""
        refused = self._refused(body, request.version)
        if body.transactional_id is not None:

            def then(errors: Errors, now: float) -> None:
                self._append_verified(request, body, refused, errors, now)

            if self._verification.verify(request.version, body, then, now):
                return DELAYED
        return self._append(request, body, refused, now)

    def _refused(self, body: ProduceRequest, version: int) -> dict[int, AppendResult]:
        """Return the results of partitions that clients may not write; index -> result."""
        refused: dict[int, AppendResult] = {}
        index = 0
        for topic in body.topic_data:
            name, error = topic.name, E.NONE
            if version >= TOPIC_IDS_FROM:
                image = self._metadata.image.topics.get(topic.topic_id)
                name, error = ("", E.UNKNOWN_TOPIC_ID) if image is None else (image.name, E.NONE)
            if name in INTERNAL and name in self._metadata.topics:
                error = E.INVALID_TOPIC_EXCEPTION
            last = index + len(topic.partition_data)
            if error:
                refused |= dict.fromkeys(range(index, last), AppendResult(error))
            index = last
        return refused

    def _append(
        self,
        request: Request,
        body: ProduceRequest,
        refused: dict[int, AppendResult],
        now: float,
    ) -> ProduceResponse | Outcome:
        version, wall_ms = request.version, self._context.wall_ms(now)
        transactional = body.transactional_id is not None

        def validate(topic: str, records: bytes) -> tuple[ValidatedBatch]:
            rules = self._rules_of(topic)
            try:
                return (check(records, version, rules, wall_ms, transactional),)
            except RecordsRejected as reason:
                raise AppendRejected(
                    reason.error, reason.message, reason.records, reason.content_checked
                ) from None

        how = Append(body.acks, body.timeout_ms / 1000, False, validate, refused)
        return self._machines.respond(
            request,
            lambda replicas, token: replicas.appends.produce(token, body, how, now),
            ProducePlan(request, self._metadata, self._throttling),
            now,
        )

    def _append_verified(
        self,
        request: Request,
        body: ProduceRequest,
        refused: dict[int, AppendResult],
        errors: Errors,
        now: float,
    ) -> None:
        """Append those records of a transaction that its coordinator knows of."""
        if request.reply_to not in self._channel.pending:
            return  # the client has disconnected; another request has the records again
        index = 0
        for topic in body.topic_data:
            name = topic.name or self._metadata.topic_name(topic.topic_id)
            for each in topic.partition_data:
                error = errors.get((name, each.index))
                if error:
                    refused.setdefault(index, AppendResult(error))
                index += 1
        response = self._append(request, body, refused, now)
        if body.acks == 0:
            self._listeners.finish(request.reply_to, now)
        elif not isinstance(response, Outcome):
            self._channel.respond(request.reply_to, response, now)

    def _rules_of(self, name: str) -> Rules:
        found = self._rules.get(name)
        if found is None:
            topic = self._metadata.topics.get(name)
            configs = {} if topic is None else topic.configs
            found = self._rules[name] = rules(self._context.settings, configs)
        return found

    # -- Fetch

    def fetch(
        self, request: Request, body: FetchRequest, now: float
    ) -> FetchResponse | Fetched | Outcome:
        """Read records; a consumer has a session, a follower has none."""
        version = request.version
        if request.is_from_follower:
            return self._machines.respond(
                request,
                lambda replicas, token: replicas.fetches.fetch(
                    token, fetch_of(replicas.replicas, version, body), now
                ),
                AsItIs[FetchResponse](),
                now,
            )
        context = self.sessions.resolve(body, version, now)
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context)
        quota = self._throttling.most_fetched(request)
        read_committed = body.isolation_level == READ_COMMITTED
        return self._machines.respond(
            request,
            lambda replicas, token: replicas.fetches.fetch(
                token, session_fetch(replicas.replicas, version, body, context.targets, quota), now
            ),
            FetchPlan(request, self._metadata, context, read_committed, quota, self._throttling),
            now,
        )

    # -- offsets

    def list_offsets(
        self, request: Request, body: ListOffsetsRequest, now: float
    ) -> ListOffsetsResponse | Outcome:
        """Look up offsets by timestamp."""
        times = Counter(
            (topic.name, each.partition_index) for topic in body.topics for each in topic.partitions
        )
        refused = {}
        for at, topic in enumerate(body.topics):
            for position, each in enumerate(topic.partitions):
                index = each.partition_index
                error = lookup_error(each, request.version, times[topic.name, index])
                if error is not None:
                    refused[at, position] = offset_failed(index, error)
        old_style = request.version <= OLD_STYLE_TO
        return self._machines.respond(
            request,
            lambda replicas, _token: (
                replicas.offsets.list_old_style(body)
                if old_style
                else replicas.offsets.list_offsets(body)
            ),
            OffsetsPlan(request.version, refused),
            now,
        )

    def offsets_for_leader_epoch(
        self, request: Request, body: OffsetForLeaderEpochRequest, now: float
    ) -> OffsetForLeaderEpochResponse | Outcome:
        """Look up the end offsets of leader epochs."""
        return self._machines.respond(
            request,
            lambda replicas, _token: replicas.offsets.for_leader_epoch(body),
            AsItIs[OffsetForLeaderEpochResponse](),
            now,
        )

    def delete_records(
        self, request: Request, body: DeleteRecordsRequest, now: float
    ) -> DeleteRecordsResponse | Outcome:
        """Move log start offsets, but not those of internal topics."""
        refused = {}
        rest = []
        for position, topic in enumerate(body.topics):
            if topic.name not in INTERNAL:
                rest.append(topic)
                continue
            error = E.INVALID_TOPIC_EXCEPTION
            results = [deletion_failed(each.partition_index, error) for each in topic.partitions]
            refused[position] = DeleteRecordsTopicResult(name=topic.name, partitions=results)
        allowed = DeleteRecordsRequest(topics=rest, timeout_ms=body.timeout_ms)
        return self._machines.respond(
            request,
            lambda replicas, token: replicas.deletions.delete_records(token, allowed, now),
            DeletionPlan(refused),
            now,
        )

    def forget(self, request: Request) -> None:
        """Drop a delayed Fetch."""
        self._machines.forget(request.connection)
