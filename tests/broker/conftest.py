"""Apache Kafka's own tools, for what the broker keeps."""

from tests.real.conftest import installation

__all__ = ["installation"]
