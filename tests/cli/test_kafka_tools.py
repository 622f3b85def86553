"""Options that users of Kafka's own tools type by habit are options here, or are explained."""

from __future__ import annotations

import re
import subprocess
from typing import Any, Final

import pytest

from kafkawire_cli import capture_tools
from kafkawire_cli.kafka_tools import EXTRA, LIVE, extra_argument, spelling
from kafkawire_cli.registry import command
from kafkawire_cli.verb_table import VERBS
from tests.cli.reports import run
from tests.real.java import Installation

TOOLS: Final = "org.apache.kafka.tools"
OPTION: Final = re.compile(r"--[a-z][a-z.-]*[a-z]")
LISTED: Final = re.compile(r"^ *(?:-[A-Za-z][\w.:]*(?: \w+)?, )?(--[a-z][a-z.-]*[a-z])", re.M)
"""An option in the left column of a help."""

TOOL_OF: Final = {
    "topics": ["TopicCommand"],
    "produce": ["ConsoleProducer"],
    "consume": ["consumer.ConsoleConsumer", "consumer.ConsoleShareConsumer"],
    "groups": ["consumer.group.ConsumerGroupCommand", "consumer.group.ShareGroupCommand"],
    "configs": ["ConfigCommand"],
    "acls": ["AclCommand"],
    "reassign": ["reassign.ReassignPartitionsCommand"],
    "log-dirs": ["LogDirsCommand"],
    "tokens": ["DelegationTokenCommand"],
}
"""Verb -> the tools that do the same."""


def options(verb: str) -> set[str]:
    found: Any = command(verb)
    declared = {option for parameter in found.params for option in parameter.opts}
    return declared | {"--help"}


@pytest.mark.parametrize("verb", TOOL_OF)
def test_every_option_of_a_tool_of_kafka_has_its_spelling_here(
    installation: Installation, verb: str
) -> None:
    names = set()
    for tool in TOOL_OF[verb]:
        shown = subprocess.run(
            installation.command(f"{TOOLS}.{tool}", "--help"),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        names |= set(LISTED.findall(shown.stdout + shown.stderr))
    assert len(names) > 6, shown
    assert {name for name in names - options(verb) if not spelling(verb, name)} == set()


@pytest.mark.parametrize("verb", sorted(LIVE))
def test_an_explanation_names_options_and_verbs_that_exist(verb: str) -> None:
    from kafkawire_cli.kafka_tools import EVERYWHERE, OF_VERB, SHOWN

    explained = {*OF_VERB.get(verb, {}), *EVERYWHERE, *SHOWN} - options(verb)
    for name in sorted(explained):
        text = spelling(verb, name)
        other = re.search(r"kafkawire ([a-z-]+)", text)
        target = verb
        if other is not None and other[1] != "--version":
            assert other[1] in VERBS, text
            target = other[1]
        used = set(OPTION.findall(text.replace("kafkawire --version", "")))
        assert used <= options(target) | options(verb), (name, text)
    needless = set(OF_VERB.get(verb, {})) & options(verb)
    assert needless == set()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("topics", "--topc", "x"), "--topc; did you mean --topic?"),
        (("topics", "-b", "x", "--list"), "--list; leave it out: this is shown without it"),
        (("configs", "--set", "a=b"), "--set; use --add-config KEY=VALUE"),
        (("consume", "x", "--from-beginning"), "--from-beginning; leave it out: it is the default"),
        (("consume", "-t", "x"), "-t; topics are arguments: kafkawire consume TOPIC"),
        (("produce", "x", "--broker-list=h:1"), "--broker-list; use -b HOST:PORT"),
        (("diagnose", "--group", "g", "x"), "--group; use --filter 'group == ...'"),
        (("latency", "--client-address", "g", "x"), "--client-address; use --filter 'client_add"),
        (("summary", "x", "-o", "y"), "-o; redirect the output, > FILE"),
        (("groups", "--describe", "--group", "g"), "--describe; leave it out"),
        (("decode", "-r", "x.pcap"), "-r; captures are arguments"),
        (("summary", "-Y", "kafka", "x.pcap"), "-Y; use --filter EXPRESSION"),
        (("decode", "-c", "2", "x.pcap"), "-c; for the first rows, pipe the output into head"),
    ],
)
def test_an_unknown_option_is_explained(words: tuple[str, ...], reason: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert f"Error: No such option: {reason}" in done.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [(("decode", "--from-beginning", "x"), "--from-beginning"), (("consume", "x", "--zz"), "--zz")],
)
def test_another_option_is_not(words: tuple[str, ...], option: str) -> None:
    assert run(*words).stderr.splitlines()[-1] == f"Error: No such option: {option}"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("topics", "-b", "h", "orders"), "with captures; did you mean --topic orders?"),
        (("groups", "-b", "h", "billing"), "with captures; did you mean --group billing?"),
        (("transactions", "-b", "h", "t"), "with captures; did you mean --transactional-id t?"),
        (("produce", "orders", "x.txt"), "extra argument(s) (x.txt); use --input FILE"),
        (("codegen", "schemas", "-o", "x"), "extra argument(s) (schemas); use --schemas SOURCE"),
        (("configs", "orders"), "extra argument(s) (orders); use --topic, --broker, "),
        (
            ("topics", "-b", "h", "--create", "x", "--config", "retention.ms=1"),
            "use --option KEY=VALUE for a setting of the client, --topic-config KEY=VALUE for one",
        ),
    ],
)
def test_a_name_or_setting_in_another_place_is_explained(
    words: tuple[str, ...], reason: str
) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert reason in done.stderr


@pytest.mark.parametrize("verb", sorted(EXTRA))
def test_arguments_that_are_too_much_name_options_that_exist(verb: str) -> None:
    assert set(OPTION.findall(extra_argument(verb))) <= options(verb)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("topcs", "did you mean 'topics'?"),
        ("day/trace.pcap1.gz", "to decode a capture: kafkawire decode FILE"),
        ("connections", "for this table: kafkawire sql 'FROM connections' FILE"),
        ("lag", "for this table: kafkawire sql 'FROM lag' FILE"),
        ("errors", "see kafkawire summary and kafkawire diagnose"),
    ],
)
def test_what_is_no_verb_is_explained(word: str, meant: str) -> None:
    done = run(word, "x.pcap")
    last = done.stderr.splitlines()[-1]
    assert (done.exit_code, last) == (2, f"Error: No such command {word!r}; {meant}")


def test_the_spellings_of_capture_tools_name_options_and_verbs_that_exist() -> None:
    for text in capture_tools.OPTIONS.values():
        verb = re.search(r"kafkawire ([a-z]+)", text)
        assert verb is None or verb[1] in VERBS
        assert set(OPTION.findall(text)) <= options("decode" if verb is None else verb[1])
    assert not set(capture_tools.OPTIONS) & options("decode")
