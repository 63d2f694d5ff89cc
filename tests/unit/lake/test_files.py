"""Files are read and written by the paths that metadata names."""

import os
from pathlib import Path

import pytest

from calve.errors import FilesLost, FolderNotWritable, LakeCorrupt, LakeError
from calve.lake import Files, local_path


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b c", "/a/b c"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:/a/b%20c?d#e", "/a/b%20c?d#e"),
        ("/day=2024-01-01T00:00/f", "/day=2024-01-01T00:00/f"),
        ("s3://bucket/a", None),
        ("memory://a/b", None),
    ],
)
def test_local_paths_are_told_from_others(location: str, path: str | None) -> None:
    """Every spelling of a local path is understood, and nothing in it is unquoted."""
    assert local_path(location) == (Path(path) if path else None)


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "remote"])
def test_a_file_goes_through_its_life(prefix: str, tmp_path: Path) -> None:
    """Writing makes the folders; reading, ranges and deleting work; a second deletion finds nothing."""
    files = Files(max_bytes=10)
    path = f"{prefix}{tmp_path}/t/metadata/a b.json"
    if prefix == "remote":  # through PyIceberg's file systems, as an object store would be
        import calve.lake.files as module

        path = f"file://{tmp_path}/t/metadata/a b.json"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "local_path", lambda _: None)
            _live(files, path)
        return
    _live(files, path)
    assert list(tmp_path.iterdir()) == []


def _live(files: Files, path: str) -> None:
    assert not files.exists(path)
    files.write(path, b"first")
    files.write(path, b"0123456789")
    assert files.exists(path)
    assert files.read(path) == b"0123456789"
    assert files.read_range(path, 3, 4) == b"3456"
    files.write(path, b"0123456789+")
    for read in (files.read, lambda large: files.read_range(large, 0, 11), lambda cut: files.read_range(cut, 8, 5)):
        with pytest.raises(LakeCorrupt):
            read(path)
    assert files.delete(path)
    assert not files.delete(path)
    for read in (files.read, lambda lost: files.read_range(lost, 0, 1)):
        with pytest.raises(FilesLost) as error:
            read(path)
        assert path in error.value.message


def test_folders_that_are_not_the_tables_stay(tmp_path: Path) -> None:
    """Deleting removes an empty metadata folder and table folder, and no other."""
    files = Files()
    files.write(f"{tmp_path}/db/t/metadata/a", b"")
    files.write(f"{tmp_path}/db/t/data/b", b"")
    files.write(f"{tmp_path}/db/other/c", b"")
    files.delete(f"{tmp_path}/db/t/metadata/a")
    assert sorted(path.name for path in (tmp_path / "db" / "t").iterdir()) == ["data"]
    files.delete(f"{tmp_path}/db/t/data/b")
    assert not (tmp_path / "db" / "t").exists()
    files.delete(f"{tmp_path}/db/other/c")
    assert (tmp_path / "db" / "other").is_dir()


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    """A path that cannot be written is named, and no half file stays."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(FolderNotWritable, match=r"A file of the lake cannot be written: Is a directory \(.*folder\)"):
        Files().write(f"{tmp_path}/folder", b"x")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@pytest.mark.filterwarnings("ignore:No preferred file implementation")
def test_an_unknown_scheme_is_an_error_of_the_lake() -> None:
    """A path that no file system takes is named."""
    with pytest.raises(LakeError, match="nonsense://x/y"):
        Files().read("nonsense://x/y")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe would be waited for, a device never ends, and a folder holds nothing to read."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    for path in (pipe, link, tmp_path, Path("/dev/null")):
        for read in (Files().read, lambda lost: Files().read_range(lost, 0, 1)):
            with pytest.raises(LakeCorrupt, match="not a file") as error:
                read(str(path))
            assert error.value.path == str(path)


def test_names_that_no_file_can_have_are_refused() -> None:
    """Metadata may name anything; what cannot be a path is damage, and not something to try again."""
    for name in ("/a\0b", "/a\ud800b"):
        with pytest.raises(LakeCorrupt, match="no file can have this name") as error:
            Files().read(name)
        assert not error.value.is_passing
        error.value.message.encode()


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    """A larger one is refused by name, with the setting that allows it; so is a part that is not there."""
    path = tmp_path / "large"
    path.write_bytes(bytes(101))
    files = Files(max_bytes=100)
    with pytest.raises(LakeCorrupt, match="101 bytes") as error:
        files.read(str(path))
    assert "lake.max_metadata_bytes" in error.value.remedy
    assert len(files.read(str(path), times=2)) == 101
    for offset, length in ((0, 101), (0, 2**62), (50, 60), (2**62, 1)):
        with pytest.raises(LakeCorrupt):
            files.read_range(str(path), offset, length)
    assert files.read_range(str(path), 100, 1) == b"\0"


def test_an_empty_file_is_read(tmp_path: Path) -> None:
    """With a limit and without."""
    (tmp_path / "empty").touch()
    assert Files().read(f"{tmp_path}/empty") == Files(max_bytes=1).read(f"{tmp_path}/empty") == b""


def test_files_that_do_not_tell_their_size_are_read_up_to_a_limit() -> None:
    """Files of the kernel say that they are empty."""
    with pytest.raises(LakeCorrupt, match="more than 10 bytes"):
        Files(max_bytes=10).read("/proc/self/maps")
