"""Folders that calve writes to: who else may read them, whether a file system refuses them, and what to say then."""

import errno
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calve.errors import FolderNotWritable

_REFUSALS = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}
)
"""What no second try cures: rights, a file system that is read-only, a file where a folder should be."""


_IN_THE_WAY = frozenset({errno.ENOTDIR, errno.EEXIST})


def is_refusal(error: BaseException) -> bool:
    """Tell whether a file system refuses something for good."""
    return isinstance(error, OSError) and error.errno in _REFUSALS


def not_writable(what: str, path: Path | str, error: OSError, setting: str = "") -> FolderNotWritable:
    """Return the error of a folder or file that cannot be written; ``setting`` names another place for it."""
    elsewhere = f", or name another place in the settings: {setting}" if setting else ""
    cure = (
        "Move the file away that is in the way" if error.errno in _IN_THE_WAY else f"Let the user {_user()} write there"
    )
    return FolderNotWritable(
        f"{what} cannot be written: {error.strerror or error} ({path}).", remedy=f"{cure}{elsewhere}.", path=str(path)
    )


@contextmanager
def writing(what: str, path: Path | str, setting: str = "") -> Iterator[None]:
    """Turn the refusal to write something into an error that says what and where.

    Raises:
        FolderNotWritable: the file system refuses it.
        OSError: something else went wrong.
    """
    try:
        yield
    except OSError as error:
        if not is_refusal(error):
            raise
        raise not_writable(what, path, error, setting) from error


def try_writing(what: str, path: Path, setting: str) -> None:
    """See whether a folder can be written, or made, by doing so; or a file, if there is one. Nothing is left behind.

    Raises:
        FolderNotWritable: it cannot.
    """
    try:
        if path.is_file():
            with path.open("r+b"):
                return
        nearest = next((folder for folder in (path, *path.parents) if folder.exists()), path)
        with tempfile.TemporaryDirectory(prefix=".calve-", dir=nearest):
            return
    except OSError as error:
        raise not_writable(what, path, error, setting) from error


def close_to_others(*paths: Path, but: int = 0) -> None:
    """Take all rights of group and others from files and folders, as far as they are there and ours.

    Args:
        paths: of the files and folders; what a link leads to is left alone.
        but: the rights that they keep.
    """
    for path in paths:
        with suppress(OSError):  # what is in the way is told by whoever writes there, what is open by calve doctor
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if status.st_uid == os.geteuid() and mode & 0o077 & ~but and not stat.S_ISLNK(status.st_mode):
                path.chmod(mode & (0o7700 | but))


def _user() -> str:
    """Return who we are; a container may know its user by number only."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
