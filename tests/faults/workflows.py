"""The workflows of the fault tests: small, and together of every shape."""

from calve.definition import Definition, installed, load

TEXTS = {
    "chain": """
Workflow:
  id: chain
  run_strategy: 8
  jobs:
    - job: {id: a, type: Shell, shell: {command: x}}
    - job: {id: poll, type: Shell, shell: {command: x}}
    - job: {id: keep, type: Shell, shell: {command: x}}
  dag: sequential
""",
    "join": """
Workflow:
  id: join
  run_strategy: 4
  jobs:
    - job: {id: a, type: Shell, shell: {command: x}}
    - job: {id: b, type: Shell, shell: {command: x}}
    - job: {id: c, type: NoOp}
    - job: {id: d, type: Shell, shell: {command: x}}
  dag: {a: [b, c], b: [d], c: [d]}
""",
    "loop": """
Workflow:
  id: loop
  run_strategy: 8
  jobs:
    - foreach:
        id: each
        concurrency: 2
        ranges: {i: {from: 0, to: 3}}
        jobs:
          - job: {id: a, type: Shell, shell: {command: x}}
          - job: {id: b, type: NoOp}
        dag: sequential
    - job: {id: after, type: Shell, shell: {command: x}}
  dag: sequential
""",
    "outer": """
Workflow:
  id: outer
  run_strategy: 8
  jobs:
    - subworkflow: {id: inner, workflow_id: chain}
    - job: {id: after, type: NoOp}
  dag: sequential
""",
    "retries": """
Workflow:
  id: retries
  run_strategy: 8
  jobs:
    - job:
        id: flaky
        type: Shell
        shell: {command: x}
        retry_policy: {error_retry_limit: 5, backoff: {type: FIXED_BACKOFF, error_retry_backoff_in_secs: 1}}
    - job: {id: after, type: Shell, shell: {command: x}}
  dag: sequential
""",
    "narrow": """
Workflow:
  id: narrow
  run_strategy: 2
  step_concurrency: 2
  jobs:
    - job: {id: a, type: Shell, shell: {command: x}}
    - job: {id: b, type: Shell, shell: {command: x}}
    - job: {id: c, type: Shell, shell: {command: x}}
    - job: {id: d, type: Shell, shell: {command: x}}
""",
}
"""In the order in which they have to be pushed. A step ``flaky`` fails once, ``poll`` is called twice, ``keep`` keeps
something on its way, ``hold`` waits until it is let go: see ``worker``."""
HELD = """
Workflow:
  id: held
  run_strategy: 8
  jobs:
    - job: {id: hold, type: Shell, timeout: 1800, shell: {command: x}}
    - job: {id: after, type: NoOp}
  dag: sequential
"""
"""Runs until a test lets it go."""


def definitions() -> list[Definition]:
    """Return all of them, read."""
    texts = {**TEXTS, "held": HELD}
    return [load(text, name=name, vocabulary=installed()).required() for name, text in texts.items()]


def chain_of(steps: int, name: str = "long") -> Definition:
    """Return a workflow of so many steps, one after the other, as many of whose instances may run as want to."""
    jobs = "".join(f"    - job: {{id: s{number}, type: Shell, shell: {{command: x}}}}\n" for number in range(steps))
    head = f"Workflow:\n  id: {name}\n  run_strategy: 1000\n  step_concurrency: 1000\n"
    text = f"{head}  jobs:\n{jobs}  dag: sequential\n"
    return load(text, name=name, vocabulary=installed()).required()
