# make demo        set up and run the whole path on scikit-learn's digits
# make test        set up and run lint, types, import contracts and tests
# make test-cuda   set up and run every test that has a device on CUDA
# make notebooks   execute those of the documentation again
# make docs        set up and build the documentation site; a warning is an error
# Everything goes into .venv and build; remove them to begin anew.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
DEMO := build/demo
ROOMS := common embed release generate evaluate

.PHONY: setup test lint tree types imports pytest test-cuda notebooks docs demo clean

# Types and imports are checked beside the tests: what checks them has use of one core only.
test: lint
	$(MAKE) -j2 pytest imports types

setup: $(READY)

# Of all that pip installs a fifth is ever loaded, so that is compiled rather than everything; by
# loading it, with what dpntk itself loads only where it is needed.
LATE := autodp.dp_bank dp_accounting.pld.pld_privacy_accountant pyarrow.csv pyarrow.parquet \
	scipy.optimize sklearn.datasets
define LOAD_ALL
import importlib, pkgutil, dpntk
modules = [module.name for module in pkgutil.walk_packages(dpntk.__path__, "dpntk.")]
for name in [*"$(LATE)".split(), *modules]:
    if not name.endswith("__main__"):
        importlib.import_module(name)
endef
export LOAD_ALL

# The constraints pin what the checks are known to pass with, torch above all, and a pip that needs
# half the time of the one that comes with Python 3.11.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dpntk needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -c constraints.txt pip
	$(INSTALL) --no-compile -c constraints.txt -e '.[dev]'
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -W ignore -c "$$LOAD_ALL"
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The rooms lie at the root but are named dpntk.*: links show those who check them the tree that the
# installed package has.
tree:
	mkdir -p build/typed/dpntk
	for room in $(ROOMS); do ln -sfn ../../../$$room build/typed/dpntk/$$room; done
	for file in dpntk/*.py; do ln -sfn ../../../$$file build/typed/$$file; done

types: $(READY) tree
	MYPYPATH=build/typed $(BIN)/mypy -p dpntk
	MYPYPATH=build/typed $(BIN)/mypy tests benchmarks examples

imports: $(READY) tree
	cd build/typed && ../../$(BIN)/lint-imports --config ../../pyproject.toml

# Tests begin many processes: what Python compiles for one of them is kept for the next.
pytest: export PYTHONDONTWRITEBYTECODE :=
pytest: $(READY)
	$(BIN)/pytest -n auto --dist worksteal

# Without a card it says so and runs nothing; DEVICE=cpu runs the same tests on the processor.
test-cuda: DEVICE := cuda
test-cuda: $(READY)
	@if $(BIN)/python -c 'import sys, torch; torch.zeros(1, device=sys.argv[1])' $(DEVICE) 2> /dev/null; \
	then DPNTK_DEVICE=$(DEVICE) $(BIN)/pytest -m device; \
	else echo "test-cuda: nothing was run: torch $$($(BIN)/python -c 'import torch; print(torch.__version__)') finds no CUDA device here"; fi

notebooks: $(READY)
	for notebook in docs/examples/*.ipynb; do $(BIN)/python docs/examples/execute.py $$notebook; done

docs: $(DOCS_READY)
	$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/docs
	@echo "documentation: build/docs/index.html"

$(DOCS_READY): $(READY)
	$(INSTALL) -c constraints.txt -e '.[docs]'
	touch $@

# The demo's signing key stays in its own folder.
demo: export XDG_CONFIG_HOME = $(abspath $(DEMO))/config
demo: $(READY)
	rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(BIN)/python benchmarks/material/digits.py $(DEMO)/digits
	$(BIN)/dpntk embed $(DEMO)/digits --classes 10 -o $(DEMO)/embedding.h5
	$(BIN)/dpntk release $(DEMO)/embedding.h5 --eps 1 -o $(DEMO)/release.h5
	$(BIN)/dpntk generate $(DEMO)/release.h5 -o $(DEMO)/synthetic
	$(BIN)/dpntk evaluate $(DEMO)/synthetic --test $(DEMO)/digits --baseline $(DEMO)/digits -o $(DEMO)/evaluation.json
	@echo "preview: $(DEMO)/synthetic/preview.png"

clean:
	rm -rf build .mypy_cache .pytest_cache .ruff_cache
