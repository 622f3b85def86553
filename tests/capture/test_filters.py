"""The filter language: syntax, values, errors at their places, and bounds."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkawire.capture.filters import FIELDS, Values, parse
from kafkawire.errors import FilterError

SECOND = 10**9

ROW: dict[str, tuple[Any, ...]] = {
    "api": ("fetch", "1"),
    "client": ("billing-7",),
    "broker": ("10.0.0.1:9092", "10.0.0.1"),
    "error": ("none",),
    "latency": (150_000_000,),
    "size": (1500, 20_000),
    "topic": ("orders", "payments"),
    "partition": (0, 3),
    "time": (1_767_348_000 * SECOND,),  # 2026-01-02T10:00:00Z
    "packet": (17,),
}


def lookup(name: str) -> Values:
    return Values(ROW.get(name, ()))


HOLDS = [
    "api == Fetch and latency > 100ms and client ~ 'billing*' and error == NONE",
    "api == fetch",
    "api == FetchRequest and api == 1 and api == FETCH",
    "API == Fetch AND NOT (client == other OR latency > 1s)",
    "api in (Produce, Fetch) and api not in (Produce, 18)",
    "api ~ F* and api !~ prod*",
    "broker == 10.0.0.1 and broker == 10.0.0.1:9092 and broker ~ '*:9092'",
    'client == "billing-7" and client != "Billing-7" and client ~ BILLING*',
    "size == 1500 and size >= 20kB and not size > 20kB and size < 1.5KiB",
    "latency >= 0.15s and latency <= 150000us and latency < 1min",
    "topic == orders and topic == payments and topic != other",
    "partition > 2 and partition < 1",  # one of the values, each
    "time >= 2026-01-02T10:00:00Z and time < 2026-01-02T11:00:01+01:00",
    "time >= 2026-01-02 and time < 2026-01-03",
    "time > +4s and time <= +5s",
    "group != g and not group == g and not group ~ '*'",  # no value
    "error == 0 and error != 35 and error not in (NOT_LEADER_OR_FOLLOWER, -1)",
    "not not not packet != 17",
    "packet == 18 or packet == 17 and api == Fetch",  # and binds tighter
]


@pytest.mark.parametrize("text", HOLDS)
def test_what_holds(text: str) -> None:
    first_ns = ROW["time"][0] - 5 * SECOND
    found = parse(text)
    assert found.matches(lookup, first_ns) is True
    assert parse(f"not ({text})").matches(lookup, first_ns) is False
    assert pickle.loads(pickle.dumps(found)).matches(lookup, first_ns) is True


@pytest.mark.parametrize("text", ["api == Produce", "latency > 150ms", "group ~ '*'", "size > 1MB"])
def test_what_does_not_hold(text: str) -> None:
    assert parse(text).matches(lookup) is False


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_unknown(name: str) -> None:
    """Without values a comparison does not hold; while values may come, it is not known."""
    value = {"api": "Fetch", "direction": "request", "error": "NONE", "status": "ok",
        "answered": "yes",
    }.get(name)  # fmt: skip
    units = {"latency": "1s", "time": "2026-01-02"}
    found = parse(f"{name} == {value or units.get(name, '1')}")
    assert found.matches(lambda _: Values(())) is False
    assert found.matches(lambda _: Values((), complete=False)) is None
    assert parse(f"not {found}").matches(lambda _: Values((), complete=False)) is None


def test_unknown_values_do_not_decide() -> None:
    def partly(name: str) -> Values:
        return Values(ROW[name]) if name == "api" else Values((), complete=False)

    for text, result in [
        ("latency > 1s and api == Produce", False),
        ("latency > 1s and api == Fetch", None),
        ("latency > 1s or api == Fetch", True),
        ("latency > 1s or api == Produce", None),
        ("topic == a or not topic == a", None),
    ]:
        assert parse(text).matches(partly) is result, text


WRONG = [
    ("", "empty filter", ""),
    ("   ", "empty filter", ""),
    ("api", "expected one of ==", ""),
    ("api=Fetch", "use ==", "="),
    ("api == Fetch && size > 1", "expected `and`, `or` or the end before '&&'; use and", "&&"),
    ("api == Fetch size > 1", "expected `and`, `or` or the end before 'size'", "size"),
    ("apis == Fetch", "unknown field 'apis'; fields: api, client", "apis"),
    ("apis == Fetch", "correlation_id, version; did you mean api?", "apis"),
    ("api_name == Fetch", "did you mean api?", "api_name"),
    ("kafka.topic_name == t", "did you mean topic?", "kafka.topic_name"),
    ("ip.addr == 10.0.0.1", "did you mean client_address?", "ip.addr"),
    ("api == Fech", "unknown API 'Fech'; did you mean Fetch?", "Fech"),
    ("api ~ 'Fech*'", "no API matches 'Fech*'; did you mean Fetch?", "'Fech*'"),
    ("api == 'Fet*'", "unknown API 'Fet*'; did you mean Fetch?", "'Fet*'"),
    ("api in (Fetch, Prodduce)", "unknown API 'Prodduce'; did you mean Produce?", "Prodduce"),
    ("error == UNKNOWN_TOPIC", "unknown error code 'UNKNOWN_TOPIC'; did you mean", "UNKNOWN_TOPIC"),
    ("error == NOT_LEADR", "did you mean NOT_LEADER_OR_FOLLOWER?", "NOT_LEADR"),
    ("status == malformd", "unknown status 'malformd'; did you mean malformed?", "malformd"),
    ("direction == req", "unknown direction 'req'; did you mean request?", "req"),
    ("api > Fetch", "api has no order", ">"),
    ("connection ~ 1", "connection is not text", "~"),
    ("connection == one", "'one' is not a valid connection: expected a number", "one"),
    ("latency > 100", "'100' is not a valid duration: expected a duration such as", "100"),
    ("latency > 100kg", "'100kg' is not a valid duration", "100kg"),
    ("size > 1ms", "'1ms' is not a valid size", "1ms"),
    ("time > yesterday", "'yesterday' is not a valid time", "yesterday"),
    ("(api == Fetch", "missing )", ""),
    ("api == Fetch)", "no opening parenthesis for this one", ")"),
    ("api in Fetch", "expected ( after `in`", "Fetch"),
    ("api in (Fetch Produce)", "expected ) before 'Produce'", "Produce"),
    ("api in ()", "expected a value after (", ")"),
    ("api not Fetch", "expected `in` after `api not`", "Fetch"),
    ("api ==", "expected a value after ==, but the filter ends", ""),
    ("client == 'a", "missing closing quote", "'"),
    ("not and", "expected a field before 'and'", "and"),
    ("'api' == Fetch", "expected a field before 'api'", "'api'"),
    ("api == Fetch and", "expected a field, but the filter ends", ""),
]


@pytest.mark.parametrize(("text", "message", "place"), WRONG)
def test_errors_have_a_place(text: str, message: str, place: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    error = caught.value
    assert message in error.reason
    if place:
        assert text[error.at : error.at + error.length] == place
    else:
        assert error.at == len(text) or not text.strip()
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_nesting_and_length_are_bounded() -> None:
    for text in ("(" * 101 + "api == 1", "not " * 100_0 + "api == 1"):
        with pytest.raises(FilterError, match="nested more than 100 deep"):
            parse(text)
    with pytest.raises(FilterError, match="longer than 65536 characters"):
        parse("api == Fetch or " * 5000)
    many = " or ".join(["connection == 1"] * 3000)
    assert parse(many).matches(lambda _: Values((1,)))


def test_comparisons_of_long_lists_take_one_step() -> None:
    """`in` compares with a set, however many values it has."""
    numbers = ", ".join(map(str, range(8000)))
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        def __hash__(self) -> int:
            return int.__hash__(self)

    assert parse(f"connection in ({numbers})").matches(lambda _: Values((Counted(7999),)))
    assert compared <= 1
