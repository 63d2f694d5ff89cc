"""The chain as Airflow reads it: copied into its folder of DAGs, beside a file that says how many steps."""

from pathlib import Path

from airflow.sdk import DAG, chain, task  # type: ignore[import-not-found]

STEPS = int(Path(__file__).with_name("steps.txt").read_text())


def nothing() -> None:
    """Do nothing."""


with DAG("chain", schedule=None) as dag:
    chain(*(task(task_id=f"step_{number}")(nothing)() for number in range(STEPS)))
