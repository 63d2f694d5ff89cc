"""Files of the lake on a real S3 server."""

from collections.abc import Iterator

import pytest
from tests.services.s3 import S3Server, throwaway_s3

from calve.lake import Files


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """Yield an S3 server with the bucket ``lake``."""
    with throwaway_s3() as server:
        server.make_bucket("lake")
        yield server


def test_a_file_is_written_read_and_deleted(s3: S3Server) -> None:
    """What is written to an object store can be read whole, in part, and deleted once."""
    files = Files(s3.properties)
    path = "s3://lake/a/b"
    files.write(path, b"0123456789")
    assert files.read(path) == b"0123456789"
    assert files.read_range(path, 3, 4) == b"3456"
    assert [files.delete(path), files.exists(path), files.delete(path)] == [True, False, False]
