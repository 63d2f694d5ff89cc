"""The scratch namespace of a proof, and everything that its checks work with."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from calve.conformance.model import Leftover
from calve.conformance.scratch_table import ScratchTable
from calve.errors import ProofFailed, RequestInvalid
from calve.lake import Catalog, Lake, TableName
from calve.settings import Settings, StoreSettings, TableSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from calve.capture import Captures
    from calve.delivery import Deliveries, Staging

CONSUMER = "calve.proof/reader"
"""The consumer whose captures the checks read; it exists in the throw-away state only."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Workspace:
    """What the checks of one proof share."""

    lake: Lake
    catalog_name: str
    namespace: str
    mark: str
    """A random text in the name of each table, by which their folders are recognized."""
    captures: "Captures"
    deliveries: "Deliveries"
    has_random_name: bool = True
    """Whether nobody else can have a namespace of that name."""
    uses_spark: bool = True
    keeps: bool = False
    say: "Callable[[str], None]" = lambda _: None
    spark: "SparkSession | None" = None
    """The Spark that writes and reads tables, once it was found to work."""
    owns_namespace: bool = False
    """Whether the namespace, if it exists, was created by this proof, or left empty by an earlier one."""
    tables: dict[str, ScratchTable] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    """The folders in which the folders of tables are; they are removed if they are empty."""
    staging: "Staging | None" = None
    """The delivery that is repeated."""
    leftovers: list[Leftover] = field(default_factory=list)

    @property
    def catalog(self) -> Catalog:
        """The catalog to prove."""
        return self.lake.catalog(self.catalog_name)

    def table(self, name: str) -> ScratchTable:
        """Return one of the tables of the proof, which may still have to be created."""
        if name not in self.tables:
            full = TableName(self.catalog_name, (self.namespace,), f"{name}_{self.mark}")
            # Known before it is created: what is interrupted half-way is removed too.
            self.tables[name] = ScratchTable(self.catalog, full, self.spark)
        return self.tables[name]

    @property
    def events(self) -> ScratchTable:
        """The table that is captured."""
        return self.table("events")


def check_namespace_name(name: str) -> None:
    """Refuse a name for the scratch namespace that would need quotes, or has several levels.

    Raises:
        RequestInvalid: it is such a name.
    """
    if not _NAME.fullmatch(name):
        raise RequestInvalid(
            f"{name!r} cannot be the name of the scratch namespace.",
            remedy="Use letters, digits and underscores, and one level.",
        )


def settings_for(settings: Settings, catalog: str, namespace: str, folder: Path) -> Settings:
    """Return settings with one catalog, and with a state and a namespace of captures that are thrown away.

    Raises:
        CatalogUnknown: the settings have no such catalog.
    """
    if catalog not in settings.catalogs:
        Lake(settings).catalog(catalog)  # raises the error that names the others
    return settings.model_copy(
        update={
            "catalogs": {catalog: settings.catalogs[catalog]},
            "default_catalog": catalog,
            "store": StoreSettings(url=f"sqlite:///{folder}/state.db"),
            "capture": settings.capture.model_copy(update={"namespace": namespace}),
            # The proof runs for the person at this machine, whatever namespaces of workflows may do.
            "access": settings.access.model_copy(update={"tables": TableSettings(policy="open")}),
        }
    )


def demand(condition: object, otherwise: str, remedy: str | None = None) -> None:
    """Fail the check unless the condition is true.

    Raises:
        ProofFailed: with the message ``otherwise``.
    """
    if not condition:
        raise ProofFailed(otherwise, remedy=remedy)
