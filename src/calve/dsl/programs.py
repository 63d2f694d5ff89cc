"""Steps that run a program: shell, python, notebook, java, docker, kubernetes."""

# The keywords that all steps share are described once, at ``step``.
# ruff: noqa: D417

from collections.abc import Mapping, Sequence
from typing import Literal

from calve.dsl.fields import FailureMode, Tags, typed
from calve.dsl.graphs import Step
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Items, Param, Quantity, Reference, Text, Texts, Value, ValueMap, Wholes


def shell(
    step_id: str,
    /,
    *,
    command: Text | Texts | None = None,
    script: Text | None = None,
    file: Text | None = None,
    args: Items | None = None,
    env: ValueMap | None = None,
    cwd: Text | None = None,
    interpreter: Text | Texts | None = None,
    success_codes: Wholes | None = None,
    fatal_codes: Wholes | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a command or a script on the worker.

    Args:
        step_id: The id of the step.
        command: A command line for the interpreter; as a list, a program and its arguments.
        script: The text of a script, of as many lines as it takes.
        file: The path of a script.
        args: Arguments of the command line, script or file: $1, $2 and so on.
        env: Environment variables, added to those of the worker.
        cwd: The folder to run in; a fresh one for each attempt, if not given.
        interpreter: What runs it; ``"bash"`` unless told.
        success_codes: Exit codes that mean success; [0] unless told.
        fatal_codes: Exit codes that are not worth a retry.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Shell", locals())


def python(
    step_id: str,
    /,
    *,
    callable: Text | None = None,  # noqa: A002 - the definition's word
    file: Text | None = None,
    source: Text | None = None,
    args: Items | None = None,
    kwargs: ValueMap | None = None,
    env: ValueMap | None = None,
    cwd: Text | None = None,
    interpreter: Text | None = None,
    path: Texts | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a Python function, file or text in a process of its own.

    Args:
        step_id: The id of the step.
        callable: A function, as package.module:function; a map that it returns sets params.
        file: The path of a Python file, run as a script.
        source: Python text, run as a script.
        args: Arguments, one item each.
        kwargs: Keyword arguments of the function.
        env: Environment variables, added to those of the worker.
        cwd: The folder to run in; a fresh one for each attempt, if not given.
        interpreter: The Python to run it with, that of a virtual environment say.
        path: Folders to look for modules in, before the others.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Python", locals())


def notebook(
    step_id: str,
    /,
    *,
    input_path: Text,
    output_path: Text | None = None,
    papermill_arguments: Text | Texts | ValueMap | None = None,
    parameters: ValueMap | None = None,
    kernel: Text | None = None,
    init_command: Text | None = None,
    git_repo: Text | None = None,
    git_branch: Text | None = None,
    git_commit: Text | None = None,
    run_id: Text | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a Jupyter notebook with papermill.

    Args:
        step_id: The id of the step.
        input_path: The notebook to run.
        output_path: Where to keep it with its results; among the step's files, if not given.
        papermill_arguments: More options of papermill: a command line, a list or a map.
        parameters: Values for the cell that is tagged parameters.
        kernel: The kernel to run it with; the notebook's own, if not given.
        init_command: A prefix of papermill's command line, as in Maestro; end it with && to run a command first.
        git_repo: A repository that holds the notebook.
        git_branch: The branch to take it from.
        git_commit: The commit to take it from.
        run_id: Names the run, for papermill's engine.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Notebook", locals())


def java(
    step_id: str,
    /,
    *,
    jar: Text | None = None,
    main_class: Text | None = None,
    classpath: Texts | None = None,
    args: Items | None = None,
    jvm_options: Texts | None = None,
    java_home: Text | None = None,
    env: ValueMap | None = None,
    cwd: Text | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a Java program.

    Args:
        step_id: The id of the step.
        jar: The jar to run; its manifest names the class, unless main_class does.
        main_class: The class to run.
        classpath: Jars and folders to look for classes in.
        args: Arguments, one item each.
        jvm_options: Options of the JVM, such as -Xmx2g.
        java_home: The Java to run it with; that of the settings, if not given.
        env: Environment variables, added to those of the worker.
        cwd: The folder to run in; a fresh one for each attempt, if not given.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Java", locals())


def docker(
    step_id: str,
    /,
    *,
    image: Text,
    command: Text | Texts | None = None,
    args: Items | None = None,
    entrypoint: Text | Texts | None = None,
    env: ValueMap | None = None,
    volumes: Texts | None = None,
    working_dir: Text | None = None,
    user: Text | int | None = None,
    network: Text | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    gpu: Quantity | None = None,
    pull: Literal["missing", "always", "never"] | Reference | Param | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a container on the worker's machine.

    Args:
        step_id: The id of the step.
        image: The image to run.
        command: What to run in it; the image's own, if not given.
        args: Arguments, one item each.
        entrypoint: Replaces the image's entry point.
        env: Environment variables; nothing of the worker's goes in.
        volumes: Folders to share, as host:container or host:container:ro.
        working_dir: The folder in the container to run in.
        user: The user in the container.
        network: The network to join.
        cpu: How many processors it may use.
        memory: How much memory it may use, 512m say.
        gpu: How many graphics processors it may use, or all.
        pull: When to fetch the image; ``"missing"`` unless told.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Docker", locals())


def kubernetes(
    step_id: str,
    /,
    *,
    image: Text,
    app_name: Text | None = None,
    command: Texts | None = None,
    args: Items | None = None,
    env: ValueMap | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    disk: Quantity | None = None,
    gpu: Quantity | None = None,
    namespace: Text | None = None,
    service_account: Text | None = None,
    job_deduplication_key: Text | None = None,
    owner_email: Text | None = None,
    pre_stop: Text | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs a container as a job on a Kubernetes cluster.

    Args:
        step_id: The id of the step.
        image: The image to run.
        app_name: Names the job; ``"maestro-job"`` unless told.
        command: What to run in it; the image's own, if not given.
        args: Arguments, one item each.
        env: Environment variables.
        cpu: How much processor to ask for, 500m or 2 say.
        memory: How much memory to ask for, 512Mi say.
        disk: How much disk to ask for.
        gpu: How many graphics processors to ask for.
        namespace: The namespace to run in; that of the settings, if not given.
        service_account: The service account to run as.
        job_deduplication_key: A second job of this key is not started.
        owner_email: Whom to tell about the job.
        pre_stop: A command to run in the container before it is stopped.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Kubernetes", locals())
