"""Secrets are hidden in every output unless --secrets is given."""

from __future__ import annotations

import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.jsonl.rows import Lines
from kafkawire.capture.rows import Row
from kafkawire.net.brokers.recording import Recording
from kafkawire.reference import as_json, explain, explain_frame
from kafkawire.spark.options import Options
from kafkawire_cli.input.inputs import Entry
from kafkawire_cli.input.sources import Known
from kafkawire_cli.parallel.row_batches import DecodeOptions
from kafkawire_cli.render.messages import Shape, View
from tests import fuzzing
from tests.capture.machine import feed, finish
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.cli.reports import run
from tests.cli.secrets import Hidden, forms, hidden_messages, metadata_records, new_secret

SIZE = 4
VIEWS = (View(), View(records=True), View(redact=True), View(redact=True, records=True))


def frames(one: Hidden, number: int) -> tuple[bytes, bytes]:
    """Write the exchange that a message is part of: its request and its response."""
    body = {one.direction: one.body, "request": {}} | {one.direction: one.body}
    requested = request(one.api, one.version, number, **body["request"])
    return requested, response(one.api, one.version, number, **body.get("response", {}))


def header_size(frame: bytes, direction: str, api: str, version: int) -> int:
    """Say how long a frame's size and header are."""
    made = kafkawire.messages.REGISTRY.get(f"{api}{direction.capitalize()}")
    flexible = made.flexible is not None and version >= made.flexible
    if direction == "response":
        return 8 + flexible
    return 14 + int.from_bytes(frame[12:14], "big") + flexible


def rows(requested: bytes, responded: bytes) -> list[Row]:
    """Decode one exchange, as far as it is there."""
    machine = Conversation(client=0, in_sync=(True, True), known_kafka=True)
    made = feed(machine, 0, requested, 1, 1)
    if responded:
        made += feed(machine, 1, responded, 2, 2)
    return made + finish(machine)


def text_of(shape: Shape, view: View) -> Callable[[Entry], str]:
    """Return what formats rows."""
    return DecodeOptions(shape, view, None, Known([], [])).formatter()


def shown(found: list[Row]) -> Iterator[str]:
    """Show rows in every form."""
    for view in VIEWS:
        for row in found:
            for shape in (Shape.TREE, Shape.JSONL, Shape.TABLE):
                yield text_of(shape, view)(Entry("c", 0, "a:1", "b:2", row))


def explained(name: str, version: int, body: bytes) -> Iterator[str]:
    made = explain(name, version, body, secrets=False)
    yield str(made)
    yield str(as_json(made))


def assert_hidden(secret: str, texts: Iterator[str], where: object) -> None:
    for output in texts:
        for form in forms(secret):
            assert form not in output, f"{where}: {output[:2000]}"


def clearly_shown(secret: str, output: str) -> bool:
    return any(form in output for form in forms(secret))


@pytest.mark.parametrize("at", range(19))
def test_a_secret_is_shown_only_on_request(at: int) -> None:
    rng = random.Random(1)
    secret = new_secret(rng)
    one = hidden_messages(secret, rng)[at]
    found = rows(*frames(one, 5))
    assert_hidden(secret, shown(found), one)
    lines = Lines("c", True, True)
    rows_of_api = "".join(lines.line(0, "a:1", "b:2", row) for row in found)
    assert clearly_shown(secret, rows_of_api), "else nothing is hidden here"


@pytest.mark.parametrize("at", range(19))
def test_a_message_is_cut_at_every_byte(at: int) -> None:
    rng = random.Random(2)
    secret = new_secret(rng)
    one = hidden_messages(secret, rng)[at]
    requested, responded = frames(one, 5)
    for cut in range(len(requested if one.direction == "request" else responded)):
        if one.direction == "request":
            found = rows(requested[:cut], b"")
        else:
            found = rows(requested, responded[:cut])
        for row in found:
            line = Lines("c", False, True).line(0, "a:1", "b:2", row)
            tree = text_of(Shape.TREE, View(records=True))(Entry("c", 0, "a:1", "b:2", row))
            assert_hidden(secret, iter((line, tree)), f"{one} cut at {cut}")


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", fuzzing.seeds(8))
def test_damaged_messages(seed: int) -> None:
    """Bodies are damaged, not headers: what is of another API may look like anything."""
    rng = random.Random(seed)
    with fuzzing.replayable(seed):
        for _ in range(3):
            secret = new_secret(rng)
            for one in hidden_messages(secret, rng):
                if one.api == "Fetch":  # damage to the topic makes it another topic's records
                    continue
                pair = [*frames(one, 5)]
                which = one.direction == "response"
                frame = pair[which]
                start = header_size(frame, one.direction, one.api, one.version)
                body = fuzzing.mutate(frame[start:], rng, 1)
                made = frame[SIZE:start] + body
                pair[which] = len(made).to_bytes(SIZE, "big") + made
                assert_hidden(secret, shown(rows(pair[0], pair[1])), one)
                name = f"{one.api}{one.direction.capitalize()}"
                assert_hidden(secret, explained(name, one.version, body), one)


@pytest.fixture(scope="module")
def secret_capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A capture of all of them, each on a connection of its own, and a raw PLAIN token."""
    rng = random.Random(3)
    secret = new_secret(rng)
    scenario = Scenario()
    for number, one in enumerate(hidden_messages(secret, rng)):
        requested, responded = frames(one, number)
        scenario.send(CLIENT, requested, number).send(BROKER, responded, number)
    last = number + 1
    scenario.request("SaslHandshake", 0, last, mechanism="PLAIN")
    scenario.respond("SaslHandshake", 0, last, errorCode=0, mechanisms=["PLAIN"])
    token = f"\0alice\0{secret}".encode()
    scenario.send(CLIENT, len(token).to_bytes(4, "big") + token, last)
    return secret, scenario.save(tmp_path_factory.mktemp("secrets") / "c.pcap")


@pytest.mark.parametrize("options", [(), ("--records",), ("--redact",), ("--jobs", "2")])
@pytest.mark.parametrize("form", ["jsonl", "tree", "table"])
def test_decode(secret_capture: tuple[str, Path], form: str, options: tuple[str, ...]) -> None:
    secret, path = secret_capture
    result = run("decode", path, "--format", form, *options)
    assert result.exit_code == 0
    assert_hidden(secret, iter([result.output]), form)


def test_decode_shows_secrets_on_request(secret_capture: tuple[str, Path]) -> None:
    secret, path = secret_capture
    assert clearly_shown(secret, run("decode", path, "--format", "jsonl", "--show-secrets").output)


def test_tables(secret_capture: tuple[str, Path], tmp_path: Path) -> None:
    from kafkawire.capture.tables import TABLES

    secret, path = secret_capture
    names = [word for name in TABLES for word in ("--table", name)]
    for ending in ("jsonl", "csv"):
        for more in ((), ("--redact",)):
            result = run("decode", path, *names, "-o", tmp_path / f"{{table}}.{ending}", *more)
            assert result.exit_code == 0, result.output
            written = sorted(tmp_path.glob(f"*.{ending}"))
            assert len(written) == len(TABLES)
            assert_hidden(secret, (one.read_text() for one in written), ending)


def test_bodies_as_columns(secret_capture: tuple[str, Path]) -> None:
    secret, path = secret_capture
    names = {
        f"{one.api}{one.direction.capitalize()}"
        for one in hidden_messages(secret, random.Random(3))
    }
    shown = 0
    for name in sorted(names):
        given = ("decode", path, "--table", "messages", "--bodies", name)
        result = run(*given)
        assert result.exit_code == 0, result.output
        assert (
            f'"api_name":"{name.removesuffix("Request").removesuffix("Response")}"' in result.output
        )
        assert_hidden(secret, iter([result.output]), name)
        shown += clearly_shown(secret, run(*given, "--show-secrets").output)
    assert shown > 5


def test_files_with_secrets_are_private(secret_capture: tuple[str, Path], tmp_path: Path) -> None:
    secret, path = secret_capture
    out = tmp_path / "m.jsonl"
    out.touch(0o644)
    run("decode", path, "--table", "messages", "-o", out, "--show-secrets")
    assert clearly_shown(secret, out.read_text())
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize("verb", ["summary", "latency", "topics", "clients", "groups"])
def test_reports(secret_capture: tuple[str, Path], verb: str) -> None:
    secret, path = secret_capture
    for form in ("table", "json"):
        assert_hidden(secret, iter([run(verb, path, "--format", form).output]), verb)


def test_explain_of_frames() -> None:
    rng = random.Random(4)
    secret = new_secret(rng)
    for one in hidden_messages(secret, rng):
        requested, responded = frames(one, 5)
        for frame, to in ((requested, None), (responded, one)):
            key = kafkawire.messages.REGISTRY.get(f"{one.api}Request").api_key
            about = None if to is None else (key or 0, one.version)
            made = explain_frame(frame, about, secrets=False)
            assert_hidden(secret, iter([str(made), str(as_json(made))]), one)
            for cut in range(0, len(frame), 7):
                made = explain_frame(frame[:cut], about, secrets=False)
                assert_hidden(secret, iter([str(made), str(as_json(made))]), (one, cut))


def test_a_log_of_metadata(tmp_path: Path) -> None:
    from kafkawire.records import BatchBuilder, Record

    secret = new_secret(random.Random(5))
    whole = metadata_records(secret)
    cut = [value[:-1] for value in whole]
    builder = BatchBuilder()
    builder.extend(Record(at, 0, None, value) for at, value in enumerate([*whole, *cut]))
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(builder.build())
    for form in ("jsonl", "table"):
        output = run("log", path, "--format", form).output
        assert "ssl.keystore.password" in output
        assert_hidden(secret, iter([output]), form)
    assert clearly_shown(secret, run("log", path, "--show-secrets", "--format", "jsonl").output)
    dump = tmp_path / "dump.parquet"
    run("log", path, "--format", "parquet", "-o", dump)
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(dump).to_pylist()
    assert_hidden(secret, (str(row) for row in rows), dump)
    assert secret.encode() not in dump.read_bytes()


def test_a_recording_is_private(tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    for _ in range(2):
        Recording(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)


def test_spark_has_no_option_that_shows_them() -> None:
    assert not hasattr(Options(), "secrets")
