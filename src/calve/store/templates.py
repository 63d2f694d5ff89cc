"""Job templates that were pushed (the port is ``calve.engine.ports.Templates``)."""

import json

from sqlalchemy import delete, exists, or_, select

from calve.definition import JobTemplate
from calve.engine.model import VersionRecord
from calve.engine.statuses import RunStatus
from calve.store.engine_rows import version_of
from calve.store.engine_tables import run, version, workflow
from calve.store.template_tables import job_template
from calve.store.transacting import Transaction, Transactions

_IS_AT_WORK = exists().where(
    run.c.owner_workflow == version.c.workflow_id,
    run.c.version_id == version.c.version_id,
    run.c.status.in_([status.value for status in RunStatus if not status.is_terminal]),
)


class SqlTemplates:
    """Keeps job templates by type and version."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def keep_template(self, template: JobTemplate, now: int) -> None:
        """Keep a template, in place of the one of the same type and version."""
        about = template.definition
        changed = {"document": json.dumps(template.as_json()), "modified_at": now}
        values = {"job_type": about.job_type, "version": about.version, **changed}

        def keep(transaction: Transaction) -> None:
            statement = transaction.insert(job_template).values(values)
            key = [job_template.c.job_type, job_template.c.version]
            transaction.connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))

        self._transactions.write("keep_template", keep)

    def remove_templates(self, job_type: str, wanted: str | None) -> int:
        """Forget a template in a version, or in all; return how many were forgotten."""
        statement = delete(job_template).where(job_template.c.job_type == job_type)
        if wanted is not None:
            statement = statement.where(job_template.c.version == wanted)
        return self._transactions.write(
            "remove_templates", lambda transaction: transaction.connection.execute(statement).rowcount
        )

    def templates(self, job_type: str | None = None) -> list[JobTemplate]:
        """Return the templates of a type, or all, by type and version."""
        query = select(job_template.c.document)
        if job_type is not None:
            query = query.where(job_template.c.job_type == job_type)
        with self._transactions.read() as connection:
            found = [JobTemplate.model_validate(json.loads(text)) for text in connection.scalars(query)]
        return sorted(found, key=lambda template: (template.definition.job_type, template.definition.version))

    def versions_naming(self, word: str) -> list[VersionRecord]:
        """Return the versions, active or at work, in whose definitions a word stands as a text of its own."""
        query = select(version).join(workflow, version.c.workflow_id == workflow.c.workflow_id)
        query = query.where(or_(version.c.version_id == workflow.c.active_version, _IS_AT_WORK))
        query = query.where(version.c.definition.contains(json.dumps(word), autoescape=True))
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(version.c.workflow_id, version.c.version_id))
            return [version_of(row) for row in rows]
