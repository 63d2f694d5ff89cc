# Two commands do everything: `make demo` and `make test`. Python 3.11+, Java 17 or 21 and make are all they need.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
PIN = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-integrations fuzz venv java check fix step-types commands api-docs settings-docs ways vendor screenshots docs bench bench-playback lock sbom audit clean

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: venv java ## Run the main job: a pipeline with a lookback and incrementally, side by side
	@$(BIN)/calve demo

test: venv java ## Everything CI runs: lint, types, layers, docs, all tests
	@bash scripts/test.sh

test-all: venv java ## The same with the whole matrix: both databases, all table formats, many more examples: hours
	@CALVE_TEST_ALL=1 bash scripts/test.sh

test-integrations: venv java ## Sign in at a real Keycloak, which Maven fetches into .cache (159 MB): minutes, not in CI
	@$(BIN)/python -m pytest -q tests/integrations

fuzz: venv ## Mutate the metadata of tables until stopped: SEED=1 CASES=0; what went wrong is printed with its seed
	@$(BIN)/python -m tests.fuzz.lake $(or $(SEED),$(shell date +%s)000) $(or $(CASES),0)

venv: $(STAMP) ## Make .venv with what requirements.lock pins

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "calve needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -oE '^uv==[0-9.]+' requirements.lock)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

java: venv
	@$(BIN)/calve doctor --only java

check: venv ## Lint, types and layers only
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

fix: venv ## Let ruff mend what it can
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

step-types: venv ## Write what follows from the step types: the stub of the DSL, the tables of the reference page
	@$(BIN)/python scripts/step_types.py

commands: venv ## Write the reference page of the commands from their help
	@$(BIN)/python scripts/commands.py

api-docs: venv ## Write the routes and the schema of GraphQL into their reference pages
	@$(BIN)/python scripts/api_docs.py

settings-docs: venv ## Write the tables of the reference page of the settings from their docstrings
	@$(BIN)/python scripts/settings_docs.py

ways: venv ## Draw the ways of the page about the architecture from their blocks
	@$(BIN)/python scripts/ways.py

vendor: venv ## Fetch the scripts of others that the web UI serves, as vendor.json lists them; needs npm
	@$(BIN)/python scripts/vendor.py

screenshots: venv ## Take the pictures of the web UI that the documentation shows; needs chromium
	@$(BIN)/python scripts/screenshots.py

docs: venv ## Build the documentation into site/
	@$(BIN)/zensical build --strict

bench: venv java ## Measure capture, the engine and the server against their peers, the language, and how long calve takes to start
	@$(BIN)/python bench/startup.py
	@$(BIN)/python bench/language.py
	@$(BIN)/python bench/engine.py
	@$(BIN)/python bench/server.py
	@$(BIN)/python bench/pages.py
	@$(BIN)/python bench/triggers.py
	@$(BIN)/python bench/capture.py
	@$(BIN)/python bench/spark_step.py

bench-playback: venv java ## Measure what incremental processing saves, at two million events a day: half an hour
	@$(BIN)/python bench/playback.py

lock: venv ## Pin the newest versions that fit pyproject.toml
	@$(PIN) --upgrade --all-extras --group dev --group docs --output-file requirements.lock pyproject.toml
	@$(PIN) --extra postgres --extra kubernetes --constraint requirements.lock --output-file deploy/requirements.lock \
		pyproject.toml
	@echo hatchling | $(PIN) --constraint requirements.lock --output-file deploy/build.lock -

sbom: venv ## Write what calve is made of to dist/calve.cdx.json, as CycloneDX
	@$(BIN)/python scripts/sbom.py

audit: venv ## Look for known vulnerabilities in what requirements.lock pins; needs the internet
	@$(BIN)/python scripts/audit.py

clean: ## Remove what make made
	@rm -rf .venv .calve/demo .cache/keycloak dist site bench/.peers
