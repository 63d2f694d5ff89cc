# Made by `make step-types` from the declarations in calve.definition.step_types.
from collections.abc import Mapping, Sequence
from typing import Literal
from calve.dsl.any_step import FailureMode
from calve.dsl.graph import Loop, Step
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Flag, Items, Number, Param, Quantity, Reference, Scalar, Tags, Text, TextMap, Texts, Value, ValueMap, Whole, Wholes

__all__ = [
    "approval",
    "docker",
    "foreach",
    "http",
    "icdc",
    "ip_capture",
    "ip_commit",
    "java",
    "kubernetes",
    "noop",
    "notebook",
    "python",
    "shell",
    "sleep",
    "spark",
    "sql",
    "subworkflow",
    "template",
    "while_",
]

def approval(
    step_id: str,
    /,
    *,
    message: Text,
    approvers: Texts | None = None,
    min_approvals: Whole | None = None,
    timeout: Text | Whole | None = None,
    on_timeout: Literal["reject", "approve"] | Reference | Param | None = None,
    on_reject: Literal["fail", "succeed"] | Reference | Param | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    step_timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that waits for a person to decide, without occupying a worker.

    Args:
        step_id: The id of the step.
        message: The question to decide; Markdown.
        approvers: Who may decide. By default, everybody who may run the workflow.
        min_approvals: How many people must approve. Default: ``1``.
        timeout: How long to wait: seconds, or a text such as 2 days. By default, forever.
        on_timeout: The decision if nobody decides in time. Default: ``"reject"``.
        on_reject: What a rejection does: fail the step, or let it succeed, so that edges can test decision.
            Default: ``"fail"``.
        step_timeout: What ``timeout`` is for other steps; here ``timeout`` is a field of the type.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

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
    user: Text | Whole | None = None,
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
        command: The command to run. By default, the image's own.
        args: Arguments, one per item.
        entrypoint: Replaces the entry point of the image.
        env: Environment variables; none are passed on from the worker.
        volumes: Folders to mount, as host:container or host:container:ro.
        working_dir: The working directory in the container.
        user: The user in the container.
        network: The network to join.
        cpu: How many CPUs it may use.
        memory: How much memory it may use, for example 512m.
        gpu: How many GPUs it may use, or all.
        pull: When to pull the image. Default: ``"missing"``.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def foreach(
    step_id: str,
    /,
    *,
    loop_params: Mapping[str, Items | range],
    concurrency: int | None = None,
    strict_ordering: bool | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Loop:
    """Describe a step that runs its steps once for every combination of its loop params; the first varies fastest.

    Args:
        step_id: The id of the step.
        loop_params: The lists to iterate over, by name.
        concurrency: How many iterations may run at once.
        strict_ordering: Let no iteration get further ahead of the oldest running one than concurrency allows.
            Default: ``False``.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def http(
    step_id: str,
    /,
    *,
    url: Text,
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] | Reference | Param | None = None,
    headers: ValueMap | None = None,
    body: ValueMap | Text | None = None,
    query: ValueMap | None = None,
    auth: ValueMap | None = None,
    timeout_seconds: Number | None = None,
    verify: Flag | None = None,
    state_expr: Text | None = None,
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
    """Describe a step that sends an HTTP request and evaluates the response.

    Args:
        step_id: The id of the step.
        url: The URL to request; its host must be on the allow-list of the settings.
        method: The HTTP method. Default: ``"GET"``.
        headers: Headers by name.
        body: The body: a text, sent as it is, or a map, sent as JSON.
        query: Query parameters to append to the URL.
        auth: Credentials: a user name with a password, or a token. A map of ``username``, ``password`` and
            ``token``.
        timeout_seconds: How long to wait for the response, in seconds. Default: ``30``.
        verify: Verify the server's certificate. Default: ``True``.
        state_expr: An expression over status_code and response_body that gives the state of the step: DONE,
            USER_ERROR, PLATFORM_ERROR, FATAL_ERROR or CONTINUE. Without it, 2xx is DONE; 408, 425, 429, 502, 503
            and 504 are PLATFORM_ERROR; any other 4xx is FATAL_ERROR; everything else is USER_ERROR.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def icdc(
    step_id: str,
    /,
    *,
    source_table: Text,
    target_table: Text,
    data_operations: Sequence[Literal["append", "overwrite", "delete"]] | Param | None = None,
    range_columns: Texts | None = None,
    initial: Text | Whole | None = None,
    until: Text | Whole | None = None,
    on_gap: Literal["fail", "upserts", "full"] | Reference | Param | None = None,
    on_schema_change: Literal["evolve", "fail"] | Reference | Param | None = None,
    max_files: Whole | None = None,
    max_bytes: Whole | None = None,
    lease: Flag | None = None,
    consumer: Text | None = None,
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
    """Describe a step that captures one table into a named table, and commits when the workflow has succeeded.

    Args:
        step_id: The id of the step.
        source_table: The table to capture.
        target_table: The table to hold the change; replaced on every run.
        data_operations: The kinds of snapshots to capture; other kinds in the range are an error, except
            compaction. Default: ``["append"]``.
        range_columns: The columns to report the changed range of.
        initial: Where to start without a checkpoint: latest, a snapshot, a tag or a time. By default, capture
            everything.
        until: Where to stop: a snapshot, a tag, a branch or a time. By default, now.
        on_gap: What to do if needed snapshots have expired: fail, continue by row lineage, or take the whole table.
            Default: ``"fail"``.
        on_schema_change: What to do if the schema changed: read with the new one, or fail. Default: ``"evolve"``.
        max_files: The maximum number of files to take from each table.
        max_bytes: The maximum number of bytes to take from each table.
        lease: Protect the captured files from expiry until the commit, with a tag. Default: ``False``.
        consumer: The consumer that owns the checkpoint. By default, the workflow and the step.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def ip_capture(
    step_id: str,
    /,
    *,
    source_tables: TextMap | Text | Texts,
    capture_mode: Literal["ICDC", "RANGE", "VIEW", "PATH"] | Reference | Param | None = None,
    data_operations: Sequence[Literal["append", "overwrite", "delete"]] | Param | None = None,
    range_columns: Texts | None = None,
    initial: Text | Whole | None = None,
    until: Text | Whole | None = None,
    on_gap: Literal["fail", "upserts", "full"] | Reference | Param | None = None,
    on_schema_change: Literal["evolve", "fail"] | Reference | Param | None = None,
    max_files: Whole | None = None,
    max_bytes: Whole | None = None,
    lease: Flag | None = None,
    consumer: Text | None = None,
    when_unchanged: Literal["skip", "run"] | Reference | Param | None = None,
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
    """Describe a step that captures what changed in source tables since the last commit, from metadata only.

    Args:
        step_id: The id of the step.
        source_tables: The tables: a list of names, or a map from names of your own to tables.
        capture_mode: What to create: an ICDC table, only the ranges, a Spark view, or a table read by its path.
            Default: ``"ICDC"``.
        data_operations: The kinds of snapshots to capture; other kinds in the range are an error, except
            compaction. Default: ``["append"]``.
        range_columns: The columns to report the changed range of.
        initial: Where to start without a checkpoint: latest, a snapshot, a tag or a time. By default, capture
            everything.
        until: Where to stop: a snapshot, a tag, a branch or a time. By default, now.
        on_gap: What to do if needed snapshots have expired: fail, continue by row lineage, or take the whole table.
            Default: ``"fail"``.
        on_schema_change: What to do if the schema changed: read with the new one, or fail. Default: ``"evolve"``.
        max_files: The maximum number of files to take from each table.
        max_bytes: The maximum number of bytes to take from each table.
        lease: Protect the captured files from expiry until the commit, with a tag. Default: ``False``.
        consumer: The consumer that owns the checkpoint. By default, the workflow and the step.
        when_unchanged: What to do if nothing changed: skip everything after the step, or run it. Default:
            ``"skip"``.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def ip_commit(
    step_id: str,
    /,
    *,
    capture_step: Step | Text,
    capture: Text | None = None,
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
    """Describe a step that moves the checkpoint past the change that a step of this workflow captured.

    Args:
        step_id: The id of the step.
        capture_step: The id of the IpCapture step. Or the step itself.
        capture: The id of the capture. By default, the one that the step took.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

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
        jar: The jar to run; without main_class, its manifest names the class.
        main_class: The class to run.
        classpath: Jars and folders to search for classes.
        args: Arguments, one per item.
        jvm_options: Options of the JVM, such as -Xmx2g.
        java_home: The Java installation to use. By default, that of the settings.
        env: Environment variables, in addition to those from the worker.
        cwd: The folder to run in. By default, a new one for each attempt.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

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
        app_name: The name of the job. Default: ``"maestro-job"``.
        command: The command to run. By default, the image's own.
        args: Arguments, one per item.
        env: Environment variables.
        cpu: How much CPU to request, for example 500m or 2.
        memory: How much memory to request, for example 512Mi.
        disk: How much disk space to request.
        gpu: How many GPUs to request.
        namespace: The namespace to run in. By default, that of the settings.
        service_account: The service account to run as.
        job_deduplication_key: A key; a second job with the same key is not started.
        owner_email: The email address of the job's owner.
        pre_stop: A command to run in the container before it is stopped.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def noop(
    step_id: str,
    /,
    *,
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
    """Describe a step that does nothing and succeeds; use it where branches meet or part.

    Args:
        step_id: The id of the step.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def notebook(
    step_id: str,
    /,
    *,
    input_path: Text,
    output_path: Text | None = None,
    papermill_arguments: ValueMap | Text | Texts | None = None,
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
        output_path: Where to save the notebook with its results. By default, among the step's files.
        papermill_arguments: More options of papermill: a command line, a list or a map.
        parameters: Values for the cell tagged parameters.
        kernel: The kernel to run it with. By default, the notebook's own.
        init_command: A prefix of papermill's command line, as in Maestro; end it with && to run a command first.
        git_repo: The Git repository that holds the notebook.
        git_branch: The branch to check out.
        git_commit: The commit to check out.
        run_id: The id of the run, for papermill's engine.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def python(
    step_id: str,
    /,
    *,
    callable: Text | None = None,
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
    """Describe a step that runs a Python function, file or text in its own process.

    Args:
        step_id: The id of the step.
        callable: A function, as package.module:function; if it returns a map, its entries set params.
        file: The path of a Python file, run as a script.
        source: Python source code, run as a script.
        args: Arguments, one per item.
        kwargs: Keyword arguments of the function.
        env: Environment variables, in addition to those from the worker.
        cwd: The folder to run in. By default, a new one for each attempt.
        interpreter: The Python to run it with, for example that of a virtual environment.
        path: Folders to search for modules before all others.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

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
        command: A command line for the interpreter, or a list of a program and its arguments.
        script: The text of a script.
        file: The path of a script.
        args: Arguments of the command line, script or file: $1, $2 and so on.
        env: Environment variables, in addition to those from the worker.
        cwd: The folder to run in. By default, a new one for each attempt.
        interpreter: The program that runs it. Default: ``"bash"``.
        success_codes: Exit codes that mean success. Default: ``[0]``.
        fatal_codes: Exit codes after which the step is not retried.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def sleep(
    step_id: str,
    /,
    *,
    sleep_seconds: Whole | None = None,
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
    """Describe a step that waits without occupying a worker.

    Args:
        step_id: The id of the step.
        sleep_seconds: How long to wait, in seconds. Default: ``3``.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def spark(
    step_id: str,
    /,
    *,
    script: Text | None = None,
    file: Text | None = None,
    application: Text | None = None,
    jar: Text | None = None,
    main_class: Text | None = None,
    function: Text | None = None,
    merge: ValueMap | None = None,
    args: Items | None = None,
    parameters: ValueMap | None = None,
    conf: ValueMap | None = None,
    packages: Texts | None = None,
    jars: Texts | None = None,
    py_files: Texts | None = None,
    files: Texts | None = None,
    remote: Text | None = None,
    master: Text | None = None,
    deploy_mode: Literal["client", "cluster"] | Reference | Param | None = None,
    catalog: Text | None = None,
    namespace: Text | None = None,
    branch: Text | None = None,
    capture: Text | None = None,
    audit: Text | Texts | None = None,
    publish: Literal["step", "commit"] | Reference | Param | None = None,
    fetch: Literal["none", "value", "row", "rows"] | Reference | Param | None = None,
    max_rows: Whole | None = None,
    expect: Literal["any_row", "no_row", "all_true"] | Reference | Param | None = None,
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
    """Describe a step that runs SQL, a merge or a Python function in a Spark session, or an application with spark-submit.

    Args:
        step_id: The id of the step.
        script: SQL: one or more statements, separated by semicolons.
        file: The path of a .sql file.
        application: The path of a .py file to run with spark-submit.
        jar: The path of a jar to run with spark-submit.
        main_class: The class of the jar to run.
        function: A Python function, as module:name or path.py:name; it is called with a Spark session.
        merge: Merges rows into a table in the cheapest way that the metadata allows. A map of ``into``, ``using``,
            ``keys``, ``when_matched``, ``when_not_matched``, ``delete_when`` and ``deletes``.
        args: Arguments of the application, the class or the function.
        parameters: Values for :name in SQL, passed separately from the text; for a function, its keyword arguments.
        conf: Spark settings by name.
        packages: Libraries to download, as group:artifact:version.
        jars: Jars to add.
        py_files: Python files, zips and wheels to add.
        files: Files to place beside the application.
        remote: The address of a Spark Connect server, sc://host:port.
        master: The master of a cluster: spark://…, yarn, k8s://… or local[n].
        deploy_mode: Where the driver runs. Default: ``"client"``.
        catalog: The catalog of table names that do not name one. By default, that of the settings.
        namespace: The namespace of table names that do not name one.
        branch: The branch to read tables from and write them to, for write-audit-publish.
        capture: The id of the capture that the step processes. By default, that of the only capture step before it.
        audit: SQL that checks what was written before others can see it: every value of every row must be true. Or
            the paths of .sql files.
        publish: When others see what was written to the targets: when the step succeeds, or with the commit of the
            capture. Default: ``"step"``.
        fetch: What to keep of the rows of the last statement: nothing, the first value, the first row, or all of
            them. Default: ``"none"``.
        max_rows: The maximum number of rows to keep. Default: ``1000``.
        expect: What must be true of the rows of the last statement, or the step fails: there is a row, there is
            none, or every value of every row is true.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def sql(
    step_id: str,
    /,
    *,
    url: Text | None = None,
    connection: Text | None = None,
    query: Text | None = None,
    file: Text | None = None,
    parameters: ValueMap | None = None,
    transaction: Flag | None = None,
    fetch: Literal["none", "value", "row", "rows"] | Reference | Param | None = None,
    max_rows: Whole | None = None,
    expect: Literal["any_row", "no_row", "all_true"] | Reference | Param | None = None,
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
    """Describe a step that runs statements on a database.

    Args:
        step_id: The id of the step.
        url: The database, as an SQLAlchemy URL; a secret if it contains a password.
        connection: The name of a connection in the settings.
        query: The statements, separated by semicolons.
        file: The path of a file with the statements.
        parameters: Values for :name in the statements, passed separately from the text.
        transaction: Run all statements in one transaction. Default: ``True``.
        fetch: What to keep of the rows of the last statement: nothing, the first value, the first row, or all of
            them. Default: ``"none"``.
        max_rows: The maximum number of rows to keep. Default: ``1000``.
        expect: What must be true of the rows of the last statement, or the step fails: there is a row, there is
            none, or every value of every row is true.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def subworkflow(
    step_id: str,
    /,
    *,
    workflow_id: Text | None = None,
    version: Text | Whole | None = None,
    sync: bool | None = None,
    explicit_params: bool | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs another workflow.

    Args:
        step_id: The id of the step.
        workflow_id: The workflow to run. Default: the id of the step.
        version: The version to run: active, latest, default, or a number. Default: ``"active"``.
        sync: Wait until it has ended. Default: ``True``.
        explicit_params: Pass down only the params of the step. Default: ``False``.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def template(
    step_id: str,
    /,
    *,
    sub_type: str,
    sub_type_version: str | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs the steps of a workflow template.

    Args:
        step_id: The id of the step.
        sub_type: The workflow template.
        sub_type_version: The version of the template.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """

def while_(
    step_id: str,
    /,
    *,
    loop_params: Mapping[str, Scalar],
    condition: str,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Loop:
    """Describe a step that runs its steps again while its condition holds.

    Args:
        step_id: The id of the step.
        loop_params: The initial values, by name; a param of that name in a step inside gives the next value.
        condition: An expression over the loop params; the loop ends when it is false.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
