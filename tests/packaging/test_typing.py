"""What a user's type checker makes of generated classes, under mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def checked(folder: Path, text: str) -> list[str]:
    """Run mypy over a file of a user's, far from our own sources; give its errors by line."""
    (folder / "user.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "user.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_right_use_is_found_right(tmp_path: Path) -> None:
    assert checked(tmp_path, RIGHT) == []


def test_wrong_use_is_found_wrong(tmp_path: Path) -> None:
    found = [line for line in checked(tmp_path, WRONG) if ": error: " in line]
    assert [int(line.split(":")[1]) for line in found] == [4, 5, 6, 7]
