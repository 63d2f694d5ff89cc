"""How tables are named."""

from dataclasses import dataclass

from calve.errors import RequestInvalid
from calve.texts import quoted


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table of one of the lake's catalogs."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, text: str, catalogs: tuple[str, ...], namespace: str) -> "TableName":
        """Read ``table``, ``namespace.table`` or ``catalog.namespace.table``.

        Args:
            text: the name.
            catalogs: all catalogs, the default one first.
            namespace: the default namespace.
        """
        parts = tuple(text.split("."))
        if not all(part.strip() == part and part for part in parts):
            raise RequestInvalid(
                f"{text!r} does not name a table.",
                remedy="Write table, namespace.table or catalog.namespace.table.",
                table=text,
            )
        if len(parts) == 1:
            return cls(catalogs[0], tuple(namespace.split(".")), text)
        # Only with three parts or more: ``a.b`` is a namespace and a table even if a catalog is called ``a``.
        if len(parts) > 2 and parts[0] in catalogs:
            return cls(parts[0], parts[1:-1], parts[-1])
        return cls(catalogs[0], parts[:-1], parts[-1])

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name inside its catalog."""
        return (*self.namespace, self.name)

    def short(self, default_catalog: str) -> str:
        """Return the name as a user of the default catalog writes it."""
        parts = self.identifier if self.catalog == default_catalog else (self.catalog, *self.identifier)
        return ".".join(parts)

    def sql(self) -> str:
        """Return the full name, quoted for Spark SQL."""
        return quoted(self.catalog, *self.identifier)

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.identifier))
