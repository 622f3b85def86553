"""A slow codec, built on construct at run time: the oracle in tests, and the base of `explain`.

It shares no code with the generated codec; it may be slow, but not wrong.

    parse, decode, encode    bytes <-> plain dicts, with a tree of every byte
    verify                   whether bytes are what an encoder writes, and if not, why
    explain, explain_frame   a row for every byte, for a person
"""

from .codec import Parsed, decode, encode, parse, values_of
from .explain import explain
from .frames import explain_frame
from .json_tree import as_json
from .rendering import Explanation, Row
from .tree import Flaw, Node
from .verify import Verdict, verify

__all__ = [
    "Explanation",
    "Flaw",
    "Node",
    "Parsed",
    "Row",
    "Verdict",
    "as_json",
    "decode",
    "encode",
    "explain",
    "explain_frame",
    "parse",
    "values_of",
    "verify",
]
