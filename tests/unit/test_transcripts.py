"""The reader that follows the documentation notices what does not hold."""

from pathlib import Path

import pytest
from tests.transcripts import Command, File, Reader, parts_of, shell_environment

PAGE = """
Put this into the file `greeting.txt`:

```text
hello 1234567890123456789
```

```console
$ echo "capture abcdefgh of x: open,
        done in 5 ms" | tr a-h A-H | tr A-H a-h   # two lines
capture abcdefgh of x: open,
        done in 17.2 s
$ mkdir inside && cd inside
$ cat ../greeting.txt
hello 1234567890123456789
$ echo commit abcdefgh; echo more; echo the end
commit abcdefgh
…
the …
$ echo "error: no" >&2; false
error: no
```
"""


def _follow(page: str, folder: Path) -> int:
    return Reader(folder, shell_environment(Path())).follow(page, leaving_out={"make test": "runs this test"})


def test_what_a_page_says_is_found() -> None:
    """Files and commands in their order, with their lines."""
    parts = list(parts_of(PAGE))
    assert parts[0] == File("greeting.txt", "hello 1234567890123456789\n")
    assert parts[2] == Command(13, "mkdir inside && cd inside", "")
    assert len(parts) == 6


def test_a_page_that_holds_is_followed(tmp_path: Path) -> None:
    """In one folder, which commands may leave; times are not compared."""
    assert _follow(PAGE, tmp_path) == 5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("the …", "the start"),
        ("the …\n", "the …\nand more\n"),
        ("…\nthe …\n", "the …\n"),
        ("hello 1234567890123456789\n$", "$"),
        ("; false\n", "\n"),
        ("error: no\n```", "no\n```"),
        ("mkdir inside", "mkdir nowhere/inside"),
        ("commit abcdefgh\n…", "commit abcdefgi\n…"),
    ],
)
def test_a_page_that_does_not_hold_is_refused(tmp_path: Path, right: str, wrong: str) -> None:
    """Other output, too much or too little of it, and an exit code that the page does not show."""
    assert right in PAGE
    with pytest.raises(AssertionError):
        _follow(PAGE.replace(right, wrong), tmp_path)


def test_an_id_stands_for_one_value(tmp_path: Path) -> None:
    """The page's ids are not those of the run; once seen, they are replaced in commands and compared."""
    page = '```console\n$ echo "capture zzzzzzzz of x"\ncapture aaaaaaaa of x\n$ echo aaaaaaaa\naaaaaaaa\n```\n'
    assert _follow(page, tmp_path) == 2
    with pytest.raises(AssertionError):
        _follow(page.replace("echo aaaaaaaa", "echo yyyyyyyy"), tmp_path)


def test_a_command_omitted_is_not_run(tmp_path: Path) -> None:
    """Whatever comment stands behind it."""
    assert _follow("```console\n$ make test      # everything\n```\n", tmp_path) == 0


BACKGROUND = """
```console
$ bash -c 'trap "kill $!; exit 0" INT; sleep 60 & echo at 127.0.0.1:80; wait'   # until Ctrl-C
at 127.0.0.1:80
$ echo 127.0.0.1:80
127.0.0.1:80
```
"""


def test_what_differs_here_is_replaced(tmp_path: Path) -> None:
    """In commands and in what they show; a command until Ctrl-C is ready when it has shown what the page shows."""
    reader = Reader(tmp_path, shell_environment(Path()), {"127.0.0.1:80": "127.0.0.1:8080"})
    assert reader.follow(BACKGROUND, leaving_out={}) == 2
