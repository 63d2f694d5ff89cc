#!/usr/bin/env bash
# Everything CI runs. Stops at the first step that fails; says how long each took.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin

step() {
    local began=$SECONDS
    echo "── $1"
    shift
    "$@"
    echo "   $((SECONDS - began)) s"
}

# Tables and pipelines side by side: each has a JVM of its own, and waits for it much of the time.
with_spark() {
    local pipelines failed=0
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    "$bin/coverage" run -m pytest -q --durations=10 tests/pipelines >"$log" 2>&1 &
    pipelines=$!
    "$bin/coverage" run -m pytest -q --durations=10 tests/integration || failed=1
    wait "$pipelines" || failed=1
    cat "$log"
    return $failed
}

step "lint" "$bin/ruff" check --quiet .
step "format" "$bin/ruff" format --check --quiet .
step "layers" "$bin/lint-imports"
step "types" "$bin/mypy"
step "docs" "$bin/zensical" build --strict
# These come first: beside a busy Spark, tests that wait for processes and leases would wait too long.
step "tests without Spark" "$bin/coverage" run -m pytest -q -n 3 --dist worksteal --durations=10 \
    tests/unit tests/behaviour tests/properties tests/model tests/acceptance
step "tests with Spark" with_spark
"$bin/coverage" combine --quiet
"$bin/coverage" report --format=total | sed 's/^/   branch coverage: /; s/$/ %/'
# The language and the engine know no framework, so there is no excuse for a branch that no test takes.
"$bin/coverage" report --include='src/calve/expressions/*,src/calve/definition/*,src/calve/dsl/*,src/calve/engine/*' --fail-under=100
