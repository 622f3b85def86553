"""Tests of librdkafka are chosen by its own table, and read from its reports."""

from __future__ import annotations

from .librdkafka import of_report, of_source_packages, plain_tests
from .outcomes import FAILED, PASSED, SKIPPED

TABLE = """
#define _TEST(NAME, FLAGS, ...) \\
struct test tests[] = {
    {.name = "<MAIN>", .flags = TEST_F_LOCAL},
    _TEST(0001_any, 0),
    _TEST(0004_local, TEST_F_LOCAL),
    _TEST(0011_many,
          0,
          /* Produces a lot of messages */
          _THRES(.ucpu = 40.0, .scpu = 8.0)),
    _TEST(0045_no_topics, 0, TEST_BRKVER(0, 9, 0, 0), .scenario = "noautocreate"),
    _TEST(0049_slow_network, TEST_F_SOCKEM, TEST_BRKVER(0, 9, 0, 0)),
    _TEST(0103_both, 0, TEST_BRKVER(0, 11, 0, 0), .scenario = "default,ak23"),
    {NULL}};
"""


def test_tests_that_need_only_a_broker_are_chosen() -> None:
    assert list(plain_tests(TABLE)) == ["0001_any", "0011_many", "0103_both"]


def test_outcomes_of_a_report() -> None:
    report = (
        '{"tests": {"0001_a": {"state": "PASSED"}, "0002_b": {"state": "SKIPPED"},'
        ' "0003_c": {"state": "FAILED"}, "0004_d": {"state": "RUNNING"}}}'
    )
    outcomes = [of_report(report, name) for name in ("0001_a", "0002_b", "0003_c", "0004_d")]
    assert outcomes == [PASSED, SKIPPED, FAILED, FAILED]


def test_lists_of_source_packages() -> None:
    lists = "# deb\ndeb uri suite main\nTypes: deb\nURIs: uri\n"
    expected = "# deb\ndeb-src uri suite main\nTypes: deb-src\nURIs: uri\n"
    assert of_source_packages(lists) == expected
