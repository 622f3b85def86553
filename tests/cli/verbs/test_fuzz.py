"""`kafkawire fuzz`: exit codes, both forms, replay, and what is usage."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import COMMAND, run
from tests.conformance.checks import config

from .test_conformance import Tags

pytestmark = pytest.mark.timeout(120)

SEED = ("--seed", "1")


def test_a_broker_without_findings() -> None:
    with ServerThread(config()) as server:
        shown = run("fuzz", server.bootstrap, *SEED, "--count", "20")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "20 requests: 0 findings; seed 1" in shown.stdout


def report(bootstrap: str, *options: str) -> dict[str, Any]:
    shown = run("fuzz", bootstrap, *options, "--json")
    assert shown.exit_code == 1
    content: dict[str, Any] = json.loads(shown.stdout)
    return content


def test_findings_are_shown_with_their_request_and_packets(tmp_path: Path) -> None:
    options = (*SEED, "--count", "8", "--api", "ListGroups", "--captures", str(tmp_path))
    with ServerThread(config()) as server:
        server.fault("ListGroups", error="UNKNOWN_SERVER_ERROR")
        shown = run("fuzz", server.bootstrap, *options)
        packets = [str(each) for each in tmp_path.iterdir()]
        content = report(server.bootstrap, *options)
        [finding] = content["findings"]
        again = report(server.bootstrap, *shlex.split(finding["replay"]))
    assert shown.exit_code == 1
    assert "UNKNOWN_SERVER_ERROR" in shown.stdout
    assert packets
    assert all(each in shown.stdout for each in packets)
    assert (finding["problem"], finding["repeatable"]) == ("server_error", True)
    assert bytes.fromhex(finding["smallest"]["bytes_hex"])
    [replayed] = again["findings"]
    assert replayed["first"] == finding["first"]
    assert {each["api"] for each in content["apis"]} == {"ListGroups"}
    assert sum(each["requests"] for each in content["apis"]) == content["requests"] == 8


def test_a_finding_is_written_at_once_and_an_interrupted_run_deletes_its_topics() -> None:
    with ServerThread(config()) as server:
        server.fault("ListGroups", error="UNKNOWN_SERVER_ERROR")
        words = [server.bootstrap, *SEED, "--api", "ListGroups", "--shrinking", "0"]
        endless = [*COMMAND, "fuzz", *words, "--count", "1000000000"]
        with subprocess.Popen(endless, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, b"")
            replay = next(line for line in lines if b"replay:" in line).decode()
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        assert process.returncode == 130
        assert "kafkawire-fuzz" not in run("topics", "-b", server.bootstrap).stdout
        again = report(server.bootstrap, *shlex.split(replay.partition("replay:")[2]))
    assert len(again["findings"]) == 1


def test_apis_that_change_the_cluster_need_their_name_or_an_option() -> None:
    with ServerThread(config()) as server:
        named = run("fuzz", server.bootstrap, *SEED, "--count", "3", "--api", "ElectLeaders")
        safe = run("fuzz", server.bootstrap, *SEED, "--count", "60", "--json")
        unsafe = run(
            "fuzz",
            server.bootstrap,
            *SEED,
            "--count",
            "60",
            "--json",
            "--unsafe",
            "--shrinking",
            "0",
            "--timeout",
            "1",
        )
    assert "ElectLeaders" in named.stdout
    apis = [{each["api"] for each in json.loads(one.stdout)["apis"]} for one in (safe, unsafe)]
    changes = {"CreateAcls", "DeleteAcls", "ElectLeaders", "UpdateFeatures", "AlterClientQuotas"}
    assert not apis[0] & changes
    assert apis[1] & changes


def test_text_of_requests_is_escaped() -> None:
    with ServerThread(config()) as server:
        server.fault("FindCoordinator", error="UNKNOWN_SERVER_ERROR")
        options = ("--count", "30", "--api", "FindCoordinator", "--prefix", "\x1b[31m")
        shown = run("fuzz", server.bootstrap, *SEED, *options)
    assert "FindCoordinator" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_the_page_has_what_json_has_and_no_markup_of_others(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with ServerThread(config()) as server:
        server.fault("DescribeGroups", error="UNKNOWN_SERVER_ERROR")
        options = ("--count", "30", "--api", "DescribeGroups", "--prefix", "<script>x")
        shown = run("fuzz", server.bootstrap, *SEED, *options, "--json", "-o", str(page))
    assert shown.exit_code == 1
    [finding] = json.loads(shown.stdout)["findings"]
    tags = Tags()
    tags.feed(page.read_text())
    assert "script" not in tags.tags
    text = "".join(tags.text)
    smallest = {name: finding["smallest"][name] for name in ("api", "version", "request")}
    shown_json = [json.dumps(each, indent=1) for each in (smallest, finding["response"])]
    for part in (finding["description"], finding["replay"], *shown_json):
        assert part in text
    assert finding["smallest"]["bytes_hex"] in text
    assert "<script>x" in text
    assert "UNKNOWN_SERVER_ERROR: " in text


def test_usage_errors() -> None:
    assert run("fuzz", "--api", "nonsense").exit_code == 2
    assert run("fuzz", "--count", "0").exit_code == 2
    assert run("fuzz", "a:1", "-b", "b:2").exit_code == 2


@pytest.mark.parametrize("verb", ["fuzz", "conformance"])
@pytest.mark.parametrize("page", ["-", "no-such-directory/page.html", "."])
def test_a_page_that_cannot_be_written_is_refused_before_the_run(verb: str, page: str) -> None:
    shown = run(verb, "127.0.0.1:1", "-o", page)  # where nothing listens, which would exit with 1
    assert shown.exit_code == 2
    assert "--output" in shown.stderr
