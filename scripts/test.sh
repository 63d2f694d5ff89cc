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
step "tests" "$bin/coverage" run -m pytest -q --numprocesses 2 --dist loadgroup "$@"
"$bin/coverage" combine --quiet
"$bin/coverage" report --format=total | sed 's/^/   branch coverage: /; s/$/ %/'
