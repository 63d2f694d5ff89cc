"""What programs give back, by each way there is."""

import json
from pathlib import Path

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import shell, workspace

from calve.engine import Outcome, State
from calve.errors import StepFailed
from calve.steps.processes.outputs import OUTPUT_LIMIT, ProgramOutputs, parse_outputs
from calve.steps.processes.supervisor import MarkedLines
from calve.steps.programs.shell import Shell


def _run(context: FakeContext) -> Outcome:
    return Shell(workspace(context.home)).execute(context)


@pytest.mark.parametrize("prefix", ["MAESTRO", "CALVE"])
@pytest.mark.parametrize("stream", [1, 2])
def test_what_is_printed_between_markers_are_outputs(tmp_path: Path, prefix: str, stream: int) -> None:
    """A program prints its outputs as Maestro's do."""
    document = {"params": {"rows": 5, "day": {"value": "mon", "type": "STRING"}}, "artifacts": {"job": {"id": 7}}}
    script = f"echo before\ncat <<'X' >&{stream}\n{prefix}_OUTPUT_START\n{json.dumps(document, indent=1)}\n"
    script += f"  {prefix}_OUTPUT_END\r\nX\necho after"
    found = _run(FakeContext(tmp_path, {"shell": {"script": script}}))
    assert found == Outcome(State.DONE, {"rows": 5, "day": "mon", "exit_code": 0}, {"job": {"id": 7}})


@pytest.mark.parametrize("text", ['{"params": {"rows": 5}}', '{"rows": 5}', '\ufeff{"rows": 5}'])
def test_what_is_written_to_the_output_file_are_outputs(tmp_path: Path, text: str) -> None:
    """A program writes its outputs to the file that CALVE_OUTPUT names, in parts or plainly."""
    found = _run(shell(tmp_path, 'printf %s "$1" > $CALVE_OUTPUT', args=[text]))
    assert found.outputs == {"rows": 5, "exit_code": 0}


def test_later_outputs_win(tmp_path: Path) -> None:
    """The file wins over what was printed, a later block over an earlier one, and the exit code over all."""
    blocks = "".join(
        f"CALVE_OUTPUT_START\n{json.dumps({'params': p})}\nCALVE_OUTPUT_END\n"
        for p in ({"a": 1, "b": 1}, {"b": 2, "c": 2})
    )
    command = f"""echo '{blocks}'; echo '{{"c": 3, "exit_code": 9}}' > $CALVE_OUTPUT"""
    assert _run(shell(tmp_path, command)).outputs == {"a": 1, "b": 2, "c": 3, "exit_code": 0}


def test_an_empty_output_file_gives_nothing(tmp_path: Path) -> None:
    """A file that was only touched is no mistake."""
    assert _run(shell(tmp_path, "touch $CALVE_OUTPUT")) == Outcome(State.DONE, {"exit_code": 0})


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo '{' > $CALVE_OUTPUT", "The file of CALVE_OUTPUT is not JSON: "),
        ("echo '[1]' > $CALVE_OUTPUT", "not a map of names and values, but [1]"),
        ("echo '{\"a\": NaN}' > $CALVE_OUTPUT", "NaN is not a number in JSON"),
        ("echo '{\"params\": 1}' > $CALVE_OUTPUT", "params is not a map"),
        ("printf '\\xff' > $CALVE_OUTPUT", "is not UTF-8"),
        ("mkdir $CALVE_OUTPUT", "cannot be read: Is a directory"),
        (f"head -c {OUTPUT_LIMIT + 1} /dev/zero > $CALVE_OUTPUT", f"more than {OUTPUT_LIMIT} bytes to the file"),
        ("echo CALVE_OUTPUT_START; echo x; echo CALVE_OUTPUT_END", "between the output markers is not JSON"),
        ("echo CALVE_OUTPUT_START; echo '{}'", "but not OUTPUT_END"),
        ("echo CALVE_OUTPUT_START; head -c 3000000 /dev/zero; echo; echo CALVE_OUTPUT_END", "bytes between the"),
        ("echo CALVE_OUTPUT_START; yes | head -c 3000000; echo CALVE_OUTPUT_END", "bytes between the"),
        ("python3 -c 'print(\"[\" * 100000)' > $CALVE_OUTPUT", "is not JSON"),
    ],
)
def test_outputs_that_cannot_be_understood_fail_the_step(tmp_path: Path, command: str, told: str) -> None:
    """A program that succeeded but gave back nonsense has failed, and is told why."""
    found = _run(shell(tmp_path, command))
    assert (found.state, found.outputs) == (State.FATAL_ERROR, {"exit_code": 0})
    assert told in found.message


def test_a_failed_program_gives_back_what_it_can(tmp_path: Path) -> None:
    """Outputs of a failed program are kept; bad ones are told in the log, and its own failure stays the reason."""
    found = _run(shell(tmp_path, "echo '{\"a\": 1}' > $CALVE_OUTPUT; exit 2"))
    assert (found.state, found.outputs) == (State.USER_ERROR, {"a": 1, "exit_code": 2})
    context = shell(tmp_path, "echo '{' > $CALVE_OUTPUT; exit 2")
    assert "exit code 2" in _run(context).message
    assert "is not JSON" in context.text


def test_maps_of_maestro_are_plain_all_the_way_down() -> None:
    """A MAP holds params again; other types hold values, and what only looks similar is left alone."""
    text = json.dumps(
        {
            "m": {"type": "MAP", "value": {"x": {"type": "LONG", "value": 1}, "y": 2}},
            "s": {"type": "STRING_MAP", "value": {"x": "1"}},
            "own": {"value": 1},
        }
    )
    assert parse_outputs(text, "It") == ProgramOutputs({"m": {"x": 1, "y": 2}, "s": {"x": "1"}, "own": {"value": 1}})


def test_a_map_named_params_beside_others_is_a_param() -> None:
    """Only what has no other parts is in parts."""
    assert parse_outputs('{"params": {"a": 1}, "b": 2}', "It").params == {"params": {"a": 1}, "b": 2}
    assert parse_outputs("{}", "It") == ProgramOutputs()


def test_artifacts_must_be_a_map() -> None:
    """Parts are maps, both of them."""
    with pytest.raises(StepFailed, match="artifacts is not a map"):
        parse_outputs('{"artifacts": []}', "It")


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_markers_are_found_however_output_is_cut(tmp_path: Path, size: int) -> None:
    """Output comes in pieces that know nothing of lines."""
    data = (
        b"x" * 100
        + b"\nsee MAESTRO_OUTPUT_START\n MAESTRO_OUTPUT_START \n{\n}\nMAESTRO_OUTPUT_END\nno\nCALVE_OUTPUT_START"
    )
    path = tmp_path / "printed"
    printed = MarkedLines(str(path))
    for start in range(0, len(data), size):
        printed.feed(data[start : start + size])
    printed.close()
    assert path.read_bytes() == b" MAESTRO_OUTPUT_START \n{\n}\nMAESTRO_OUTPUT_END\nCALVE_OUTPUT_START\n"
