#!/usr/bin/env bash
# Everything CI runs, for two cores; with CALVE_TEST_ALL=1 the whole matrix (make test-all).
# Stops at the first part that fails. The last line says how long each part took.
set -euo pipefail
set -m # each background job is a process group of its own, which can be stopped as a whole
cd "$(dirname "$0")/.."
bin=.venv/bin
unset PYTHONDONTWRITEBYTECODE # set in some images: every process that a test starts would compile all it imports
logs=$(mktemp -d)

clean_up() {
    local failed
    failed=$(cat "$logs/failed" 2>/dev/null || true)
    for group in $(jobs -pr); do kill -INT -- "-$group" || true; done # pytest then stops what its tests started
    wait 2>/dev/null || true
    rm -rf "$logs"
    [ -z "$failed" ] || echo "$failed failed"
}
trap clean_up EXIT

# Run a command as the part of a name, and note how long it took.
part() {
    local name=$1 began=$SECONDS
    shift
    echo "── $name"
    "$@" || { echo "$name" >>"$logs/failed" && exit 1; }
    echo "$name $((SECONDS - began)) s" >>"$logs/times"
}

# Run two functions beside each other. The output of the second is shown when both are over, or one has failed.
beside() {
    touch "$logs/$2"
    "$1" &
    "$2" >"$logs/$2" 2>&1 &
    local failed=0
    wait -n && wait -n || failed=1
    cat "$logs/$2"
    [ "$failed" = 0 ] || exit 1
}

static_checks() {
    part lint "$bin/ruff" check --quiet .
    part format "$bin/ruff" format --check --quiet .
    part layers "$bin/lint-imports" --no-cache # its cache goes stale when a module is removed
    part types "$bin/mypy"
    part docs "$bin/zensical" build --strict
}

# The language and the engine use no framework, so every branch must be tested. These tests reach all branches; the
# others are not measured, because measuring makes Python several times slower. Coverage with
# dynamic_context = "test_function" shows which tests reach a line.
core=(tests/unit/{definition,dsl,engine,expressions}
    tests/behaviour/engine/test_engine_{actions,composition,documents,flow,latest,live_work,params,permits}.py
    tests/behaviour/engine/test_engine_{registry,regressions,retries,starts,worker}.py
    tests/behaviour/api/test_api_{access_owners,grids,overviews,templates,workflows}.py
    tests/behaviour/test_{signals,signal_steps}.py)
measured() {
    "$bin/coverage" erase &&
        "$bin/coverage" run -m pytest -q -n 2 --dist worksteal --durations=10 "${core[@]}" &&
        "$bin/coverage" combine --quiet &&
        "$bin/coverage" report --fail-under=100
}
core_tests() { part core measured; }

# Three processes, because many of these tests wait. They do not run beside Spark, which would make tests that wait
# for processes and leases time out.
other_tests() {
    part others "$bin/python" -m pytest -q -n 3 --dist worksteal --durations=10 "${core[@]/#/--ignore=}" \
        tests/unit tests/behaviour tests/properties tests/model tests/acceptance tests/browser
}

# Each has its own JVM, and waits for it much of the time.
table_tests() { part tables "$bin/python" -m pytest -q --durations=10 tests/integration; }
pipeline_tests() { part pipelines "$bin/python" -m pytest -q --durations=10 tests/pipelines; }

beside core_tests static_checks
other_tests
beside table_tests pipeline_tests
echo "$(paste -sd, "$logs/times" | sed 's/,/, /g'), total $((SECONDS / 60)) min $((SECONDS % 60)) s"
