"""Assembles the page: markup, style, script, data and the library of charts, in one file.

The page loads nothing, and its Content-Security-Policy forbids it to; only two scripts run,
which the policy names by their hashes. Data is JSON that no HTML parser can leave.

    page.html   {{style}} {{script}} {{data}} {{library}} {{policy}}
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from kafkawire.extras import requires

SCRIPTS: Final = ("model.js", "tables.js", "charts.js", "groups.js", "topology.js", "page.js")
"""The page's own script, in the order of use."""

_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def library() -> str:
    """Return the library of charts, plotly.js (MIT). Raises MissingPackage."""
    with requires("plotly", "report"):
        from plotly.offline import get_plotlyjs
    return str(get_plotlyjs())


def document(data: dict[str, Any], charts: str) -> str:
    """Return the page. charts: the source of the library."""
    script = "\n".join(_own(name) for name in SCRIPTS)
    parts = {
        "policy": _policy(script, charts),
        "style": _own("page.css"),
        "script": script,
        "data": json_text(data),
        "library": b64encode(gzip.compress(charts.encode(), 9, mtime=0)).decode(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _own("page.html"))


def json_text(data: dict[str, Any]) -> str:
    """Return JSON in ASCII, without characters that mean something in HTML."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _ESCAPES[match[0]], text)


def _policy(*scripts: str) -> str:
    hashes = (b64encode(sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _own(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8").strip("\n")
