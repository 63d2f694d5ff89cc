"""A temporary S3 server: versitygw from the Go proxy, on a free port of loopback, with its objects in a folder."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services import go
from tests.services.process import folder_for, free_port, running

from calve.errors import EnvironmentUnfit
from calve.settings import Settings, load

VERSION = "1.8.0"
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running S3 server, with the keys of its administrator."""

    port: int
    folder: Path
    """Every bucket is a folder in it, every object a file."""
    program: Path
    access_key: str = "calve-access-key"
    secret_key: str = "calve-secret-key"
    region: str = "us-east-1"
    domain: str = "localhost"
    """Of virtual-host style: a bucket is also the host ``BUCKET.localhost``."""

    @property
    def endpoint(self) -> str:
        """Its address, for path style."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        """What a catalog's definition says to reach it, in PyIceberg's names."""
        return self.properties_at(self.port)

    def properties_at(self, port: int) -> dict[str, str]:
        """Return the properties to reach it through a given port, such as a proxy's."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": self.region,
        }

    def make_bucket(self, name: str) -> str:
        """Create a bucket; return its location."""
        self._administer("create-bucket", "--owner", self.access_key, "--bucket", name)
        return f"s3://{name}"

    def add_user(self, access_key: str, secret_key: str) -> None:
        """Add a user, who has no rights in the buckets of others."""
        self._administer("create-user", "--access", access_key, "--secret", secret_key, "--role", "user")

    def _administer(self, command: str, *arguments: str) -> None:
        keys = ["--access", self.access_key, "--secret", self.secret_key, "--endpoint-url", self.endpoint]
        words = [str(self.program), "admin", "--region", self.region, *keys, command, *arguments]
        said = subprocess.run(words, capture_output=True, text=True, check=False)
        if said.returncode:
            raise EnvironmentUnfit(f"versitygw {command} failed: {said.stdout}{said.stderr}")


@contextmanager
def throwaway_s3(settings: Settings | None = None) -> Iterator[S3Server]:
    """Start an S3 server, and remove it with all its objects in the end.

    Raises:
        EnvironmentUnfit: it cannot be built, or does not start.
    """
    program = go.built(settings or load(_ROOT), _PACKAGE, VERSION)
    with folder_for("s3") as folder:  # not in memory: older kernels keep no attributes there
        server = S3Server(free_port(), folder / "buckets", program)
        for name in ("buckets", "users"):
            (folder / name).mkdir()
        # Without its --keep-alive: after an upload in chunks, it sometimes takes what is left of it for a request.
        words = [
            *(str(server.program), "--access", server.access_key, "--secret", server.secret_key),
            *("--region", server.region, "--port", f"127.0.0.1:{server.port}", "--virtual-domain", server.domain),
            *("--iam-dir", str(folder / "users"), "--iam-cache-disable", "--quiet"),
            *("posix", str(server.folder)),
        ]
        with running(words, server.port, folder / "log"):
            yield server
