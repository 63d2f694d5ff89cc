"""PyIceberg's file system for S3, with time-outs, and one request for each small file that is written."""

from typing import TYPE_CHECKING, cast

from pyiceberg.io import S3_CONNECT_TIMEOUT, S3_REQUEST_TIMEOUT, S3_RETRY_STRATEGY_IMPL
from pyiceberg.io.pyarrow import PyArrowFileIO, _import_retry_strategy

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

CONNECT_TIMEOUT, REQUEST_TIMEOUT = "3", "10"
"""In seconds, for each of three attempts; the second one is how long a server may send nothing."""


class S3FileIO(PyArrowFileIO):
    """Opens S3 as PyIceberg does, by the same properties."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__({S3_CONNECT_TIMEOUT: CONNECT_TIMEOUT, S3_REQUEST_TIMEOUT: REQUEST_TIMEOUT} | properties)

    def _initialize_s3_fs(self, netloc: str | None) -> "FileSystem":
        opened = super()._initialize_s3_fs(netloc)
        # PyIceberg has no property for the option, and pyarrow tells the others in no other way.
        rebuilt, (options,) = cast("tuple[type, tuple[dict[str, object]]]", opened.__reduce__())
        options["allow_delayed_open"] = True  # else three requests write a small file: a multipart upload
        if named := self.properties.get(S3_RETRY_STRATEGY_IMPL):
            options["retry_strategy"] = _import_retry_strategy(named)
        return rebuilt(options)
