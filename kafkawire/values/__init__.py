"""Keys and values of records: decoded and encoded by schemas, or by formats without one.

record --frame_of--> id, GUID --SchemaSource--> Schema --codec--> DecodedValue
"""

from .apicurio import ApicurioSchemas, registry_schemas
from .bounds import Bounds
from .decoder import ValueDecoder
from .directory import DirectorySchemas
from .formats import DecodedValue, ValueFormat
from .record_values import deserializer, serializer
from .schema import (
    ApicurioId,
    IdKind,
    Reference,
    Schema,
    SchemaKey,
    SchemaSource,
    SchemaType,
    Subject,
)
from .schema_registry import Fetch, RegistrySchemas

__all__ = [
    "ApicurioId",
    "ApicurioSchemas",
    "Bounds",
    "DecodedValue",
    "DirectorySchemas",
    "Fetch",
    "IdKind",
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
    "registry_schemas",
    "serializer",
]
