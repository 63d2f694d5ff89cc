"""Folders that calve writes to: their permissions, and the errors if they are not writable."""

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
"""Errors that a retry cannot fix: permissions, a read-only file system, a file in place of a folder."""


_IN_THE_WAY = frozenset({errno.ENOTDIR, errno.EEXIST})


def is_refusal(error: BaseException) -> bool:
    """Return whether an error of the file system is permanent."""
    return isinstance(error, OSError) and error.errno in _REFUSALS


def not_writable(what: str, path: Path | str, error: OSError, setting: str = "") -> FolderNotWritable:
    """Return the error for a folder or file that is not writable; ``setting`` is the key that sets its location."""
    elsewhere = f", or choose another location with the setting {setting}" if setting else ""
    cure = (
        "Move the file that is in the way"
        if error.errno in _IN_THE_WAY
        else f"Give the user {_user()} write permission"
    )
    return FolderNotWritable(
        f"{what} cannot be written: {error.strerror or error} ({path}).", remedy=f"{cure}{elsewhere}.", path=str(path)
    )


@contextmanager
def writing(what: str, path: Path | str, setting: str = "") -> Iterator[None]:
    """Turn a file system error into an error that names what cannot be written, and its path.

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
    """Check that a folder can be written or created, or a file be written, without leaving anything behind.

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
    """Remove the permissions of group and others from files and folders that exist and belong to this user.

    Args:
        paths: the files and folders; links are not followed.
        but: the permissions to keep.
    """
    for path in paths:
        with suppress(OSError):  # the next write reports the error, and calve doctor reports open permissions
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if status.st_uid == os.geteuid() and mode & 0o077 & ~but and not stat.S_ISLNK(status.st_mode):
                path.chmod(mode & (0o7700 | but))


def _user() -> str:
    """Return the current user; a container may have only a number for it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
