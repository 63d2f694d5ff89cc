"""PyIceberg's file system by pyarrow, with what it has no properties for: time limits, and fewer requests."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyiceberg.io import (
    ADLS_ACCOUNT_NAME,
    S3_CONNECT_TIMEOUT,
    S3_REQUEST_TIMEOUT,
    S3_RETRY_STRATEGY_IMPL,
)
from pyiceberg.io.pyarrow import PyArrowFileIO, _import_retry_strategy
from pyiceberg.typedef import EMPTY_DICT, Properties

from calve.lake.object_stores import AZURE_SCHEMES, s3_defaults

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

CONNECT_TIMEOUT, REQUEST_TIMEOUT = "3", "10"
"""Of S3, in seconds, for each of three attempts; the second one is how long a server may send nothing."""
_TIME_LIMIT = timedelta(seconds=5)
"""Of GCS: until when a request is tried again, 15 minutes by default. The pauses grow, so it ends after 20 to 30 s."""


class StoreFileIO(PyArrowFileIO):
    """Opens object stores as PyIceberg does, by the same properties."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        """Take the properties of a catalog."""
        limits = {S3_CONNECT_TIMEOUT: CONNECT_TIMEOUT, S3_REQUEST_TIMEOUT: REQUEST_TIMEOUT}
        super().__init__(limits | dict(s3_defaults(properties)))

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return the scheme, the host and the path: in Azure, pyarrow wants only the container of a host."""
        scheme, host, path = PyArrowFileIO.parse_location(location, properties)
        return scheme, host, host.partition("@")[0] + path.removeprefix(host) if scheme in AZURE_SCHEMES else path

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> "FileSystem":
        account = (netloc or "").partition("@")[2].partition(".")[0]  # container@account.dfs.core.windows.net
        if scheme in AZURE_SCHEMES and account:
            return PyArrowFileIO(self.properties | {ADLS_ACCOUNT_NAME: account})._initialize_azure_fs()  # noqa: SLF001 - a file system of one account
        return super()._initialize_fs(scheme, netloc)

    # pyarrow tells the options of a file system only as pickle does.

    def _initialize_s3_fs(self, netloc: str | None) -> "FileSystem":
        rebuilt, (options,) = super()._initialize_s3_fs(netloc).__reduce__()
        options["allow_delayed_open"] = True  # else three requests write a small file: a multipart upload
        if named := self.properties.get(S3_RETRY_STRATEGY_IMPL):
            options["retry_strategy"] = _import_retry_strategy(named)
        return rebuilt(options)

    def _initialize_gcs_fs(self) -> "FileSystem":
        rebuilt, (options,) = super()._initialize_gcs_fs().__reduce__()
        return rebuilt(options | {"retry_time_limit": _TIME_LIMIT})
