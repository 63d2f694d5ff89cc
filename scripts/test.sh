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

step "lint" "$bin/ruff" check --quiet .
step "format" "$bin/ruff" format --check --quiet .
step "layers" "$bin/lint-imports"
step "types" "$bin/mypy"
step "docs" "$bin/zensical" build --strict
# One after the other: beside a busy Spark, tests that wait for processes and leases would wait too long. All tests that
# need Spark share one JVM, and those that want a server share one server.
step "tests without Spark" "$bin/coverage" run -m pytest -q -n 3 --dist worksteal \
    tests/unit tests/behaviour tests/properties tests/model tests/acceptance
step "tests with Spark" "$bin/coverage" run -m pytest -q tests/integration
"$bin/coverage" combine --quiet
"$bin/coverage" report --format=total | sed 's/^/   branch coverage: /; s/$/ %/'
# The language and the engine know no framework, so there is no excuse for a branch that no test takes.
"$bin/coverage" report --include='src/calve/expressions/*,src/calve/definition/*,src/calve/dsl/*,src/calve/engine/*' --fail-under=100
