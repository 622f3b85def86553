"""`consume --format arrow|parquet`: the records that `--format json` shows, as columns."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkawire.client.consumer import TopicPartition
from kafkawire.net.consumer import Consumer
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.live.outputs import ColumnFormat, column_format, column_output, written
from kafkawire_cli.live.reader import Reader, Until
from tests.cli.reports import run, terminal

COUNT = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """Partition 0 of `t` has records 0 to 29."""
    with ServerThread(ServerConfig(topics={"t": 2})) as started:
        lines = tmp_path_factory.mktemp("lines") / "lines"
        lines.write_text("".join(f"k{number}:v{number}\n" for number in range(COUNT)))
        sent = ("produce", "t", "-p", "0", "-K", ":", "-H", "a=1", "-H", "b=")
        done = run(*sent, "-i", str(lines), "-b", started.bootstrap)
        assert (done.exit_code, done.stdout) == (0, ""), done.stderr
        yield started


def consumed(server: ServerThread, form: str, *words: str) -> bytes:
    done = run("consume", "t", "-b", server.bootstrap, "-f", form, *words)
    assert done.exit_code == 0, done.stderr
    return done.stdout_bytes


def table(form: str, data: bytes) -> pa.Table:
    """Read what a format wrote."""
    if form == "parquet":
        return parquet.read_table(BytesIO(data))
    return pa.ipc.open_stream(data).read_all()


def from_json(text: bytes) -> list[tuple[Any, ...]]:
    return [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            row["timestamp"],
            row["key"]["text"].encode(),
            row["value"]["text"].encode(),
            [(header["key"], header["value"]["text"].encode()) for header in row["headers"]],
        )
        for row in map(json.loads, text.splitlines())
    ]


def from_columns(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row in rows.to_pylist()
    ]


@pytest.mark.parametrize("form", ColumnFormat)
@pytest.mark.parametrize(
    "words",
    [("-e",), ("-n", "7"), ("--offset", "5", "--until", "8"), ("-p", "1", "-e")],
    ids=" ".join,
)
def test_columns_have_the_records_of_json(
    server: ServerThread, form: str, words: tuple[str, ...]
) -> None:
    rows = table(form, consumed(server, form, *words))
    assert from_columns(rows) == from_json(consumed(server, "json", *words))


def test_values_are_decoded(server: ServerThread) -> None:
    rows = table("arrow", consumed(server, "arrow", "-n", "3", "--values", "string"))
    decoded = rows.column("value_decoded").to_pylist()
    assert [json.loads(one["value"]) for one in decoded] == ["v0", "v1", "v2"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-f", "parquet", "-g", "g"), "not allowed with a group"),
        (("-f", "arrow", "--share", "s"), "share groups"),
    ],
)
def test_usage_errors(server: ServerThread, words: tuple[str, ...], reason: str) -> None:
    done = run("consume", "t", "-b", server.bootstrap, *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout_bytes == b""


def test_no_binary_output_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal() as (_, theirs), open(theirs, "w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(Exception, match="arrow is binary"):
            column_format("arrow")


@pytest.mark.parametrize("form", ColumnFormat)
def test_what_was_written_before_an_interrupt_is_complete(
    server: ServerThread, form: ColumnFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(out))

    async def read() -> None:
        async with Consumer({"bootstrap.servers": server.bootstrap}) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.seek(TopicPartition("t", 0), 0)
            reading = asyncio.current_task()
            assert reading is not None
            loop = asyncio.get_running_loop()

            async def run_until_read(output: Any) -> None:
                write = output.write

                def write_and_interrupt(batch: pa.RecordBatch) -> None:
                    write(batch)
                    loop.call_soon_threadsafe(reading.cancel)

                output.write = write_and_interrupt
                await Reader(consumer, output, Until()).run()

            await written(column_output(form, None), run_until_read)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(read())
    assert table(form, out.getvalue()).num_rows == COUNT


def test_a_group_continues_after_the_columns_that_were_written(server: ServerThread) -> None:
    first = table("arrow", consumed(server, "arrow", "-g", "g", "-n", "4"))
    second = table("arrow", consumed(server, "arrow", "-g", "g", "-e"))
    offsets = [*first.column("offset").to_pylist(), *second.column("offset").to_pylist()]
    assert offsets == list(range(COUNT))
