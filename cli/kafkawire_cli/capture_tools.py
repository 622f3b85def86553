"""Options of tcpdump and tshark, with what to type here.

A sentence names only options and verbs that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FILES: Final = "captures are arguments"
FILTERS: Final = "use --filter EXPRESSION"
FIRST: Final = "for the first rows, pipe the output into head -n N"

OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("-r", "--read-file"), FILES),
    **dict.fromkeys(("-Y", "--display-filter", "-R", "--read-filter"), FILTERS),
    **dict.fromkeys(("-c", "--count", "--limit", "--head", "--max-records"), FIRST),
    "-n": f"hosts are not looked up; {FIRST}",
    "-i": "pipe packets into it: tcpdump -i any -U -w - tcp port 9092 | kafkawire decode -",
    "-T": "use --format",
    "-V": "see kafkawire decode --format tree",
    "-x": "see kafkawire explain --packet N",
    "-z": "see kafkawire summary",
    "-d": "use --port PORT",
    "-e": "see kafkawire sql",
}
"""Option of these tools -> what to type in its place."""
