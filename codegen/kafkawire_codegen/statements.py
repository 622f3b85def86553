"""Model -> the statements of generated code: lines for each place that a template leaves open.

Law: a field is one line where it can be, in wire order, its versions behind it; a version is tested
only where the struct's own range does not decide.
"""

from __future__ import annotations

from .reading import Reading
from .writing import Writing


class Statements(Writing, Reading):
    """Renders the statements of one message."""
