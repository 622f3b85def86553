"""Generates Python codecs from Kafka message schemas.

Used at build time; imports nothing of kafkawire. In a build hook of your own, call `generate`:

    from kafkawire_codegen import generate
    generate(schemas=Path("schemas"), out=Path("src/mine/messages"), package="mine.messages")
"""

from __future__ import annotations

from .build import GeneratedPackage, generate, is_package_name, schemas_dir

__all__ = ["GeneratedPackage", "generate", "is_package_name", "schemas_dir"]
