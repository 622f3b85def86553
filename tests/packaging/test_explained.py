"""Compiled classes explain themselves as interpreted ones do: docstrings, values of wrong types.

Interpreted constructors and assignments take any value, as checks would make them a seventh slower:
`encode` names the field (tests/messages/test_wrong_types.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkawire_codegen import generate, schemas_dir
from kafkawire_codegen.compile import compile_modules
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("packaging/test_explained")  # one build

PROGRAM = """
import inspect, json, pydoc
from mine.messages import heartbeat_request, describe_topic_partitions_request
from mine.messages.describe_topic_partitions_request import *
from mine.messages.heartbeat_request import HeartbeatRequest

CLASSES = (HeartbeatRequest, DescribeTopicPartitionsRequest, TopicRequest, Cursor)

def refusal(call):
    try:
        call()
    except (AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps({
    "native": not heartbeat_request.__file__.endswith(".py"),
    "docs": {c.__name__: inspect.getdoc(c) for c in CLASSES},
    "functions": [inspect.getdoc(HeartbeatRequest.decode), inspect.getdoc(HeartbeatRequest.encode)],
    "parameters": list(inspect.signature(HeartbeatRequest).parameters),
    "help": pydoc.plain(pydoc.render_doc(HeartbeatRequest)),
    "constructed": [
        refusal(lambda: HeartbeatRequest(group_id=5)),
        refusal(lambda: HeartbeatRequest(generation_id="x")),
        refusal(lambda: HeartbeatRequest(group_instance_id=5)),
        refusal(lambda: DescribeTopicPartitionsRequest(topics="x")),
        refusal(lambda: DescribeTopicPartitionsRequest(cursor=HeartbeatRequest())),
    ],
    "assigned": [
        refusal(lambda: setattr(HeartbeatRequest(), "group_id", 5)),
        refusal(lambda: setattr(HeartbeatRequest(), "generation_id", None)),
    ],
    "deleted": refusal(lambda: delattr(HeartbeatRequest(), "group_id")),
}))
"""


def run_in(folder: Path) -> Any:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Ask the classes of one package about themselves, compiled and interpreted."""
    root = tmp_path_factory.mktemp("explained")
    (root / "schemas").mkdir()
    for name in ("HeartbeatRequest", "DescribeTopicPartitionsRequest"):
        shutil.copy(schemas_dir() / f"{name}.json", root / "schemas")
    made = generate(root / "schemas", root / "mine" / "messages", "mine.messages")
    (root / "mine" / "__init__.py").touch()
    interpreted = run_in(root)
    assert not interpreted["native"]
    modules = [f"mine/messages/{module}.py" for module in made.modules.values()]
    compile_modules(root, modules, library="mine", out=root)
    return run_in(root), interpreted


def test_docstrings_survive_compilation(shown: tuple[Any, Any]) -> None:
    compiled, interpreted = shown
    assert compiled["native"]
    for what in ("docs", "functions", "parameters"):
        assert compiled[what] == interpreted[what]
    line = "group_instance_id (3+): Static membership id (KIP-345); null for dynamic members."
    assert line in compiled["docs"]["HeartbeatRequest"].splitlines()
    assert line in compiled["help"]
    assert line in interpreted["help"]


def test_a_compiled_class_names_the_field_of_a_wrong_type(shown: tuple[Any, Any]) -> None:
    compiled, _ = shown
    assert compiled["constructed"] == [
        "TypeError: group_id: str expected, got int",
        "TypeError: generation_id: int expected, got str",
        "TypeError: group_instance_id: str or None expected, got int",
        "TypeError: topics: list expected, got str",
        "TypeError: cursor: Cursor or None expected, got HeartbeatRequest",
    ]
    assert compiled["assigned"] == [
        "TypeError: group_id: str expected, got int",
        "TypeError: generation_id: int expected, got NoneType",
    ]
    refused = "AttributeError: 'HeartbeatRequest' object attribute 'group_id' cannot be deleted"
    assert compiled["deleted"] == refused
