#!/usr/bin/env bash
# Everything CI runs. Stops at the first step that fails; says how long each took.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
unset PYTHONDONTWRITEBYTECODE # set in some images: every process that a test starts would compile all it imports

step() {
    local began=$SECONDS
    echo "── $1"
    shift
    "$@"
    echo "   $((SECONDS - began)) s"
}

quickly() {
    "$@" -q -n 3 --dist worksteal --durations=10
}

# The language and the engine know no framework, so there is no excuse for a branch that no test takes. These tests
# come to all of them; the others are not measured, as Python takes several times as long where it is.
core=(tests/unit/{definition,dsl,engine,expressions}
    tests/behaviour/test_{engine,signal,api_access,api_signal,api_templates}*.py)
of_the_core() {
    "$bin/coverage" erase
    quickly "$bin/coverage" run -m pytest "${core[@]}"
    "$bin/coverage" combine --quiet
    "$bin/coverage" report --fail-under=100
}

of_the_rest() {
    quickly "$bin/python" -m pytest "${core[@]/#/--ignore=}" \
        tests/unit tests/behaviour tests/properties tests/model tests/acceptance
}

# Tables and pipelines side by side: each has a JVM of its own, and waits for it much of the time.
with_spark() {
    local pipelines failed=0
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    "$bin/python" -m pytest -q --durations=10 tests/pipelines >"$log" 2>&1 &
    pipelines=$!
    "$bin/python" -m pytest -q --durations=10 tests/integration || failed=1
    wait "$pipelines" || failed=1
    cat "$log"
    return $failed
}

step "lint" "$bin/ruff" check --quiet .
step "format" "$bin/ruff" format --check --quiet .
step "layers" "$bin/lint-imports"
step "types" "$bin/mypy"
step "docs" "$bin/zensical" build --strict
# These come before Spark: beside a busy one, tests that wait for processes and leases would wait too long.
step "tests of the language and the engine" of_the_core
step "other tests without Spark" of_the_rest
step "tests with Spark" with_spark
