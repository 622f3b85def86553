"""Errors of templates: the file, the line, and the message it was filled for."""

from __future__ import annotations


class TemplateFault(Exception):
    """An error of a template.

    file: of the template. line: from 1; 0 if it is an error of the whole file. message: the name of
    the message that the template was filled for; "" if it was filled for none.
    """

    def __init__(self, file: str, line: int, message: str, reason: str) -> None:
        super().__init__(file, line, message, reason)
        self.file = file
        self.line = line
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.reason}" + (f" (for {self.message})" if self.message else "")


class TemplateErrors(Exception):
    """The errors of templates: the first of each."""

    def __init__(self, errors: tuple[TemplateFault, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))
