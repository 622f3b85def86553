"""Names that a cluster does not have, with the similar one that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from kafkawire.display import plural
from kafkawire.errors import KafkaWireError
from kafkawire.whole_numbers import MAX_INT32, whole_number

from ..input.names import suggestion

if TYPE_CHECKING:
    from kafkawire.client.failures import BrokerError
    from kafkawire.net.admin import Admin, TopicInfo

SEVERAL: Final = re.compile(r",[a-z_]+(\.[a-z_]+)*=")
"""The next key in a value that has several."""


async def described_topics(admin: Admin, names: Iterable[str]) -> dict[str, TopicInfo]:
    """Describe topics; the BrokerError for an unknown one names a similar one."""
    from kafkawire.client.failures import BrokerError

    wanted = list(dict.fromkeys(names))
    try:
        return await admin.describe_topics(wanted)
    except BrokerError as error:
        raise await with_similar_topic(admin, error, wanted) from None


def broker_ids(texts: Iterable[str], option: str) -> list[int]:
    """Return the ids of brokers, each once. What cannot be one is a usage error of an option."""
    ids = []
    for text in texts:
        number = whole_number(text, MAX_INT32)
        if number is None:
            reason = f"{text!r}: expected the id of a broker, between 0 and {MAX_INT32}"
            raise typer.BadParameter(reason, param_hint=option)
        ids.append(number)
    return list(dict.fromkeys(ids))


def unknown_broker(wanted: Iterable[int], brokers: Iterable[int]) -> str | None:
    """Return what is wrong with ids of brokers; None if the cluster has all of them."""
    ids = sorted(brokers)
    for broker in wanted:
        if broker not in ids:
            return f"no broker with id {broker}; the cluster has {', '.join(map(str, ids))}"
    return None


def check_brokers(wanted: Iterable[int], brokers: Iterable[int]) -> None:
    """Check that the cluster has brokers: a client would wait for one that it has not."""
    from kafkawire.client.failures import RequestFailed
    from kafkawire.client.requests import Reason

    detail = unknown_broker(wanted, brokers)
    if detail is not None:
        raise RequestFailed(Reason.UNKNOWN_NODE, detail)


def check_partition(topic: TopicInfo, number: int) -> None:
    """Check that a topic has a partition; the BrokerError says how many it has."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    if number not in {each.partition for each in topic.partitions}:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic.name}-{number}: {topic.name} has {plural(len(topic.partitions), 'partition')}",
        )


async def with_similar_topic(admin: Admin, error: BrokerError, names: list[str]) -> BrokerError:
    """Add the name of a similar topic to the error of an unknown one; other errors stay."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return error
    try:
        topics = await admin.list_topics()
    except KafkaWireError:
        return error
    unknown = next((name for name in names if name not in topics), None)
    if unknown is None:
        return error
    return BrokerError(error.code, f"topic {unknown}{suggestion(unknown, topics)}")


@contextmanager
def similar_config(
    changes: Mapping[str, object], known: Iterable[str], option: str
) -> Iterator[None]:
    """Add what is meant to the error of a broker that refuses a configuration.

    changes: key -> value. known: the keys of the resource. option: that sets one key; several in
    its value, as for Kafka's own tools, are named.
    """
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    try:
        yield
    except BrokerError as error:
        if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            raise
        unknown = next((key for key in changes if key not in set(known)), None)
        hint = "" if unknown is None else suggestion(unknown, known)
        if any(SEVERAL.search(str(value)) for value in changes.values()):
            hint = f"; repeat {option} for each key"
        raise BrokerError(error.code, f"{error.detail}{hint}") from None


async def check_configs(admin: Admin, topics: list[str], keys: list[str]) -> None:
    """Check that topics have configuration keys: brokers accept any key that is reset.

    The BrokerError for an unknown key names a similar one.
    """
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError
    from kafkawire.configs import TOPIC_CONFIGS

    if all(key in TOPIC_CONFIGS for key in keys):
        return
    for name, entries in (await admin.describe_topic_configs(topics)).items():
        for key in keys:
            if key not in entries:  # which may be of a later release than ours
                hint = suggestion(key, entries)
                detail = f"topic {name} has no configuration {key!r}{hint}"
                raise BrokerError(ErrorCode.INVALID_CONFIG, detail)
