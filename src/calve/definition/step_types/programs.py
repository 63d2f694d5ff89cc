"""Steps that run a program: Shell, Python, Notebook, Java, Docker, Kubernetes."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from calve.definition.document import Node
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types.model import (
    LISTS,
    MAPS,
    QUANTITY,
    SCALARS,
    TEXT,
    TEXTS,
    WHOLE,
    Choose,
    Config,
    Content,
    Field,
    FileField,
    Output,
    StepType,
)

COMMAND = (*TEXT, *TEXTS)
EXIT_CODE = Output("exit_code", ParamType.LONG, "What the program ended with.")

_ENV = Field("env", MAPS, "Environment variables, added to those of the worker.", values=SCALARS)
_CWD = Field("cwd", TEXT, "The folder to run in; a fresh one for each attempt, if not given.")
_ARGS = Field("args", LISTS, "Arguments, one item each.")

_RUNS_BEFORE = re.compile(r"[;&|({\n]\s*$")
"""The end of a text after which a shell begins another command."""
_ASSIGNS = re.compile(r"\s*(\w+=(\S*|'[^']*'|\"[^\"]*\")\s*)+$")


def _check_notebook(node: Node, config: Config, problems: Problems) -> None:
    """Warn about an init_command that would take papermill's command line for its arguments."""
    prefix = config.get("init_command")
    if not isinstance(prefix, str) or not prefix.strip() or _RUNS_BEFORE.search(prefix) or _ASSIGNS.match(prefix):
        return
    message = "notebook.init_command stands before papermill's command line, which becomes its arguments"
    problems.warn(node, "prefix_takes_arguments", message, hint="end it with && to run it before papermill")


SHELL = StepType(
    "Shell",
    "Runs a command or a script on the worker.",
    config="shell",
    fields=(
        Field("command", COMMAND, "A command line for the interpreter; as a list, a program and its arguments."),
        Field("script", TEXT, "The text of a script, of as many lines as it takes."),
        Field("file", TEXT, "The path of a script."),
        Field("args", LISTS, "Arguments of the command line, script or file: $1, $2 and so on."),
        _ENV,
        _CWD,
        Field("interpreter", COMMAND, "What runs it.", default="bash"),
        Field(
            "success_codes",
            (ParamType.LONG_ARRAY,),
            "Exit codes that mean success.",
            default=[0],
            minimum=0,
            maximum=255,
        ),
        Field(
            "fatal_codes",
            (ParamType.LONG_ARRAY,),
            "Exit codes that are not worth a retry.",
            minimum=0,
            maximum=255,
        ),
    ),
    choose=(Choose(("command", "script", "file"), beside="script", without="does nothing"),),
    outputs=(EXIT_CODE,),
)

PYTHON = StepType(
    "Python",
    "Runs a Python function, file or text in a process of its own.",
    config="python",
    fields=(
        Field("callable", TEXT, "A function, as package.module:function; a map that it returns sets params."),
        Field("file", TEXT, "The path of a Python file, run as a script."),
        Field("source", TEXT, "Python text, run as a script."),
        _ARGS,
        Field("kwargs", MAPS, "Keyword arguments of the function."),
        _ENV,
        _CWD,
        Field("interpreter", TEXT, "The Python to run it with, that of a virtual environment say."),
        Field("path", TEXTS, "Folders to look for modules in, before the others."),
    ),
    choose=(Choose(("callable", "file", "source")),),
    outputs=(EXIT_CODE,),
)

_PARAMETERS_FILE = re.compile(r"(?P<option>--parameters_file=?|-f)(?P<path>.*)")
_REMOTE = "://"


def parameters_files(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the files of parameters in papermill's options: the word's number, what comes before the path, the path.

    A file at an address such as ``s3://…`` is left out: papermill fetches it.
    """
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        found = _PARAMETERS_FILE.fullmatch(word)
        if before in {"-f", "--parameters_file"}:
            option, path = "", word
        elif found and found["path"] and found["option"] != "--parameters_file":
            option, path = found["option"], found["path"]
        else:
            continue
        if path and _REMOTE not in path:
            yield index, option, path


def _notebook_files(config: Config) -> Iterator[FileField]:
    """Yield the files of parameters; their paths begin at the notebook, which only the run knows in a repository."""
    notebook = config.get("input_path")
    if not isinstance(notebook, str) or _REMOTE in notebook or "git_repo" in config:
        return
    for _, _, path in parameters_files(list(_words(config.get("papermill_arguments", ())))):
        yield FileField("papermill_arguments", str(PurePath(notebook).parent / path))


def _words(given: Any) -> Iterator[str]:
    """Yield the options of papermill that are known before the run, as words."""
    match given:
        case str():
            try:
                yield from shlex.split(given)
            except ValueError:
                return  # the run tells
        case list() | tuple():
            yield from (item if isinstance(item, str) else "" for item in given)
        case dict():
            for name, value in given.items():
                if name.lstrip("-") in {"f", "parameters_file"}:
                    for item in value if isinstance(value, list) else [value]:
                        yield from ("-f", item if isinstance(item, str) else "")
        case _:
            return


NOTEBOOK = StepType(
    "Notebook",
    "Runs a Jupyter notebook with papermill.",
    config="notebook",
    fields=(
        Field("input_path", TEXT, "The notebook to run.", required=True),
        Field("output_path", TEXT, "Where to keep it with its results; among the step's files, if not given."),
        Field(
            "papermill_arguments",
            (*TEXT, *TEXTS, *MAPS),
            "More options of papermill: a command line, a list or a map.",
        ),
        Field("parameters", MAPS, "Values for the cell that is tagged parameters.", content=Content.VALUES),
        Field("kernel", TEXT, "The kernel to run it with; the notebook's own, if not given."),
        Field(
            "init_command",
            TEXT,
            "A prefix of papermill's command line, as in Maestro; end it with && to run a command first.",
        ),
        Field("git_repo", TEXT, "A repository that holds the notebook."),
        Field("git_branch", TEXT, "The branch to take it from."),
        Field("git_commit", TEXT, "The commit to take it from."),
        Field("run_id", TEXT, "Names the run, for papermill's engine."),
    ),
    choose=(Choose(("git_branch", "git_commit"), least=0),),
    outputs=(Output("output_path", ParamType.STRING, "The notebook with its results."),),
    check=_check_notebook,
    files=_notebook_files,
)

JAVA = StepType(
    "Java",
    "Runs a Java program.",
    config="java",
    fields=(
        Field("jar", TEXT, "The jar to run; its manifest names the class, unless main_class does."),
        Field("main_class", TEXT, "The class to run."),
        Field("classpath", TEXTS, "Jars and folders to look for classes in."),
        _ARGS,
        Field("jvm_options", TEXTS, "Options of the JVM, such as -Xmx2g."),
        Field("java_home", TEXT, "The Java to run it with; that of the settings, if not given."),
        _ENV,
        _CWD,
    ),
    choose=(Choose(("jar", "main_class"), most=2),),
    outputs=(EXIT_CODE,),
)

DOCKER = StepType(
    "Docker",
    "Runs a container on the worker's machine.",
    config="docker",
    fields=(
        Field("image", TEXT, "The image to run.", required=True),
        Field("command", COMMAND, "What to run in it; the image's own, if not given."),
        _ARGS,
        Field("entrypoint", COMMAND, "Replaces the image's entry point."),
        Field("env", MAPS, "Environment variables; nothing of the worker's goes in.", values=SCALARS),
        Field("volumes", TEXTS, "Folders to share, as host:container or host:container:ro."),
        Field("working_dir", TEXT, "The folder in the container to run in."),
        Field("user", QUANTITY[:2], "The user in the container."),
        Field("network", TEXT, "The network to join."),
        Field("cpu", QUANTITY, "How many processors it may use."),
        Field("memory", QUANTITY, "How much memory it may use, 512m say."),
        Field("gpu", QUANTITY, "How many graphics processors it may use, or all."),
        Field("pull", TEXT, "When to fetch the image.", default="missing", choices=("missing", "always", "never")),
    ),
    outputs=(EXIT_CODE,),
)

KUBERNETES = StepType(
    "Kubernetes",
    "Runs a container as a job on a Kubernetes cluster.",
    config="kubernetes",
    fields=(
        Field("image", TEXT, "The image to run.", required=True),
        Field("app_name", TEXT, "Names the job.", default="maestro-job"),
        Field("command", TEXTS, "What to run in it; the image's own, if not given."),
        _ARGS,
        Field("env", MAPS, "Environment variables.", values=SCALARS),
        Field("cpu", QUANTITY, "How much processor to ask for, 500m or 2 say."),
        Field("memory", QUANTITY, "How much memory to ask for, 512Mi say."),
        Field("disk", QUANTITY, "How much disk to ask for."),
        Field("gpu", QUANTITY, "How many graphics processors to ask for."),
        Field("namespace", TEXT, "The namespace to run in; that of the settings, if not given."),
        Field("service_account", TEXT, "The service account to run as."),
        Field("job_deduplication_key", TEXT, "A second job of this key is not started."),
        Field("owner_email", TEXT, "Whom to tell about the job."),
        Field("pre_stop", TEXT, "A command to run in the container before it is stopped."),
    ),
    outputs=(Output("exit_code", WHOLE[0], "What the program ended with."),),
)

CLUSTER_FIELDS = frozenset(KUBERNETES.known()) - {"command", "args", "env"}
"""Fields that mean something to Kubernetes alone; Maestro's notebooks have them too, since they run there."""
