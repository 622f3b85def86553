"""The levels of this program's loggers, as Kafka's brokers describe and alter theirs (KIP-412).

`root` is the logger `kafkawire`, the parent of all of ours: those of a program that has the broker
inside itself are not its. A level lasts until the process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ...controller.operations.alter_configs import APPEND, DELETE, SET, SUBTRACT
from ...messages.incremental_alter_configs_request import AlterableConfig
from ...protocol import ErrorCode

E = ErrorCode
Problem = tuple[ErrorCode, str]
OWN: Final = "kafkawire"
ROOT: Final = "root"
TRACE: Final = 5
LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
"""Kafka's names of levels -> those of Python."""
LIST_OPERATIONS: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def levels() -> dict[str, str]:
    """Return logger -> its level: the nearest of Kafka's that logs no less."""
    return {name: _level(logger.getEffectiveLevel()) for name, logger in _loggers().items()}


def problem(changes: Iterable[AlterableConfig]) -> Problem | None:
    """Return why levels cannot be changed, None if they can."""
    for change in changes:
        reason = _problem(change)
        if reason is not None:
            return reason
    return None


def apply(changes: Iterable[AlterableConfig]) -> None:
    """Change levels; a logger whose level is deleted has that of its parent."""
    loggers = _loggers()
    for change in changes:
        level = logging.NOTSET if change.config_operation == DELETE else LEVELS[change.value or ""]
        loggers[change.name].setLevel(level)


def _problem(change: AlterableConfig) -> Problem | None:
    name, operation = change.name, change.config_operation
    if operation in LIST_OPERATIONS:
        verb = LIST_OPERATIONS[operation]
        return E.INVALID_REQUEST, f"{verb} operation is not allowed for the BROKER_LOGGER resource"
    if operation not in (SET, DELETE):
        return E.INVALID_REQUEST, (
            f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        )
    if name not in _loggers():
        return E.INVALID_CONFIG, f"Logger {name} does not exist!"
    if operation == DELETE:
        reason = f"Removing the log level of the {ROOT} logger is not allowed"
        return (E.INVALID_REQUEST, reason) if name == ROOT else None
    if change.value not in LEVELS:
        return E.INVALID_CONFIG, (
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(LEVELS)}"
        )
    return None


def _loggers() -> dict[str, logging.Logger]:
    own = logging.getLogger(OWN)
    children = {
        name: logger
        for name, logger in sorted(own.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and name.startswith(f"{OWN}.")
    }
    return {ROOT: own, **children}


def _level(number: int) -> str:
    names = [name for name in LEVELS if LEVELS[name] <= number]
    return max(names, key=LEVELS.__getitem__, default="TRACE")
