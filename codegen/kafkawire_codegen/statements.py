"""Generates statements for the placeholders of a template.

Law: a field is one line if possible, in wire order, with its versions as a comment; a version is
tested only if the struct's own range does not decide.
"""

from __future__ import annotations

from .reading import Reading
from .writing import Writing


class Statements(Writing, Reading):
    """Renders the statements of one message."""
