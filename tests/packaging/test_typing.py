"""What a user's type checker makes of generated classes, under mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kafkawire_codegen import generate
from tests.codegen import hostile

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


def checked(folder: Path, **texts: str) -> list[str]:
    """Run mypy over files of a user's, far from our own sources; give its errors by line."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
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
    """Generated classes of hostile schemas are clean, too."""
    hostile.write(tmp_path / "schemas", hostile.COLLECTED)
    made = generate(tmp_path / "schemas", tmp_path / "mine", "mine")
    assert len(made.modules) > 10
    found = [line for line in checked(tmp_path, right=RIGHT, wrong=WRONG) if ": error: " in line]
    assert [line.split(":")[:2] for line in found] == [
        ["wrong.py", str(line)] for line in (4, 5, 6, 7)
    ]
