"""Proofs of catalogs for tests: projects with a catalog, and catalogs that are wrong on purpose."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, text

from calve.conformance import CHECKS, Check, CheckResult, Outcome, Proof, ProofOptions, prove
from calve.lake import Catalog, Lake
from calve.settings import Settings, load

QUIET = ProofOptions(uses_spark=False)
SPARK_ONLY = {"spark", "read_spark", "row_lineage"}


def project(folder: Path, uri: str = "", warehouse: str = "", **more: str) -> Settings:
    """Return the settings of a project with one catalog named ``prod``, by default in SQLite."""
    properties = {
        "type": "sql",
        "uri": uri or f"sqlite:///{folder}/catalog.db",
        "warehouse": warehouse or f"{folder}/warehouse",
        **more,
    }
    (folder / "calve.toml").write_text(
        "[catalogs.prod]\n" + "".join(f'"{key}" = "{value}"\n' for key, value in properties.items())
    )
    return load(folder, {})


@dataclass
class ToldProof:
    """Carries out proofs, and keeps what they tell."""

    settings: Settings
    catalog_class: type[Catalog] | None = None
    """The class of the catalog instead of calve's own."""
    told: list[CheckResult] = field(default_factory=list)

    def prove(self, options: ProofOptions = QUIET, checks: Sequence[Check] = CHECKS) -> Proof:
        """Prove the catalog."""
        return prove(self.settings, "prod", options, tell=self.told.append, checks=checks, open_lake=self._lake)

    def outcomes(self, outcome: Outcome) -> dict[str, str]:
        """Return what was found by the checks with an outcome."""
        return {result.check: result.detail for result in self.told if result.outcome is outcome}

    def _lake(self, settings: Settings) -> Lake:
        lake = Lake(settings)
        if self.catalog_class is not None:
            lake._open["prod"] = self.catalog_class("prod", settings.catalogs["prod"].properties)
        return lake


def rows_in(uri: str) -> list[tuple[str, ...]]:
    """Return every table and every namespace that a catalog in a database knows."""
    engine = create_engine(uri)
    try:
        with engine.connect() as connection:
            tables = connection.execute(text("SELECT table_namespace, table_name FROM iceberg_tables")).all()
            namespaces = connection.execute(text("SELECT namespace FROM iceberg_namespace_properties")).all()
    finally:
        engine.dispose()
    return [tuple(row) for row in [*tables, *namespaces]]


def left_in(folder: Path) -> list[str]:
    """Return the files and folders of a warehouse."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
