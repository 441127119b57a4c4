# iclbench: set-up and the usual jobs. Needs make and Python >= 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: quickstart test lint docs bench clean

quickstart: $(VENV)/installed
	$(BIN)/iclbench run \
	  --model least-squares-qr,gradient-descent,averaging,transformer,baseconv \
	  --task least-squares --recipe quick --seeds 3

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/cog --check README.md CONTRIBUTING.md docs/*.md

# Everything in the docs that a command prints.
docs: $(VENV)/installed-dev
	$(BIN)/python -m iclbench.records > docs/record.schema.json
	$(BIN)/cog -r README.md CONTRIBUTING.md docs/*.md

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
