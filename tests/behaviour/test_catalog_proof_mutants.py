"""Catalogs that are wrong on purpose: a proof must fail, at the right check, and only there."""

import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.catalog_proofs import ToldProof, left_in, project, rows_in

from calve.capture import Source
from calve.conformance import CHECKS, Outcome
from calve.errors import NotSupportedByCatalog, TableMissing
from calve.lake import LoadedTable, SqlCatalog, TableName
from calve.lake.catalogs import Decide


class Overwriting(SqlCatalog):
    """Replaces metadata without comparing what it replaces."""

    def _replace(self, base: LoadedTable, edited: dict[str, Any]) -> bool:
        return super()._replace(replace(base, metadata_location=self.load(base.name).metadata_location), edited)


class Purging(SqlCatalog):
    """Deletes the data files of what is only dropped."""

    def drop(self, table: TableName) -> bool:
        """Drop a table with its files."""
        try:
            source = Source(self.load(table))
        except TableMissing:
            return False
        for manifest in source.read(source.manifest_list(source.head)) if source.head is not None else ():
            for entry in manifest.entries():
                self.files.delete(entry.file_path)
        return super().drop(table)


class Untagging(SqlCatalog):
    """Accepts tags, and forgets them."""

    def create_tag(self, table: TableName, tag: str, snapshot_id: int, max_age_ms: int) -> None:
        """Do nothing."""


class Hoarding(SqlCatalog):
    """Drops no tag."""

    def drop_tag(self, table: TableName, tag: str) -> bool:  # noqa: ARG002 - the interface
        """Do nothing."""
        return True


class Piecewise(SqlCatalog):
    """Commits properties after branches, instead of together, when a branch is published."""

    def change(self, table: TableName, decide: Decide) -> bool:
        """Change in two commits."""
        later: dict[str, str] = {}

        def first(metadata: dict[str, Any]) -> Any:
            change = decide(metadata)
            if change is None or not change.dropped:
                return change
            later.update(change.properties)
            return replace(change, properties={})

        done = super().change(table, first)
        if later:
            self.commit(table, lambda metadata: metadata | {"properties": {**metadata["properties"], **later}})
        return done


class Propertyless(SqlCatalog):
    """Loses the properties of a commit."""

    def change(self, table: TableName, decide: Decide) -> bool:
        """Change all but the properties."""

        def without(metadata: dict[str, Any]) -> Any:
            change = decide(metadata)
            return change and replace(change, properties={})

        return super().change(table, without)


class Forgetful(SqlCatalog):
    """Registers nothing."""

    def register(self, table: TableName, metadata_location: str) -> None:
        """Do nothing."""


class Stale(SqlCatalog):
    """Answers from a cache that is never renewed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first: dict[TableName, LoadedTable] = {}

    def load(self, table: TableName) -> LoadedTable:
        """Return the metadata of the first time."""
        return self._first.setdefault(table, super().load(table))


class Embellishing(SqlCatalog):
    """Sends metadata that differs from what is stored."""

    def load(self, table: TableName) -> LoadedTable:
        """Return another uuid."""
        loaded = super().load(table)
        return replace(loaded, metadata=loaded.metadata | {"table-uuid": "00000000-0000-4000-8000-000000000000"})


class Secretive(SqlCatalog):
    """Lists no table."""

    def tables(self, namespace: tuple[str, ...] = ()) -> list[str]:  # noqa: ARG002 - the interface
        """Return nothing."""
        return []


@pytest.mark.parametrize(
    ("catalog", "failures"),
    [
        (Overwriting, {"two_writers": " of 8 commits were lost"}),
        (Purging, {"drop": "files of its source: this catalog purges"}),
        (Untagging, {"lease": "has no tag"}),
        (Hoarding, {"lease": "these tags are left"}),
        (Piecewise, {"deliver": "by more than one commit"}),
        (Propertyless, {"deliver": "without the property", "two_writers": "8 of 8 commits"}),
        (Forgetful, {"capture": "says that it does not exist"}),
        (Stale, {"append": "became these snapshots: none"}),
        (Embellishing, {"load": "sends table-uuid"}),
        (Secretive, {"create": "is not listed"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_catalog_fails_at_the_right_check(
    catalog: type[SqlCatalog], failures: Mapping[str, str], tmp_path: Path
) -> None:
    """What needs that check is skipped, everything else passes, and nothing is left."""
    settings = project(tmp_path)
    told = ToldProof(settings, catalog)
    assert told.prove().has_failed
    found = told.outcomes(Outcome.FAILED)
    assert list(found) == list(failures), found
    assert [name for name, part in failures.items() if part not in found[name]] == [], found
    causes = {"--no-spark", *(f"{name} failed" for name in failures)}
    assert set(told.outcomes(Outcome.SKIPPED).values()) <= causes
    assert rows_in(settings.catalogs["prod"].properties["uri"]) == []
    assert left_in(tmp_path / "warehouse") == []


class Unchanging(SqlCatalog):
    """Cannot change a branch and a property in one commit."""

    def change(self, table: TableName, decide: Decide) -> bool:  # noqa: ARG002 - the interface
        """Refuse."""
        raise NotSupportedByCatalog(f"{table}: {self.name} cannot.", table=str(table))


def test_what_a_catalog_does_not_support_is_no_failure(tmp_path: Path) -> None:
    """It is shown, and what needs it is skipped."""
    told = ToldProof(project(tmp_path), Unchanging)
    assert not told.prove().has_failed, told.outcomes(Outcome.FAILED)
    assert list(told.outcomes(Outcome.NOT_SUPPORTED)) == ["deliver", "two_writers"]
    assert told.outcomes(Outcome.SKIPPED)["replay"] == "deliver is not supported by this catalog"


class Hanging(SqlCatalog):
    """Does not answer to a drop until Ctrl-C is pressed."""

    def drop(self, table: TableName) -> bool:
        """Wait for Ctrl-C, here of the impatient."""
        signal.raise_signal(signal.SIGINT)
        return super().drop(table)


def test_ctrl_c_while_cleaning_up_names_what_is_left(tmp_path: Path) -> None:
    """With the statements that remove it."""
    settings = project(tmp_path)
    told = ToldProof(settings, Hanging)
    proof = told.prove(checks=CHECKS[:5])
    (namespace,) = {row[0] for row in rows_in(settings.catalogs["prod"].properties["uri"])}
    assert {left.why for left in proof.leftovers} == {"stopped"}
    assert [left.what.split(".")[0] for left in proof.leftovers] == ["the table prod", f"the namespace {namespace}"]
    cleanup = told.told[-1]
    assert (cleanup.check, cleanup.outcome) == ("cleanup", Outcome.FAILED)
    assert f"DROP TABLE `prod`.`{namespace}`.`events_" in cleanup.remedy
    assert f"DROP NAMESPACE `prod`.`{namespace}`" in cleanup.remedy
