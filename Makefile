# Two commands do everything: `make demo` and `make test`. Python 3.11+, Java 17 or 21 and make are all they need.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
PIN = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-scale test-integrations fuzz venv java check fix step-types commands api-docs settings-docs ways vendor screenshots docs bench bench-playback lock sbom audit clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: venv java ## Run the main job: one pipeline with a lookback and incrementally
	@$(BIN)/calve demo

test: venv java ## Run everything that CI runs: lint, types, layers, docs, tests
	@bash scripts/test.sh

test-all: venv java ## Run the whole matrix: both databases, all table formats, many more examples; takes hours
	@CALVE_TEST_ALL=1 bash scripts/test.sh

test-scale: venv java ## Kill parts of a whole installation at random until each place was struck EACH times; not in CI
	@$(BIN)/python -m tests.scale --each $(or $(EACH),20) $(if $(SEED),--seed $(SEED))

test-integrations: venv java ## Test signing in at a real Keycloak, which Maven downloads into .cache (159 MB); not in CI
	@$(BIN)/python -m pytest -q tests/keycloak

fuzz: venv ## Mutate the metadata of tables until stopped (SEED=1 CASES=0); failures are printed with their seed
	@$(BIN)/python -m tests.fuzz.lake $(or $(SEED),$(shell date +%s)000) $(or $(CASES),0)

venv: $(STAMP) ## Create .venv from requirements.lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "calve needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -oE '^uv==[0-9.]+' requirements.lock)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

java: venv
	@$(BIN)/calve doctor --only java

check: venv ## Check lint, types and layers only
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

fix: venv ## Apply the automatic fixes of ruff
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

step-types: venv ## Generate the stub of the DSL and the tables of the reference page from the step types
	@$(BIN)/python scripts/step_types.py

commands: venv ## Generate the reference page of the commands from their help
	@$(BIN)/python scripts/commands.py

api-docs: venv ## Generate the routes and the GraphQL schema in their reference pages
	@$(BIN)/python scripts/api_docs.py

settings-docs: venv ## Generate the tables in the reference of the settings from their docstrings
	@$(BIN)/python scripts/settings_docs.py

ways: venv ## Draw the pictures of the page about the architecture from its blocks
	@$(BIN)/python scripts/ways.py

vendor: venv ## Fetch the third-party scripts of the web UI that vendor.json lists; needs npm
	@$(BIN)/python scripts/vendor.py

screenshots: venv ## Take the screenshots of the web UI for the documentation; needs chromium
	@$(BIN)/python scripts/screenshots.py

docs: venv ## Build the documentation into site/
	@$(BIN)/zensical build --strict

bench: venv java ## Measure capture, the engine and the server against their peers, expressions, and the start of calve
	@$(BIN)/python bench/startup.py
	@$(BIN)/python bench/language.py
	@$(BIN)/python bench/engine.py
	@$(BIN)/python bench/server.py
	@$(BIN)/python bench/pages.py
	@$(BIN)/python bench/triggers.py
	@$(BIN)/python bench/capture.py
	@$(BIN)/python -m bench.change_cost --most 20000
	@$(BIN)/python bench/spark_step.py
	@$(BIN)/python -m bench.lakes

bench-playback: venv java ## Measure what incremental processing saves at two million events a day; takes half an hour
	@$(BIN)/python bench/playback.py

lock: venv ## Pin the newest versions that fit pyproject.toml
	@$(PIN) --upgrade --all-extras --group dev --group docs --output-file requirements.lock pyproject.toml
	@$(PIN) --extra postgres --extra kubernetes --constraint requirements.lock --output-file deploy/requirements.lock \
		pyproject.toml
	@echo hatchling | $(PIN) --constraint requirements.lock --output-file deploy/build.lock -

sbom: venv ## Write a bill of materials to dist/calve.cdx.json (CycloneDX)
	@$(BIN)/python scripts/sbom.py

audit: venv ## Check requirements.lock for known vulnerabilities; needs the internet
	@$(BIN)/python scripts/audit.py

clean: ## Remove everything that make created
	@rm -rf .venv .calve/demo .cache/keycloak dist site bench/.peers
