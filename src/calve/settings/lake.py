"""The lake: its catalogs, Spark, and the artifacts of captures."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from calve.settings.fields import Duration, Section, Strings, Words

VARIABLE_SUBSTITUTION = "spark.sql.variable.substitute"
"""Spark's own ``${…}`` in SQL, which replaces a name that it does not know by nothing."""
_KINDS = {"http": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}
_TYPES = ("sql", "rest", "hive", "glue")
_NOT_HADOOP = (
    "a Hadoop catalog cannot be used: its tables have no pointer to their current version that can be swapped "
    "atomically, so two writers can lose each other's commits. Register its tables in a catalog of another type "
    "(CALL system.register_table in Spark), and use that one"
)


class CatalogSettings(Section):
    """One Iceberg catalog, by PyIceberg's property names."""

    properties: Strings
    """Properties of the catalog, by PyIceberg's names."""
    spark: Strings = Field(default_factory=dict)
    """Properties for Spark only; they override the derived ones."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            raise ValueError("must be a table of keys and values")  # noqa: TRY004 - pydantic reports only ValueError
        spark = table.get("spark", {})
        return {"properties": {key: table[key] for key in table if key != "spark"}, "spark": spark}

    @model_validator(mode="after")
    def _of_known_type(self) -> Self:
        kind, types = self.kind, f"use one of {', '.join(_TYPES)}"
        if kind == "hadoop":
            raise ValueError(_NOT_HADOOP)
        if not kind:
            raise ValueError(f"needs a type: {types}")
        if kind not in _TYPES:
            raise ValueError(f"{kind} is not a type of catalog: {types}")
        return self

    @property
    def kind(self) -> str:
        """The type of the catalog: as given, or inferred from its address; empty if neither is possible."""
        uri = self.properties.get("uri", "")
        inferred = next((kind for start, kind in _KINDS.items() if uri.startswith(start)), "")
        return self.properties.get("type", inferred).lower()


class SparkSettings(Section):
    """How Spark is started or reached."""

    master: str = "local[*]"
    """Where a Spark that calve starts runs."""
    remote: str | None = None
    """The address ``sc://…`` of a running Spark Connect server; calve starts no Spark then."""
    driver_memory: str = "2g"
    """The memory of the driver of a Spark that calve starts."""
    conf: Strings = Field(default_factory=dict)
    """Settings of Spark."""
    iceberg: str = "1.11.0"
    """The version of Iceberg's jars for Spark; see [what was tested](limits.md#newer-versions)."""
    packages: Words = ()
    """Maven coordinates of more jars for Spark."""
    jars_cache: Path
    """The folder that keeps jars; it follows ``XDG_CACHE_HOME``. Default: ``~/.cache/calve/jars``."""
    java_home: Path | None = None
    """The Java to use, 17 or 21; without it, the one on ``PATH``. Default: ``JAVA_HOME``."""

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
    """Limits on what other writers put into the lake."""

    max_metadata_bytes: Annotated[int, Field(ge=1_048_576)] = 67_108_864
    """The largest metadata file of a table, compressed or not; a larger one counts as damaged (``lake_corrupt``).
    Position-delete files may be four times as large (and have 16,777,216 rows by default), and all manifests of one
    table sixteen times."""


class CaptureSettings(Section):
    """The artifacts of captures in the lake."""

    namespace: str = "icdc"
    """The namespace of ICDC tables, in the catalog of their source."""
    location: str | None = None
    """The folder for ICDC tables; without it, the location of their namespace, else the catalog's warehouse."""
    lease_max_age: Duration = timedelta(days=7)
    """The age from which expiry ignores a lease that was never removed."""
