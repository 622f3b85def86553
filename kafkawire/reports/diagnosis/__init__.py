"""Diagnoses a capture: rules read its traffic once and report what is wrong."""

from kafkawire.capture.exchanges.exchanges import Exchange

from .error_rule import By, ErrorRule
from .fetched import Fetched
from .finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from .produced import Keys, Produced
from .rule import Rule, Scene, Subjects, Threshold, client_at, client_of

__all__ = [
    "By",
    "Confidence",
    "ErrorRule",
    "Exchange",
    "Fetched",
    "Finding",
    "Keys",
    "Occurrences",
    "Produced",
    "Rule",
    "Scene",
    "Setting",
    "Severity",
    "Subject",
    "Subjects",
    "Threshold",
    "client_at",
    "client_of",
]
