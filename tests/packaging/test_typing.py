"""What users' type checkers, mypy --strict and pyright, make of our classes and examples."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kafkawire_codegen import generate
from tests.codegen import hostile
from tests.conftest import ROOT, missing
from tests.pages import blocks

RIGHT = """
import kafkawire
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

request = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(fetch_offset=42)])])
offset: int = request.topics[0].partitions[0].fetch_offset
cluster: str | None = request.cluster_id
again: FetchRequest = FetchRequest.decode(request.encode(12), 12)
message: kafkawire.Message = kafkawire.decode("FetchRequest", 12, again.encode(12))
match message:
    case FetchRequest(topics=[FetchTopic(topic=name)]):
        spoken: str = name
verdict: bool = kafkawire.verify("FetchRequest", 12, b"").canonical
header = kafkawire.decode_frame(b"").header
correlation_id: int = header.correlation_id
"""

WRONG = """
from kafkawire.messages import FetchRequest

FetchRequest(max_wait_ms="500")
FetchRequest(max_wait=500)
size: int = FetchRequest().encode(12)
cluster: str = FetchRequest().cluster_id
"""


UNCHECKED: Final = {
    "docs/arrow.md": "imports what it generates",
    "docs/guide/spark.md": "`spark` is the session of a shell",
    "docs/spark.md": "`spark` is the session of a shell",
}
"""Page -> why its examples are not checked."""
CLIENT: Final = """
def send_orders(bootstrap: str) -> None: ...
"""
"""What the pages about tests leave to the reader."""
PATHS: Final = [str(ROOT), str(ROOT / "codegen")]
"""Of an editable installation, which pyright finds as little as any hook of imports."""


WITHOUT_TYPES: Final = """
[mypy]
[mypy-pyarrow.*]
ignore_missing_imports = true
"""
"""The packages in examples that have no types, whatever we do."""


def examples() -> dict[str, str]:
    """The examples of the pages that are whole, by name; of tests, those with types."""
    whole = {
        block.name: block.text
        for block in blocks(language="python")
        if block.page not in UNCHECKED and not block.page.startswith("docs/internals/")
    }
    typed = [block for block in blocks(language="py") if ") -> None:" in block.text]
    assert len(typed) > 0
    texts = whole | {block.name: CLIENT + block.text for block in typed}
    return {"".join(c if c.isalnum() else "_" for c in name): text for name, text in texts.items()}


def checked(folder: Path, **texts: str) -> list[str]:
    """Run mypy over files of a user's, far from our own sources; give its errors by line."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "mypy.ini").write_text(WITHOUT_TYPES)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_wrong_use_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Generated classes of hostile schemas are clean, and the examples of the pages."""
    hostile.write(tmp_path / "schemas", hostile.COLLECTED)
    made = generate(tmp_path / "schemas", tmp_path / "mine", "mine")
    assert len(made.modules) > 10
    lines = checked(tmp_path, right=RIGHT, wrong=WRONG, **examples())
    found = [line for line in lines if ": error: " in line]
    assert [line.split(":")[:2] for line in found] == [
        ["wrong.py", str(line)] for line in (4, 5, 6, 7)
    ]


WRONG_FOR_PYRIGHT: Final = """
import kafkawire

kafkawire.decode("FetchRequest", "12", b"")
"""


def test_pyright_accepts_the_examples_of_the_pages(tmp_path: Path) -> None:
    """And finds what is wrong, so that it has read our types."""
    if find_spec("basedpyright") is None:
        missing("basedpyright")
    for name, text in {**examples(), "wrong": WRONG_FOR_PYRIGHT}.items():
        (tmp_path / f"{name}.py").write_text(text)
    settings = {"typeCheckingMode": "standard", "extraPaths": PATHS}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found: list[dict[str, Any]] = json.loads(ran.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    assert {Path(each["file"]).stem for each in errors} == {"wrong"}, errors
