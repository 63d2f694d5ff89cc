"""The lake: its catalogs, Spark, and what captures leave there."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from calve.settings.fields import Duration, Section, Strings, Words

VARIABLE_SUBSTITUTION = "spark.sql.variable.substitute"
"""Spark's own ``${…}`` in SQL, which replaces a name that it does not know by nothing."""
_KINDS = {"http": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}


class CatalogSettings(Section):
    """One Iceberg catalog, in PyIceberg's property names."""

    properties: Strings
    spark: Strings = Field(default_factory=dict)
    """Properties that only Spark gets; they win over the derived ones."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            raise ValueError("is not a table of keys and values")  # noqa: TRY004 - pydantic reports only ValueError
        spark = table.get("spark", {})
        return {"properties": {key: table[key] for key in table if key != "spark"}, "spark": spark}

    @property
    def kind(self) -> str:
        """The type of the catalog: as given, or as its address tells; empty where neither says."""
        uri = self.properties.get("uri", "")
        inferred = next((kind for start, kind in _KINDS.items() if uri.startswith(start)), "")
        return self.properties.get("type", inferred).lower()


class SparkSettings(Section):
    """How Spark is started or reached."""

    master: str = "local[*]"
    remote: str | None = None
    """``sc://…`` of a running Spark Connect server; nothing is started then."""
    driver_memory: str = "2g"
    conf: Strings = Field(default_factory=dict)
    packages: Words = ()
    """More Maven coordinates for Spark."""
    jars_cache: Path
    java_home: Path | None = None

    @field_validator("conf")
    @classmethod
    def _without_substitution(cls, conf: dict[str, str]) -> dict[str, str]:
        if conf.get(VARIABLE_SUBSTITUTION, "").strip().lower() == "true":
            raise ValueError(
                f"{VARIABLE_SUBSTITUTION} cannot be true: calve resolves ${{…}} in SQL. "
                "Set it in the conf of a step that runs an application or a jar"
            )
        return conf


class LakeSettings(Section):
    """What is believed of the lake, which others write to."""

    max_metadata_bytes: Annotated[int, Field(ge=1_048_576)] = 67_108_864
    """How large a metadata file of a table may be, compressed or not; what is larger is taken for damaged."""


class CaptureSettings(Section):
    """What captures leave in the lake."""

    namespace: str = "icdc"
    location: str | None = None
    """The folder for their tables; by default the catalog's warehouse."""
    lease_max_age: Duration = timedelta(days=7)
    """How long a forgotten capture keeps its source's files from being expired."""
