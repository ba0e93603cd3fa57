# `make demo` and `make test` do everything on a fresh machine, in a virtual environment of their own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test fast nightly docs lint words mapped matrix mutants bench bench-check uncompile clean

demo: $(VENV)/agents
	$(BIN)/python examples/demo.py

# One worker per core; the tests of a file stay in one worker, since they share fixtures. Files are handed out in the
# order of tests/conftest.py, the longest first, so that no worker is left with one at the end.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test: $(VENV)/dev
	$(PYTEST)

fast: $(VENV)/dev
	$(PYTEST) -m "not slow and not learning and not programs and not nightly"

nightly: $(VENV)/dev
	$(PYTEST) -m nightly

# The documentation site, in build/docs. Nothing is fetched to build or to read it.
docs: $(VENV)/docs
	rm -rf build/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto -d build/doctrees docs build/docs
	$(BIN)/python .ci/check_site.py build/docs

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --offline --quiet .github/workflows
	@! git grep -nE '^(<{7}|>{7}) ' || { echo 'a merge was left half done' >&2; exit 1; }
	$(MAKE) --no-print-directory words mapped
	cd build/mapped && ../../$(BIN)/mypy --config-file ../../pyproject.toml

# Private words where the field has a term; docs/glossary.md has the terms.
words:
	$(PYTHON) .ci/words.py

# The import tree as it is installed, as links: type checkers and editors follow no package_dir.
mapped:
	@rm -rf build/mapped && mkdir -p build/mapped/memenvs
	@ln -s $(CURDIR)/memenvs/* $(CURDIR)/agents $(CURDIR)/wrappers build/mapped/memenvs/

# The fast and the slow tests on each supported Python that this machine has, with the oldest and the newest Gymnasium.
matrix:
	.ci/matrix

# Changes a module again and again, and lists the changes that its tests do not notice; see .ci/cosmic-ray.toml.
mutants: $(VENV)/dev
	@mkdir -p build
	sed 's|MODULE|$(MODULE)|; s|TESTS|$(TESTS)|' .ci/cosmic-ray.toml > build/mutants.toml
	$(BIN)/cosmic-ray init --force build/mutants.toml build/mutants.sqlite
	$(BIN)/cr-filter-operators build/mutants.sqlite build/mutants.toml
	$(BIN)/cosmic-ray exec build/mutants.toml build/mutants.sqlite
	$(BIN)/cr-report --surviving-only --show-diff build/mutants.sqlite

# Every benchmark, hours of a free core: make bench OUT=new.json; then make bench-check OLD=old.json NEW=new.json
OUT ?= benchmarks.json
bench: $(VENV)/dev
	$(BIN)/python benchmarks/all.py --out $(OUT)

bench-check: $(VENV)/dev
	$(BIN)/python benchmarks/all.py --compare $(or $(OLD),$(error OLD is the file to compare with)) $(or $(NEW),$(error NEW is the file to check))

# torch comes first and through the constraints, which say how to spare oneself gigabytes of CUDA libraries.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"memenvs needs Python 3.11 or newer, this is {v[0]}.{v[1]}; try: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "this Python has no venv; on Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch

$(VENV)/agents: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[agents]"
	@touch $@

$(VENV)/dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@ $(VENV)/agents

$(VENV)/docs: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@ $(VENV)/agents

# numba's cache of a function does not see changes in functions of other modules that it calls
uncompile:
	find memenvs agents wrappers -name '*.nb[ic]' -delete

clean: uncompile
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .matrix build dist *.egg-info
	rm -rf $(addprefix docs/,environments memories algorithms presets command_line api project)
