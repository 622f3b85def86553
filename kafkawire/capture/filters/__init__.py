"""Filters: the expression language that selects messages, exchanges and rows of tables.

An expression means the same wherever it is applied. Names and values are checked when it is
parsed, so that a filter that can match nothing by mistake is an error; parsing is linear in the
text, and its depth is bounded.

    text --tokens--> parser --> tree --evaluation--> true | false | unknown, of a lookup of fields

    filter     = and {"or" and}
    and        = not {"and" not}
    not        = "not" not | "(" filter ")" | comparison
    comparison = field operator value | field ["not"] "in" "(" value {"," value} ")"
    operator   = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~"
    value      = word | "'" characters "'" | '"' characters '"'

A word is a run of characters other than blanks, quotes, `( ) , = ! < > ~`. Keywords are in any
case. In quotes, a backslash escapes the next character.

    parse(text).matches(lookup)      a filter applied to anything that has fields; lookup: takes the
                                     name of a field, returns its `Values`
    capture.selection                ... to the messages of a capture
    capture.tables.filtering         ... to the rows of a table
"""

from .evaluation import Filter, Values, parse
from .fields import FIELDS, Field

__all__ = ["FIELDS", "Field", "Filter", "Values", "parse"]
