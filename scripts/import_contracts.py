"""Contracts of import-linter that calve adds to the built-in ones; ``pyproject.toml`` names them."""

from typing import Any, cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PackageInterfaces(Contract):
    """A module may be imported by the modules of its own package and those below it; others import the package.

    What a package offers to others stands in its ``__init__.pyi``, or in its ``__init__.py`` where that is all it has.
    """

    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    root: str = "calve"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001
        """Find imports of a module whose package is not around the importer."""
        del verbose
        ignored = {(str(one.importer), str(one.imported)) for one in cast("set[Any]", self.ignore_imports or set())}
        found = [
            (importer, module)
            for module in sorted(graph.modules)
            if module.count(".") > 1 and module.startswith(f"{self.root}.") and not graph.find_children(module)
            for importer in sorted(graph.find_modules_that_directly_import(module))
            if not f"{importer}.".startswith(f"{module.rpartition('.')[0]}.") and (importer, module) not in ignored
        ]
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name the imports, and what to write instead."""
        found: list[Any] = check.metadata["found"]
        for importer, module in found:
            output.print_error(f"{importer} imports {module}: import from {module.rpartition('.')[0]} instead.")
        output.new_line()
