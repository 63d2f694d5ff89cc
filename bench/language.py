"""How fast is the language? Expressions after parsing, loops, a push of 300 steps, and hostile texts.

The baseline of an expression is a sum in plain Python, that of a push is ``yaml.CSafeLoader`` on the same text, which
reads it and does nothing else, and that of a hostile text is ``yaml.safe_load``.
"""

import statistics
import time
from collections.abc import Callable

import click
import yaml

from calve.definition import installed, load
from calve.expressions import evaluate, parse
from calve.expressions.parser import parse_tree

EXPRESSIONS: dict[str, tuple[str, dict[str, object]]] = {
    "x + 1": ("x + 1;", {"x": 10}),
    "a condition": ("params.get('day') > 20260101 && name != 'x';", {"day": 20260102, "name": "y"}),
    "a date": (
        "new DateTime(1569018000000).withZone(DateTimeZone.forID('US/Pacific')).plusDays(7).toString('yyyyMMdd');",
        {},
    ),
    "dates between": ("Util.dateIntsBetween(20200101, 20200110, 1);", {}),
    "a loop of 10": ("s = 0; for (i = 0; i < 10; i += 1) { s += i; } return s;", {}),
}
LOOPS = 300_000
STEPS = 300


def median(call: Callable[[], object], runs: int) -> float:
    """Return the median of some runs, in seconds."""
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def expressions() -> None:
    baseline = median(lambda: 10 + 1, 2000)
    click.echo(f"{'expression':<16}{'after parse':>12}{'parse':>12}")
    for name, (source, params) in EXPRESSIONS.items():
        program = parse(source)
        evaluate(program, params)
        once = median(lambda program=program, params=params: evaluate(program, params), 2000)  # type: ignore[misc]
        read = median(lambda source=source: parse_tree(source), 200)  # type: ignore[misc]
        click.echo(
            f"{name:<16}{once * 1e6:>9.1f} µs{read * 1e6:>9.0f} µs{once / baseline:>10.0f} × plain Python's 10 + 1"
        )


def loops() -> None:
    source = (
        f"m = 0; for (i = 0; i < {LOOPS // 300}; i += 1) {{ for (j = 0; j < 300; j += 1) {{ m += 1; }} }} return m;"
    )
    program = parse(source)

    def plain() -> int:
        total = i = 0
        while i < LOOPS:
            total += 1
            i += 1
        return total

    ours, theirs = median(lambda: evaluate(program, {}), 3), median(plain, 3)
    click.echo(
        f"{LOOPS:,} iterations: {ours:.2f} s, {ours / LOOPS * 1e6:.2f} µs each, {ours / theirs:.0f} × plain Python"
    )


def workflow() -> str:
    """Return a workflow of 300 steps with params, conditions and expressions that are all different."""
    jobs = "".join(
        f"""
    - job:
        id: step_{number}
        type: Spark
        day_{number}: {number}
        '!next_{number}<long>': day_{number} + first + {number}
        spark:
          script: INSERT INTO db.t SELECT * FROM db.s WHERE day > ${{next_{number}}} AND name = '${{label}}'
        transition: ["IF next_{number} > {number} THEN step_{number + 1}"]"""
        for number in range(STEPS - 1)
    )
    last = f"\n    - job: {{id: step_{STEPS - 1}, type: NoOp}}\n"
    return f"Workflow:\n  id: large\n  first: 1\n  label: x\n  jobs:{jobs}{last}"


def push() -> None:
    text, words = workflow(), installed()
    loaded = load(text, name="large.yaml", vocabulary=words)
    loaded.required()
    cold = []
    for number in range(7):  # other names each time, so that no expression is known already
        fresh = text.replace("step_", f"step{number}_").replace("next_", f"next{number}_")
        cold.append(median(lambda fresh=fresh: load(fresh, name="large.yaml", vocabulary=words), 1))  # type: ignore[misc]
    theirs = median(lambda: yaml.load(text, Loader=yaml.CSafeLoader), 7)
    took = statistics.median(cold)
    click.echo(f"a push of {STEPS} steps: {took * 1e3:.0f} ms, {took / theirs:.1f} × reading the same text with PyYAML")


def laughs(levels: int) -> str:
    """Return a few lines that hold many billion values, by anchors and aliases."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "billion laughs": laughs(9),
    "deeper laughs": laughs(60),
    "a list 20,000 deep": "[" * 20_000 + "]" * 20_000,
    "an integer of 2 MB": "x: " + "9" * 2_000_000,
    "20,000 keys": "".join(f"key_{number}: {number}\n" for number in range(20_000)),
}


def bombs() -> None:
    words = installed()
    for name, text in BOMBS.items():
        ours = median(lambda text=text: load(text, name="bomb.yaml", vocabulary=words), 5)  # type: ignore[misc]
        start = time.perf_counter()
        try:
            yaml.safe_load(text)
            theirs = f"{ours / (time.perf_counter() - start):.3f} × yaml.safe_load"
        except (RecursionError, ValueError) as error:
            theirs = f"yaml.safe_load gives up after {time.perf_counter() - start:.1f} s: {type(error).__name__}"
        click.echo(f"{name:<20}{ours * 1e3:>8.1f} ms   {theirs}")


def main() -> None:
    expressions()
    loops()
    push()
    bombs()


if __name__ == "__main__":
    main()
