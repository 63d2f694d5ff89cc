"""The credentials of object stores that a REST catalog gives out with its tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from calve.errors import CalveError, NotSupportedByCatalog
from calve.lake.metadata_checks import shown

OWN_KEYS = (
    *("s3.access-key-id", "client.access-key-id", "s3.profile-name", "client.profile-name"),
    *("s3.role-arn", "client.role-arn", "s3.anonymous"),
    *("gcs.oauth2.token", "gcs.credentials-path", "gcs.service-account-json"),
    *("adls.account-key", "adls.sas-token", "adls.connection-string", "adls.client-secret", "hf.token"),
)
"""Properties of a catalog that say who reads and writes its files."""
_EARLY_MS = 60_000
"""How long before their end credentials are renewed: longer than one request takes, and clocks differ."""


@dataclass(frozen=True, slots=True)
class StorageCredential:
    """Properties for the files below a prefix."""

    prefix: str
    properties: Mapping[str, str]

    @property
    def expires_at_ms(self) -> int | None:
        """When it ends; None: never, as far as is known."""
        ends = [text for key, text in self.properties.items() if _is_end(key)]
        return min((int(text) for text in ends if text.isdigit()), default=None)

    def fits(self, path: str) -> bool:
        """Tell whether a file is below the prefix."""
        return path.startswith(self.prefix)

    def rank(self, path: str) -> tuple[bool, int]:
        """Return how well it fits: ``s3://b/t`` is meant for the folder ``t``, rather than for its neighbour ``t2``."""
        is_folder = "://" not in self.prefix or self.prefix.endswith("/") or path[len(self.prefix) :][:1] in {"", "/"}
        return is_folder, len(self.prefix)


def _is_end(key: str) -> bool:
    return "expires-at" in key


@dataclass(frozen=True, slots=True)
class Vended:
    """What a catalog gives out for one table."""

    config: Mapping[str, str]
    credentials: Sequence[StorageCredential] = ()

    def properties_for(self, path: str) -> dict[str, str]:
        """Return the properties for a file: those of the longest prefix come first."""
        fitting = [each for each in self.credentials if each.fits(path)]
        best = max(fitting, key=lambda each: each.rank(path)).properties if fitting else {}
        return {**self.config, **best}

    def is_valid_for(self, path: str, now_ms: int) -> bool:
        """Tell whether what it has for a file does not end soon."""
        end = StorageCredential("", self.properties_for(path)).expires_at_ms
        return end is None or now_ms < end - _EARLY_MS


def vended(response: Mapping[str, Any], where: str) -> Vended:
    """Read the credentials from the answer to a request for a table.

    Raises:
        TypeError: they are not as the REST specification has them.
    """
    given = response.get("storage-credentials") or []
    if not isinstance(given, list):
        raise TypeError(f"storage-credentials of {where} is not a list")
    found = [
        StorageCredential(_text(each, "prefix"), _texts(each.get("config"), "storage-credentials")) for each in given
    ]
    return Vended(_texts(response.get("config"), "config"), tuple(found))


def has_own_keys(properties: Mapping[str, str]) -> bool:
    """Tell whether a catalog's definition says who reads and writes its files."""
    return any(properties.get(key) for key in OWN_KEYS)


class TableStorage:
    """The properties for the files of one table, renewed before they expire; safe for several threads."""

    def __init__(
        self,
        table: str,
        base: Callable[[], Mapping[str, str]],
        given: Vended,
        renew: Callable[[], Vended],
        now_ms: Callable[[], int],
    ) -> None:
        """Take the catalog's properties, what it gave out, how to ask for new ones, and the clock."""
        self._table = table
        self._base = base
        self._given = given
        self._renew = renew
        self._now_ms = now_ms
        self._renewing = Lock()

    def properties_for(self, path: str) -> Mapping[str, str]:
        """Return the properties for a file, from credentials that do not end soon.

        Raises:
            NotSupportedByCatalog: the catalog wants to sign each request instead.
            LakeError: they ended, and the catalog gives out no others.
        """
        with self._renewing:
            if not self._given.is_valid_for(path, self._now_ms()):
                self._given = self._renewed(path)
        properties = {**self._base(), **self._given.properties_for(path)}
        if properties.get("s3.remote-signing-enabled", "").lower() == "true" and not has_own_keys(properties):
            raise NotSupportedByCatalog(
                f"{self._table}: the catalog signs each request to S3 itself (remote signing), which calve does not "
                "support.",
                remedy="Let the catalog give out credentials (header.X-Iceberg-Access-Delegation = "
                "vended-credentials), or set s3.access-key-id and s3.secret-access-key for it.",
                table=self._table,
                path=shown(path),
            )
        return properties

    def _renewed(self, path: str) -> Vended:
        try:
            given = self._renew()
        except CalveError:
            end = StorageCredential("", self._given.properties_for(path)).expires_at_ms or 0
            if self._now_ms() >= end:
                raise
            return self._given  # it holds for a moment longer, and the next file asks again
        # an answer with nothing but credentials leaves the address of the store as it was
        return Vended({**self._given.config, **given.config}, given.credentials)


def _text(owner: Mapping[str, Any], name: str) -> str:
    value = owner.get(name) if isinstance(owner, dict) else None
    if not isinstance(value, str):
        raise TypeError(f"{name} of a storage credential is not a string")
    return value


def _texts(values: Any, where: str) -> dict[str, str]:
    """Return properties without those that would name a class of this process."""
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(text, str) for text in values.values()):
        raise TypeError(f"{where} is not an object of strings")
    return {key: text for key, text in values.items() if key != "py-io-impl"}
