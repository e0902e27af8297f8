# `make report` and `make test` do everything on a fresh machine with Python 3.10 or later.
PYTHON ?= python3
VERSION ?= 2.8.3
OUT ?= build/report-$(VERSION)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: report test lint benchmark reports gpu clean

report: $(VENV)/.installed
	@mkdir -p $(dir $(OUT))
	@$(BIN)/flashtracer report pypi:$(VERSION) -o $(OUT)

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

# The reports that the repository keeps; a test compares them with what the program writes now.
reports: $(VENV)/.installed-dev
	$(BIN)/python reports/generate.py

benchmark: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

gpu: $(VENV)/.installed-dev
	$(BIN)/python -m refkernel.gpu

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	@$(BIN)/python -m pip install --quiet --editable .
	@$(BIN)/python -m compileall -q tracer
	@touch $@

# The reference kernel's tests need PyTorch; its CPU build is enough and much smaller than the default one.
$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]' 'torch==2.13.0' numpy
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist
