"""Steps that ask an engine: sql and spark."""

# The keywords that all steps share are described once, at ``step``.
# ruff: noqa: D417

from collections.abc import Mapping, Sequence
from typing import Literal

from calve.dsl.fields import FailureMode, Tags, typed
from calve.dsl.graphs import Step
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Flag, Items, Param, Reference, Text, Texts, Value, ValueMap, Whole


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
        url: The database, as an SQLAlchemy URL; a secret, if it holds a password.
        connection: The name of a connection in the settings.
        query: The statements, parted by semicolons.
        file: The path of a file with the statements.
        parameters: Values for :name in the statements, passed apart from the text.
        transaction: Run all statements in one transaction; True unless told.
        fetch: What to keep of the last statement's rows: nothing, the first value, the first row, or all of them;
            ``"none"`` unless told.
        max_rows: How many rows to keep at most; 1000 unless told.
        expect: What must hold of the last statement's rows, or the step fails: there is a row, there is none, or
            every value of every row is true.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("SQL", locals())


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
    """Describe a step that runs SQL, a merge or a Python function in Spark, or an application through spark-submit.

    Args:
        step_id: The id of the step.
        script: SQL text: one statement or several, parted by semicolons.
        file: The path of a .sql file.
        application: The path of a .py file; it runs through spark-submit.
        jar: The path of a jar; it runs through spark-submit.
        main_class: The class to run of the jar.
        function: A Python function, module:name or path.py:name; it is called with a Spark session.
        merge: Merges rows into a table, in the cheapest way that their metadata allows: a map of ``into``, ``using``,
            ``keys``, ``when_matched``, ``when_not_matched``, ``delete_when`` and ``deletes``.
        args: Arguments of the application, the class or the function.
        parameters: Values for :name in SQL text, passed apart from it; of a function, its keywords.
        conf: Spark settings by name.
        packages: Libraries to fetch, as group:artifact:version.
        jars: Jars to add.
        py_files: Python files, zips and wheels to add.
        files: Files to put beside the application.
        remote: A Spark Connect server, sc://host:port.
        master: A cluster: spark://…, yarn, k8s://… or local[n].
        deploy_mode: Where the driver runs; ``"client"`` unless told.
        catalog: The catalog of names that name none; that of the settings, if not given.
        namespace: The namespace of names that name none.
        branch: The branch that tables are read from and written to, for write-audit-publish.
        capture: The id of the capture that the step works on; that of the one capture step before it, if not given.
        audit: SQL that looks at what was written, before anybody else can see it: every value of every row must be
            true. Or the paths of .sql files.
        publish: When others see what was written to the targets: when the step has ended well, or with the commit of
            the capture; ``"step"`` unless told.
        fetch: What to keep of the last statement's rows: nothing, the first value, the first row, or all of them;
            ``"none"`` unless told.
        max_rows: How many rows to keep at most; 1000 unless told.
        expect: What must hold of the last statement's rows, or the step fails: there is a row, there is none, or
            every value of every row is true.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Spark", locals())
