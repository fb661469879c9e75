# make demo   sets up an environment, captures the example for this CPU and for a TPU v5e, shows and reports it
# make test   sets up the tested stacks and runs everything: linters, types, tests, browser tests

PYTHON ?= python3
DEMO := .venv-demo
MAIN := .venv
NEXT := 3.12 3.13
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_ROOT_USER_ACTION = ignore

.PHONY: demo test test-main test-next lint types chromium clean

demo: $(DEMO)/ready
	@HLOTRACE=$(DEMO)/bin/hlotrace .ci/demo

test: lint types test-next test-main

lint: $(MAIN)/ready
	$(MAIN)/bin/ruff check .
	$(MAIN)/bin/ruff format --check .

# Type checkers cannot follow an editable install's import hook: an installed copy is checked.
types: $(MAIN)/ready
	rm -rf build/types && $(MAIN)/bin/pip install -q --no-deps --target build/types .
	cd build/types && ../../$(MAIN)/bin/mypy --config-file ../../pyproject.toml -p hlotrace

test-main: $(MAIN)/ready chromium
	HLOTRACE_OTHER_PYTHON=$$(ls -d $(NEXT:%=$(CURDIR)/.venv-%/bin/python) 2>/dev/null | head -1) \
	  $(MAIN)/bin/pytest $(PYTEST_ARGS)

# The newer jax needs Python 3.12 or newer; what meets jax and its dumps is tested on each that is here.
NEXT_TESTS := tests/test_capture_child.py tests/test_hlo_text_agreement.py tests/test_hlo_proto.py tests/test_flops.py
test-next: $(addprefix test-next-,$(NEXT))
test-next-%: $(MAIN)/ready
	@if python=$$(.ci/find-python $*); then \
	  $(MAKE) --no-print-directory .venv-$*/ready NEXT_PYTHON=$$python && \
	  .venv-$*/bin/pytest $(NEXT_TESTS) $(PYTEST_ARGS); \
	else echo "no Python $* here: the newer jax is not tested on it"; fi

chromium:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "Chromium could not be installed: browser tests will be skipped"

$(DEMO)/ready: pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/pip install -q -e '.[tpu]'
	touch $@

$(MAIN)/ready: pyproject.toml
	$(PYTHON) -m venv $(MAIN)
	$(MAIN)/bin/pip install -q -e '.[dev,xprof]'
	touch $@

.venv-3.%/ready: pyproject.toml
	$(NEXT_PYTHON) -m venv .venv-3.$*
	.venv-3.$*/bin/pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(DEMO) $(MAIN) $(NEXT:%=.venv-%) build demo *.egg-info
