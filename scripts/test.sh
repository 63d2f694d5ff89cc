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

# All tests that need Spark share one JVM; the others, most of which wait for disks and processes, run beside it.
tests() {
    local rest failed=0
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    "$bin/coverage" run -m pytest -q -n 3 --dist worksteal \
        tests/unit tests/behaviour tests/properties tests/model tests/acceptance >"$log" 2>&1 &
    rest=$!
    "$bin/coverage" run -m pytest -q tests/integration || failed=1
    wait "$rest" || failed=1
    cat "$log"
    return $failed
}

step "lint" "$bin/ruff" check --quiet .
step "format" "$bin/ruff" format --check --quiet .
step "layers" "$bin/lint-imports"
step "types" "$bin/mypy"
step "docs" "$bin/zensical" build --strict
step "tests" tests
"$bin/coverage" combine --quiet
"$bin/coverage" report --format=total | sed 's/^/   branch coverage: /; s/$/ %/'
# The language and the engine know no framework, so there is no excuse for a branch that no test takes.
"$bin/coverage" report --include='src/calve/expressions/*,src/calve/definition/*,src/calve/dsl/*,src/calve/engine/*' --fail-under=100
