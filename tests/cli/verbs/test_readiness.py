"""`kafkawire readiness`: every recording against releases.json and the versions seen in it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from tests.capture import truth
from tests.capture.written import BROKER, CLIENT, Scenario
from tests.cli import outside
from tests.cli.reports import report, run, text
from tests.conftest import FIXTURES, ROOT

RELEASES: dict[str, dict[str, str]] = json.loads(
    (ROOT / "schemas" / "releases.json").read_text(encoding="utf-8")
)["releases"]
OLD = FIXTURES / "captures" / "kp22-old-0.9.pcap"
HELLO = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}


def readiness(target: str, *paths: Path, code: int) -> Any:
    return report("readiness", *paths, options=("--target", target), code=code)


@pytest.mark.parametrize("target", ["3.9", "4.0", "4.3", "4.4"])
@pytest.mark.parametrize("path", truth.captures(), ids=lambda path: path.name.split(".truth")[0])
def test_who_is_not_ready_and_for_which_calls(path: Path, target: str) -> None:
    takes = RELEASES[target]
    uses: dict[Any, Counter[tuple[str, int]]] = defaultdict(Counter)
    for row in outside.rows(path):
        if row["dir"] == "req":
            uses[row["client_id"]][row["api_name"], row["api_version"]] += 1
    wanted = {}
    for client_id, calls in uses.items():
        refused = {
            f"{api} v{version}": count
            for (api, version), count in calls.items()
            if api in takes and version < int(takes[api].split("-")[0])
        }
        if refused:
            wanted[client_id] = refused
    made = readiness(target, truth.capture_of(path), code=1 if wanted else 0)
    found: dict[Any, dict[str, int]] = defaultdict(dict)
    for client in made["not_ready"]:
        for call in client["calls"]:
            found[client["client_id"]][f"{call['api_name']} v{call['api_version']}"] = call[
                "requests"
            ]
            ends = call["target_min"], call["target_max"]
            wanted_ends = takes[call["api_name"]].split("-")
            assert ends == (int(wanted_ends[0]), int(wanted_ends[-1]))
    assert found == wanted
    assert made["ready"] is not bool(wanted)
    judged = {one["client_id"] for one in made["ready_clients"] + made["not_ready"]}
    said_more = {c for c, calls in uses.items() if {api for api, _ in calls} - HELLO}
    assert judged == said_more
    assert {one["client_id"] for one in made["not_judged"]} == set(uses) - said_more


def test_the_release_before_takes_all_of_it() -> None:
    assert readiness("3.9", OLD, code=0)["not_ready"] == []
    assert len(readiness("4.0", OLD, code=1)["not_ready"]) == 4


def test_software_and_address_are_shown() -> None:
    made = readiness("4.0", FIXTURES / "captures" / "fg-max-v0.11.0.pcap", code=0)
    assert {one["software_name"] for one in made["ready_clients"]} == {"kgo"}
    assert {one["address"] for one in made["ready_clients"]} == {"127.0.0.1"}


# -- made up scenarios


def request(
    scenario: Scenario, name: str, version: int, connection: int = 0, **fields: Any
) -> Scenario:
    return scenario.request(name, version, connection, **fields).respond(name, version, connection)


def judge(scenario: Scenario, path: Path) -> dict[str, list[str]]:
    """Say for each kind of verdict who got it, and why not judged."""
    capture = scenario.save(path / "a.pcap")
    result = run("readiness", capture, "--target", "4.0", "--format", "json")
    made = json.loads(result.stdout)
    assert result.exit_code == (1 if made["not_ready"] else 0)
    return {
        "not_ready": [one["client_id"] for one in made["not_ready"]],
        "ready": [one["client_id"] for one in made["ready_clients"]],
        "not_judged": [one["reason"] for one in made["not_judged"]],
    }


def test_an_api_that_the_release_does_not_have(tmp_path: Path) -> None:
    """StopReplica is a broker's; nobody else's call went away so far."""
    scenario = request(Scenario(), "StopReplica", 3, controllerId=1)
    assert judge(scenario, tmp_path)["not_judged"] == ["a broker or controller, upgraded itself"]


def test_a_version_newer_than_the_release_is_not_a_finding(tmp_path: Path) -> None:
    assert judge(request(Scenario(), "Metadata", 13), tmp_path)["ready"] == ["tester"]
    capture = request(Scenario(), "Metadata", 13).save(tmp_path / "b.pcap")
    assert readiness("2.2", capture, code=0)["ready"] is True


def test_who_only_says_hello_cannot_be_judged(tmp_path: Path) -> None:
    assert judge(request(Scenario(), "ApiVersions", 0), tmp_path) == {
        "not_ready": [],
        "ready": [],
        "not_judged": ["only ApiVersions requests captured"],
    }


def test_encrypted_or_silent_clients_are_not_checked(tmp_path: Path) -> None:
    tls = bytes.fromhex("160301020001000000") + bytes(200)
    scenario = Scenario().send(CLIENT, tls, 1).send(BROKER, tls, 1)
    response = kafkawire.from_json("MetadataResponse", 12, {"clusterId": "c", "controllerId": 1})
    for _ in range(3):
        scenario.send(BROKER, kafkawire.encode_frame(response, 12, 7), 2)
    made = judge(scenario, tmp_path)["not_judged"]
    incomplete = "protocol is TLS: the handshake is not complete"
    assert f"1 connection to 10.0.0.2:9092: {incomplete}" in made
    assert len(made) == 2
    assert "10.0.0.1" in text("clients", tmp_path / "a.pcap")


def test_versions_of_the_current_broker_are_shown(tmp_path: Path) -> None:
    """A client that may know better, and a broker that does not."""
    scenario = Scenario().request(
        "ApiVersions", 3, clientSoftwareName="new", clientSoftwareVersion="9"
    )
    offered = [
        {"apiKey": 0, "minVersion": 0, "maxVersion": 2},
        {"apiKey": 2, "minVersion": 0, "maxVersion": 5},
    ]
    scenario.respond("ApiVersions", 3, apiKeys=offered)
    request(request(scenario, "Produce", 2, acks=1), "ListOffsets", 0)
    path = scenario.save(tmp_path / "a.pcap")
    (client,) = readiness("4.0", path, code=1)["not_ready"]
    assert (client["software_name"], client["software_version"]) == ("new", "9")
    assert [(call["api_name"], call["broker_max"]) for call in client["calls"]] == [
        ("Produce", 2),
        ("ListOffsets", 5),
    ]
    result = run("readiness", path, "--target", "4.0")
    assert result.exit_code == 1
    assert "check the version of its software" in result.stdout
    assert "Produce v2" in result.stdout


# -- the target


@pytest.mark.parametrize("target", ["4.0.1", "v4.0"])
def test_a_patch_release_is_its_minor_release(target: str) -> None:
    assert readiness(target, OLD, code=1) == readiness("4.0", OLD, code=1)


@pytest.mark.parametrize("target", ["5.0", "4", "four", ""])
def test_an_unknown_release_names_those_that_are_known(target: str) -> None:
    result = run("readiness", OLD, "--target", target)
    assert result.exit_code == 2
    message = " ".join(result.stderr.split())
    assert f"unknown release {target!r}" in message
    assert "2.2, 2.3" in message
    assert "4.4, trunk" in message


def test_a_target_must_be_given() -> None:
    assert run("readiness", OLD).exit_code == 2
