"""The real broker, for the tests of the consumer against it."""

from tests.real.conftest import installation, kafka

__all__ = ["installation", "kafka"]
