"""`kafkawire conformance`: exit codes, the three forms, clean-up, text of others escaped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from html.parser import HTMLParser
from operator import itemgetter
from pathlib import Path

import pytest

from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import COMMAND, run
from tests.conformance.checks import config

pytestmark = pytest.mark.timeout(120)


def test_a_broker_without_failures() -> None:
    with ServerThread(config()) as server:
        shown = run("conformance", server.bootstrap, "--feature", "apis")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "0 failed" in shown.stdout


def test_failures_are_shown_with_their_exchange_and_packets(tmp_path: Path) -> None:
    with ServerThread(config()) as server:
        server.fault("ListGroups", error="INVALID_REQUEST")
        options = ("--feature", "groups", "--captures", str(tmp_path))
        shown = run("conformance", server.bootstrap, *options)
        packets = [str(each) for each in tmp_path.iterdir()]
        as_json = run("conformance", server.bootstrap, *options, "--json")
    assert (shown.exit_code, as_json.exit_code) == (1, 1)
    assert "INVALID_REQUEST" in shown.stdout
    assert packets
    assert all(each in shown.stdout for each in packets)
    report = json.loads(as_json.stdout)
    failed = [each for each in report["checks"] if each["outcome"] == "failed"]
    assert {each["api"] for each in failed} == {"ListGroups"}
    assert report["counts"]["failed"] == len(failed)
    last = failed[0]["exchanges"][-1]
    assert last["response"]["errorCode"] == 42
    assert bytes.fromhex(last["response_hex"])


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - of HTMLParser
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_has_what_failed_and_no_markup_of_others(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with ServerThread(config()) as server:
        server.fault("DescribeGroups")
        options = ("--feature", "groups", "--prefix", "<script>x", "-o", str(page))
        shown = run("conformance", server.bootstrap, *options)
    assert shown.exit_code == 1
    tags = Tags()
    tags.feed(page.read_text())
    assert "script" not in tags.tags
    assert any("<script>x" in each for each in tags.text)
    assert any("UNKNOWN_SERVER_ERROR" in each for each in tags.text)


def test_names_that_remain_are_named() -> None:
    with ServerThread(config()) as server:
        server.fault("DeleteTopics")
        shown = run("conformance", server.bootstrap, "--feature", "topics", "--prefix", "left")
    assert shown.exit_code == 1
    assert "topic left-" in shown.stderr


@pytest.mark.parametrize(
    ("form", "begin"), [("table", "  passed       apis"), ("jsonl", '{"feature": "apis"')]
)
def test_results_are_written_while_others_are_checked(form: str, begin: str) -> None:
    """The checks of topics wait for a response; after an interrupt, they delete their topics."""
    with ServerThread(config()) as server:
        dropped = server.fault("CreatePartitions", action="drop")
        options = ("--feature", "apis", "--feature", "topics", "-f", form, "--timeout", "100")
        command = [*COMMAND, "conformance", server.bootstrap, *options]
        env = {**os.environ, "PYTHONUNBUFFERED": ""}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            server.wait(lambda: dropped.hit > 0)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        assert process.returncode == 130
        assert line.startswith(begin)
        assert "kafkawire-conformance" not in run("topics", "-b", server.bootstrap).stdout


def test_json_lines_are_the_checks() -> None:
    with ServerThread(config()) as server:
        options = ("conformance", server.bootstrap, "--feature", "apis", "-f")
        checks = [json.loads(line) for line in run(*options, "jsonl").stdout.splitlines()]
        report = json.loads(run(*options, "json").stdout)
    order = itemgetter("behaviour", "api", "version")
    assert sorted(checks, key=order) == sorted(report["checks"], key=order)


def test_usage_errors() -> None:
    assert run("conformance", "--feature", "nonsense").exit_code == 2
    assert run("conformance", "a:1", "-b", "b:2").exit_code == 2
