"""Keys and values of records: decoded and encoded by schemas, or by formats without one.

record --frame_of--> id, GUID --SchemaSource--> Schema --codec--> DecodedValue
"""

from .bounds import Bounds
from .decoder import ValueDecoder
from .directory import DirectorySchemas
from .formats import DecodedValue, ValueFormat
from .record_values import deserializer, serializer
from .schema import Reference, Schema, SchemaKey, SchemaSource, SchemaType, Subject
from .schema_registry import Fetch, RegistrySchemas

__all__ = [
    "Bounds",
    "DecodedValue",
    "DirectorySchemas",
    "Fetch",
    "Reference",
    "RegistrySchemas",
    "Schema",
    "SchemaKey",
    "SchemaSource",
    "SchemaType",
    "Subject",
    "ValueDecoder",
    "ValueFormat",
    "deserializer",
    "serializer",
]
