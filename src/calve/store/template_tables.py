"""The table of job templates that were pushed."""

from sqlalchemy import BigInteger, Column, Table, Text

from calve.store.tables import metadata

job_template = Table(
    "job_template",
    metadata,
    Column("job_type", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("document", Text, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
)
"""Each template in each of its versions, as JSON."""
