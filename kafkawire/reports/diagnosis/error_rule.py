"""Rules about error codes, each one a row of a table: how often a client gets them, and for what.

ErrorRule (a row) --> ErrorCounts (counts the errors of a capture) --> findings
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID, partition_references
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.protocol.frame import SIZE

from ..clients import host
from ..groups.silences import SILENT_NS, ClientKey, Silence
from .finding import Confidence, Finding, Occurrences, Severity, Subject
from .rule import Rule, Scene, Subjects, Threshold, client_of

NEVER: Final = float("inf")
"""A threshold that is not reached."""


class By(Enum):
    """Whom the errors of a rule are about, besides the client."""

    CLIENT = auto()
    GROUP = auto()
    TOPIC = auto()
    TRANSACTIONAL_ID = auto()
    BROKER = auto()


def error_term(codes: list[str]) -> str:
    """Write the condition that selects responses with one of these error codes."""
    return f"error == {codes[0]}" if len(codes) == 1 else f"error in ({', '.join(codes)})"


class Errors:
    """The errors of a subject, and the APIs whose responses have them.

    silences: how many came before errors; silence: the last one; longest_ns: the longest.
    """

    __slots__ = ("apis", "codes", "longest_ns", "seen", "silence", "silences")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.codes: Counter[int] = Counter()
        self.apis: dict[str, None] = {}
        self.silence: Silence | None = None
        self.silences = self.longest_ns = 0

    def after(self, silence: Silence) -> None:
        """Add a silence before an error, once if there are several errors after it."""
        if silence != self.silence:
            self.silence = silence
            self.silences += 1
            self.longest_ns = max(self.longest_ns, silence.duration_ns)
            self.seen.time_ns += silence.duration_ns


def errors_threshold(default: float, reason: str) -> Threshold:
    """Return the threshold of the number of errors from which there is a finding."""
    return Threshold("errors", default, "errors", reason)


def seconds_threshold(default: float, reason: str) -> Threshold:
    """Return the threshold of the time between the first and the last error."""
    return Threshold("seconds", default, "s", reason)


def critical_threshold(default: float, reason: str) -> Threshold:
    """Return the threshold of the number of errors from which a finding is critical."""
    return Threshold("critical", default, "errors", reason)


class Explanation(NamedTuple):
    """The cause and the advice of a finding."""

    cause: str
    advice: str


class ErrorRule(NamedTuple):
    """A rule that reports error codes that a client gets often enough.

    description: what it looks for, one sentence or more. error_codes: those that are counted, in
    responses of `apis` (None: of all). by: whom the errors are counted for. thresholds: `errors`,
    and optionally `seconds` and `critical`. with_silence: whether what is lost is the time in which
    the client was silent before the error. of_topics: what differs for topics of Kafka's own. The
    others are those of `Finding`.
    """

    name: str
    description: str
    error_codes: frozenset[int]
    by: By
    thresholds: tuple[Threshold, ...]
    cause: str
    advice: str
    severity: Severity = Severity.WARNING
    confidence: Confidence = Confidence.HIGH
    reference: str = ""
    apis: frozenset[int] | None = None
    with_silence: bool = False
    of_topics: Mapping[str, Explanation] = {}

    def __call__(self, scene: Scene, limits: Mapping[str, float]) -> Rule:
        """Create what counts the errors. limits: by name of the threshold."""
        return ErrorCounts(self, scene, limits)


RuleDefinition = type[Rule] | ErrorRule
"""A rule that can be created for a capture: a class, or a row about error codes."""


class ErrorCounts(Rule):
    """The errors of a rule about error codes, by subject."""

    def __init__(self, rule: ErrorRule, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._rule = rule
        self.name, self.description = rule.name, rule.description
        self.error_codes, self.apis = rule.error_codes, rule.apis
        self._errors: Subjects[Errors] = Subjects(Errors)

    def error(self, exchange: Exchange, code: int) -> None:
        """Count the errors of a response."""
        response = exchange.response
        if response is None:
            return
        size = response.length + SIZE
        if exchange.request is not None:
            size += exchange.request.length + SIZE
        lost = since(response.request_time_ns, response.time_ns) or 0
        silence = self._silence_before(exchange) if self._rule.with_silence else None
        for subject in self._subjects(exchange, code):
            errors = self._errors.of(subject)
            errors.seen.add(response, size, lost)
            if silence is not None:
                errors.after(silence)
            errors.codes[code] += 1
            errors.apis[exchange.main_row.api_name or "unknown"] = None

    def _silence_before(self, exchange: Exchange) -> Silence | None:
        """Return the silence that the client of an error had just ended."""
        header = exchange.main_row
        silence = self.scene.silences.last(ClientKey(header.client_id, host(exchange.client)))
        recent = silence is not None and header.time_ns - silence.until_ns < SILENT_NS
        return silence if recent else None

    def _subjects(self, exchange: Exchange, code: int) -> Iterable[Subject]:
        """Return whom an error is about."""
        by, client = self._rule.by, client_of(exchange)
        if by is By.CLIENT:
            return (client,)
        if by is By.BROKER:
            return (client_of(exchange, broker=exchange.broker),)
        if by is By.TOPIC:
            topics = dict.fromkeys(self._failed_topics(exchange, code))
            return [client._replace(topic=topic) for topic in topics] or (client,)
        entities = Entities(self.scene.names)
        entities.add(exchange.request)
        entities.add(exchange.response)
        if by is By.GROUP:
            return [client._replace(group=name) for name in entities.groups] or (client,)
        ids = entities.transactional_ids
        return [client._replace(transactional_id=name) for name in ids] or (client,)

    def _failed_topics(self, exchange: Exchange, code: int) -> Iterator[TopicKey]:
        """Find the topics in a response that have an error code, or a partition with it."""
        response = exchange.response
        if response is None or response.message is None:
            return
        names = self.scene.names
        if response.api_key == ApiKey.METADATA:  # its topics have codes of their own
            for topic in getattr(response.message, "topics", None) or ():
                if topic.error_code == code:
                    yield names.topic(topic.name, TOPIC_ID.of(topic)).key
        for one in partition_references(response, names):
            codes = (
                getattr(one.struct, "error_code", 0),
                getattr(one.struct, "partition_error_code", 0),
            )
            if code in codes:
                yield one.topic.key

    def findings(self) -> Iterator[Finding]:
        """Return a finding for each subject with enough errors."""
        rule, critical = self._rule, self.limits.get("critical", NEVER)
        for subject, errors in self._errors:
            seen = errors.seen
            if seen.count < self.limits["errors"]:
                continue
            if seen.span_seconds < self.limits.get("seconds", 0):
                continue
            codes = [ErrorCode.name_of(code) for code, _ in errors.codes.most_common()]
            usual = Explanation(rule.cause, rule.advice)
            explanation = rule.of_topics.get(self.scene.topic_name(subject.topic), usual)
            yield Finding(
                rule.name,
                Severity.CRITICAL if seen.count >= critical else rule.severity,
                subject,
                f"{' and '.join(codes)} in {plural(seen.count, 'response')} to "
                f"{', '.join(errors.apis)}{_silent(errors)}",
                seen,
                *explanation,
                rule.confidence,
                reference=rule.reference,
                terms=(error_term(codes),),
            )


def _silent(errors: Errors) -> str:
    """Say for how long clients were silent before their errors."""
    longest = f"{'up to ' if errors.silences > 1 else ''}{errors.longest_ns / 1e9:.1f} s"
    return f", after the client sent nothing for {longest}" if errors.silences else ""
