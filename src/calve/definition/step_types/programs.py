"""Steps that run a program or send a request: Shell, Python, Notebook, Java, Docker, Kubernetes, Http."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from calve.definition.document import Node
from calve.definition.model import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types.step_type import (
    LISTS,
    MAPS,
    NUMBER,
    QUANTITY,
    SCALARS,
    TEXT,
    TEXTS,
    TRUTH,
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
EXIT_CODE = Output("exit_code", ParamType.LONG, "The exit code of the program.")

_ENV = Field("env", MAPS, "Environment variables, in addition to those from the worker.", values=SCALARS)
_CWD = Field("cwd", TEXT, "The folder to run in. By default, a new one for each attempt.")
_ARGS = Field("args", LISTS, "Arguments, one per item.")

_RUNS_BEFORE = re.compile(r"[;&|({\n]\s*$")
"""The end of a text after which a shell starts another command."""
_ASSIGNS = re.compile(r"\s*(\w+=(\S*|'[^']*'|\"[^\"]*\")\s*)+$")


def _check_notebook(node: Node, config: Config, problems: Problems) -> None:
    """Warn about an init_command that would take papermill's command line for its arguments."""
    prefix = config.get("init_command")
    if not isinstance(prefix, str) or not prefix.strip() or _RUNS_BEFORE.search(prefix) or _ASSIGNS.match(prefix):
        return
    message = "notebook.init_command is a prefix of papermill's command line, which becomes its arguments"
    problems.warn(node, "prefix_takes_arguments", message, hint="end it with && to run it before papermill")


SHELL = StepType(
    "Shell",
    "Runs a command or a script on the worker.",
    config="shell",
    fields=(
        Field("command", COMMAND, "A command line for the interpreter, or a list of a program and its arguments."),
        Field("script", TEXT, "The text of a script."),
        Field("file", TEXT, "The path of a script."),
        Field("args", LISTS, "Arguments of the command line, script or file: $1, $2 and so on."),
        _ENV,
        _CWD,
        Field("interpreter", COMMAND, "The program that runs it.", default="bash"),
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
            "Exit codes after which the step is not retried.",
            minimum=0,
            maximum=255,
        ),
    ),
    choose=(Choose(("command", "script", "file"), beside="script", without="does nothing"),),
    outputs=(EXIT_CODE,),
)

PYTHON = StepType(
    "Python",
    "Runs a Python function, file or text in its own process.",
    config="python",
    fields=(
        Field("callable", TEXT, "A function, as package.module:function; if it returns a map, its entries set params."),
        Field("file", TEXT, "The path of a Python file, run as a script."),
        Field("source", TEXT, "Python source code, run as a script."),
        _ARGS,
        Field("kwargs", MAPS, "Keyword arguments of the function."),
        _ENV,
        _CWD,
        Field("interpreter", TEXT, "The Python to run it with, for example that of a virtual environment."),
        Field("path", TEXTS, "Folders to search for modules before all others."),
    ),
    choose=(Choose(("callable", "file", "source")),),
    outputs=(EXIT_CODE,),
)

_PARAMETERS_FILE = re.compile(r"(?P<option>--parameters_file=?|-f)(?P<path>.*)")
_REMOTE = "://"


def parameters_files(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the parameters files in papermill's options: the index of the word, what precedes the path, and the path.

    A file at a URL such as ``s3://…`` is left out: papermill fetches it.
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
    """Yield the parameters files, unless the notebook is in a repository: their paths are relative to it."""
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
                return  # the run fails with the reason
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
        Field("output_path", TEXT, "Where to save the notebook with its results. By default, among the step's files."),
        Field(
            "papermill_arguments",
            (*TEXT, *TEXTS, *MAPS),
            "More options of papermill: a command line, a list or a map.",
        ),
        Field("parameters", MAPS, "Values for the cell tagged parameters.", content=Content.VALUES),
        Field("kernel", TEXT, "The kernel to run it with. By default, the notebook's own."),
        Field(
            "init_command",
            TEXT,
            "A prefix of papermill's command line, as in Maestro; end it with && to run a command first.",
        ),
        Field("git_repo", TEXT, "The Git repository that holds the notebook."),
        Field("git_branch", TEXT, "The branch to check out."),
        Field("git_commit", TEXT, "The commit to check out."),
        Field("run_id", TEXT, "The id of the run, for papermill's engine."),
    ),
    choose=(Choose(("git_branch", "git_commit"), least=0),),
    outputs=(Output("output_path", ParamType.STRING, "The path of the notebook with its results."),),
    check=_check_notebook,
    files=_notebook_files,
)

JAVA = StepType(
    "Java",
    "Runs a Java program.",
    config="java",
    fields=(
        Field("jar", TEXT, "The jar to run; without main_class, its manifest names the class."),
        Field("main_class", TEXT, "The class to run."),
        Field("classpath", TEXTS, "Jars and folders to search for classes."),
        _ARGS,
        Field("jvm_options", TEXTS, "Options of the JVM, such as -Xmx2g."),
        Field("java_home", TEXT, "The Java installation to use. By default, that of the settings."),
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
        Field("command", COMMAND, "The command to run. By default, the image's own."),
        _ARGS,
        Field("entrypoint", COMMAND, "Replaces the entry point of the image."),
        Field("env", MAPS, "Environment variables; none are passed on from the worker.", values=SCALARS),
        Field("volumes", TEXTS, "Folders to mount, as host:container or host:container:ro."),
        Field("working_dir", TEXT, "The working directory in the container."),
        Field("user", QUANTITY[:2], "The user in the container."),
        Field("network", TEXT, "The network to join."),
        Field("cpu", QUANTITY, "How many CPUs it may use."),
        Field("memory", QUANTITY, "How much memory it may use, for example 512m."),
        Field("gpu", QUANTITY, "How many GPUs it may use, or all."),
        Field("pull", TEXT, "When to pull the image.", default="missing", choices=("missing", "always", "never")),
    ),
    outputs=(EXIT_CODE,),
)

KUBERNETES = StepType(
    "Kubernetes",
    "Runs a container as a job on a Kubernetes cluster.",
    config="kubernetes",
    fields=(
        Field("image", TEXT, "The image to run.", required=True),
        Field("app_name", TEXT, "The name of the job.", default="maestro-job"),
        Field("command", TEXTS, "The command to run. By default, the image's own."),
        _ARGS,
        Field("env", MAPS, "Environment variables.", values=SCALARS),
        Field("cpu", QUANTITY, "How much CPU to request, for example 500m or 2."),
        Field("memory", QUANTITY, "How much memory to request, for example 512Mi."),
        Field("disk", QUANTITY, "How much disk space to request."),
        Field("gpu", QUANTITY, "How many GPUs to request."),
        Field("namespace", TEXT, "The namespace to run in. By default, that of the settings."),
        Field("service_account", TEXT, "The service account to run as."),
        Field("job_deduplication_key", TEXT, "A key; a second job with the same key is not started."),
        Field("owner_email", TEXT, "The email address of the job's owner."),
        Field("pre_stop", TEXT, "A command to run in the container before it is stopped."),
    ),
    outputs=(EXIT_CODE,),
)

CLUSTER_FIELDS = frozenset(KUBERNETES.known()) - {"command", "args", "env"}
"""Fields that only Kubernetes uses; notebooks of Maestro have them too, since they run there."""

HTTP = StepType(
    "Http",
    "Sends an HTTP request and evaluates the response.",
    config="http",
    fields=(
        Field("url", TEXT, "The URL to request; its host must be on the allow-list of the settings.", required=True),
        Field(
            "method",
            TEXT,
            "The HTTP method.",
            default="GET",
            choices=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
        ),
        Field("headers", MAPS, "Headers by name.", values=(*TEXT, *WHOLE)),
        Field("body", (*TEXT, *MAPS), "The body: a text, sent as it is, or a map, sent as JSON."),
        Field("query", MAPS, "Query parameters to append to the URL."),
        Field(
            "auth",
            MAPS,
            "Credentials: a user name with a password, or a token.",
            fields=(
                Field("username", TEXT, "The user name for basic authentication."),
                Field("password", TEXT, "The password, a secret."),
                Field("token", TEXT, "A bearer token, a secret."),
            ),
        ),
        Field("timeout_seconds", NUMBER, "How long to wait for the response, in seconds.", default=30, minimum=1),
        Field("verify", TRUTH, "Verify the server's certificate.", default=True),
    ),
    params=(
        Field(
            "state_expr",
            TEXT,
            "An expression over status_code and response_body that gives the state of the step: DONE, USER_ERROR, "
            "PLATFORM_ERROR, FATAL_ERROR or CONTINUE. Without it, 2xx is DONE; 408, 425, 429, 502, 503 and 504 are "
            "PLATFORM_ERROR; any other 4xx is FATAL_ERROR; everything else is USER_ERROR.",
        ),
    ),
    outputs=(
        Output("status_code", ParamType.LONG, "The status code of the response."),
        Output("response_body", ParamType.STRING, "The body of the response."),
    ),
)
