"""`kafkawire produce`: sends lines as records to a topic.

Every line that was read but not delivered is reported, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafkawire.errors import InvalidRecordValue, UnusableSchema

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.panels import Panel
from ...input.values import NO_ENCODING, EncodingOptions, record_encoders
from ...live.completion import complete_topic
from ...live.delivery_report import DeliveryReport, in_transaction
from ...live.record_input import LineFormat, lines, whole_input
from ...live.unknown_names import check_partition, with_similar_topic
from ...notes import print_note

if TYPE_CHECKING:
    from kafkawire.client.failures import ClientError
    from kafkawire.net.admin import TopicInfo
    from kafkawire.net.producer import Producer, RecordMetadata

DELIVER_SECONDS: Final = 1.0
"""How long an interrupt or an error waits for records that are being delivered, or an abort."""


def produce(  # noqa: PLR0913 - options of the verb
    topic: Annotated[
        str,
        typer.Argument(metavar="TOPIC", help="Topic to send to.", autocompletion=complete_topic),
    ],
    cluster: ClusterOptions = NO_OPTIONS,
    source: Annotated[
        typer.FileBinaryRead,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Input file; - for stdin.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = "-",  # type: ignore[assignment]  # typer opens it
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            metavar="TEXT",
            help="Separator between key and value [default: no key].",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "-k",
            metavar="TEXT",
            help="Key of each record.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole-input",
            help="Send the whole input as one record, with its line ends.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = False,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition",
            "-p",
            min=0,
            metavar="N",
            help="Partition [default: by key].",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            "-H",
            metavar="NAME=VALUE",
            help="Header of each record; repeatable.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    encoding: EncodingOptions = NO_ENCODING,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="Send all records in one transaction: committed at the end of the input, aborted"
            " if a record is not delivered.",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(
            "--null",
            metavar="TEXT",
            help="Send this value as null (a tombstone).",
            rich_help_panel=Panel.RECORDS,
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Print partition and offset of each record.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = False,
) -> None:
    """Send each line of the input, or the whole input, as a record.

    \b
    echo 'alice:apples' | kafkawire produce orders -b localhost:9092 -K :
    kafkawire produce orders --values avro --registry-url http://localhost:8081 < orders.jsonl
    kafkawire produce orders -H source=import -i lines.txt -X compression.type=zstd -X acks=1
    kafkawire produce orders -i order.json --whole-input --key alice
    kafkawire produce orders -i lines.txt --transactional-id import

    Prints the number of delivered and failed records, and whether the cluster created the topic
    (auto.create.topics.enable). Exit code 1: a record was not delivered, the transaction was
    aborted, or cluster or topic not found; 2: usage error.
    """
    from kafkawire.client.producer import PRODUCER_KEYS
    from kafkawire.net.producer import Producer

    _check(key_separator, {"--key": key, "--whole-input": whole or None})
    separator = _bytes(key_separator)
    encoders = record_encoders(encoding, topic)
    line_format = LineFormat(separator, _bytes(null), _headers(header or []), _bytes(key), encoders)
    read = whole_input if whole else lines
    client = live.configuration(cluster, PRODUCER_KEYS, transactional_id=transactional_id)
    report = DeliveryReport(verbose, "the input" if whole else "line {}")

    async def work() -> None:
        producer = Producer(client.values)  # validates the settings before any request
        described = await _existing(client.values, topic)
        if described is not None and partition is not None:
            check_partition(described, partition)
        await producer.start()
        sends = _send(producer, topic, read(source), line_format, partition, report)
        if "transactional.id" in client.values:
            sends = in_transaction(producer, sends, report)
        await _closed_after(sends, producer, report)
        await _suggest_topic(client.values, topic, report.error)
        if described is None:
            report.created(topic)

    try:
        live.run(work, client)
    finally:
        if report.begun:
            typer.echo(report.summary, err=True)
    if report.failed:
        raise typer.Exit(1)


def _check(key_separator: str | None, others: Mapping[str, object]) -> None:
    """Check that options fit together."""
    if key_separator == "":
        raise typer.BadParameter("must not be empty", param_hint="--key-separator")
    for option, other in others.items():
        if other is not None and key_separator is not None:
            raise typer.BadParameter(
                "not allowed together", param_hint=f"{option}, --key-separator"
            )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogateescape")


def _headers(texts: list[str]) -> tuple[tuple[str, bytes | None], ...]:
    """Parse headers; a name may be given more than once."""
    headers = []
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{text!r}: expected NAME=VALUE", param_hint="--header")
        headers.append((name, _bytes(value)))
    return tuple(headers)


async def _closed_after(
    sends: Coroutine[Any, Any, None], producer: Producer, report: DeliveryReport
) -> None:
    """Send records, and close the producer; one that failed does not wait long for its brokers."""
    from kafkawire.client.failures import ClientError

    close_timeout_s: float | None = None
    try:
        await sends
    except (asyncio.CancelledError, ClientError):
        close_timeout_s = DELIVER_SECONDS
        raise
    finally:
        await producer.close(close_timeout_s)
        await report.drain()


async def _send(
    producer: Producer,
    topic: str,
    records: AsyncIterator[bytes],
    line_format: LineFormat,
    partition: int | None,
    report: DeliveryReport,
) -> None:
    """Send lines with bounded memory. Stop reading after an error that would affect every line."""
    report.begun = True
    async for line in records:
        try:
            key, value = line_format.record(line)
        except InvalidRecordValue as invalid:
            await report.add(_failed(invalid))
            continue
        except UnusableSchema as unusable:
            await report.add(_failed(unusable))
            return
        future = await producer.send(
            topic, value, key=key, partition=partition, headers=line_format.headers
        )
        error = await report.add(future)
        if error is not None and _affects_all(error):
            return
    await producer.flush()


def _failed(error: Exception) -> asyncio.Future[RecordMetadata]:
    """Make the future of a line that is not sent."""
    future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future


def _affects_all(error: ClientError) -> bool:
    """Return whether the next record would fail too: unknown topic, no broker, not authorised."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError, RequestFailed

    if isinstance(error, BrokerError):
        return error.code in {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        }
    return isinstance(error, RequestFailed)


async def _existing(config: dict[str, Any], topic: str) -> TopicInfo | None:
    """Describe a topic; None if it does not exist: brokers may create it for the first record."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    async with live.admin_beside(config) as admin:
        try:
            return (await admin.describe_topics([topic]))[topic]
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None


async def _suggest_topic(config: dict[str, Any], topic: str, error: ClientError | None) -> None:
    """Name a topic that is similar to one that does not exist."""
    from kafkawire.client.failures import BrokerError

    if isinstance(error, BrokerError):
        async with live.admin_beside(config) as admin:
            similar = await with_similar_topic(admin, error, [topic])
        if similar is not error:
            print_note(str(similar))
