# Two commands for a newcomer: `make demo` and `make test`. Everything else is for those who stay.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SHARED ?= ../shared

# What pip builds with is packaging/backend.py, which calls maturin.
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING = 1

# Tools keep what they download below HOME; where nothing can be written there, below target.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export UV_CACHE_DIR     := $(CURDIR)/target/uv
export npm_config_cache := $(CURDIR)/target/npm
endif

BUNDLE := python/headstack/report/bundle.js
ENGINE := python/headstack/report/engine.wasm.lzma

.PHONY: help demo test test-all environment module check bench validate vm-tests crash-stores mutants fuzz build site web \
	engine quick-engine dist clean

help:
	@echo "make demo      build, answer a question, write demo/curves.png, curves.html, results.json, results.parquet"
	@echo "make test      build and run what every change needs"
	@echo "make test-all  that and what is slow by nature; before a release"
	@echo "make check     formatters, linters, types"
	@echo "make bench     measure speed: prints a table and what changed, writes target/bench.json, appends to history/; 1 if a row fails"
	@echo "make validate  compare with real drives and fio, check power cuts; writes target/validate.json, appends to history/; takes hours"
	@echo "make vm-tests  what needs a kernel's drives and modules, in a virtual machine; needs qemu. TESTS='FILE...' for some"
	@echo "make crash-stores  real stores and file systems: known bugs found, promises held; as root. CASES='S1 G2' for some of them"
	@echo "make mutants   whether tests notice changes of the code; SAMPLE=30 SEED=1 FOLDERS=crates/result/src takes minutes, all days"
	@echo "make fuzz      properties with new random inputs, then each parser's fuzz target for a minute"
	@echo "make site      the documentation as a folder of pages: target/site"
	@echo "make web       the pages of reports and of the explorer, with its engine; needs Node, and Rust for WebAssembly"
	@echo "make dist      wheel and sdist for others, in dist/; needs Node"
	@echo "make clean     remove what was built"

$(BIN)/maturin:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headstack needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2' 'uv>=0.8'

# $(call install,EXTRAS,HOW): builds the package into the environment. Cargo knows what is out of date: unchanged code
# costs a second.
install = @echo "building headstack (minutes on two cores the first time)" && . $(BIN)/activate && \
	$(if $(shell command -v npm),,HEADSTACK_WITHOUT_REPORTS=1) maturin develop --uv --quiet --extras $(1) $(2)

# FAST is for use. QUICK builds soon and simulates fast: a first look. TESTED shares what the Rust tests build, with every
# assertion; `make build` replaces that module by the fast one.
FAST   := --release
QUICK  := --profile quick
TESTED := --features tested

build: $(BIN)/maturin web
	$(call install,plot,$(FAST))

# The pages of reports and of the explorer, as they ship. Without Node, everything but HTML works. QUICK_ENGINE=1 is for tests.
web: $(BUNDLE) $(if $(QUICK_ENGINE),quick-engine,engine)

$(BUNDLE): $(wildcard web/src/*) web/build.mjs web/package-lock.json
	@if command -v npm >/dev/null; then cd web && npm ci --silent && npm run --silent build; \
	else echo "no Node here: reports are not written as HTML"; fi

# The simulator in the explorer. Without Rust for WebAssembly, everything but that. Tests use one that is built sooner.
engine:
	@web/engine.sh web $(ENGINE)

quick-engine:
	@web/engine.sh web-quick $(ENGINE)

demo: $(BIN)/maturin $(BUNDLE)
	$(call install,plot,$(QUICK))
	$(BIN)/headstack demo -o demo

# Studies are carried out for their pictures: a minute or two. What is missing, such as the engine of the explorer, is said.
site: $(BIN)/maturin web
	$(call install,docs,$(FAST))
	$(BIN)/sphinx-build -q -W -b html docs target/site
	@echo "target/site/index.html"

test:
	@VENV=$(VENV) $(PYTHON) tests/run.py

test-all:
	@VENV=$(VENV) $(PYTHON) tests/run.py --all

# The environment holds everything that tests need; the module is the compiled part that they load.
environment: $(BIN)/maturin
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --requirements pyproject.toml --extra dev

module: environment
	$(call install,dev,$(TESTED))

check: $(BIN)/maturin $(BUNDLE)
	$(call install,dev,$(TESTED))
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	@if command -v npm >/dev/null; then cd web && npm run --silent check; fi

# Sweeps and predictions are measured through the package, which must be the fast one.
bench: $(BIN)/maturin web
	$(call install,dev,$(FAST))
	cargo run --release --quiet -p headstack-benches --bin speed

validate: $(BIN)/maturin web
	$(call install,dev,$(FAST))
	$(BIN)/pip install --quiet --disable-pip-version-check $(STORES)
	HEADSTACK_SHARED=$(abspath $(SHARED)) $(BIN)/python benches/validate.py

# Those whose bugs are known are of the versions that have them.
STORES := lmdb==3.0.0 plyvel-ci==1.5.1 rocksdict==0.3.29

# Tests that skip where the kernel lacks something skip nothing there. What the machine itself lacks is said (77).
TESTS := $(addprefix tests/python/test_,vm.py ublk.py passthrough.py zoned.py)

vm-tests: $(BIN)/maturin $(BUNDLE) quick-engine
	$(call install,dev,$(TESTED))
	@test -e $${HEADSTACK_VM_KERNEL:-target/vm/kernel}/vmlinuz || tests/vm/kernel.sh || true
	HEADSTACK_REQUIRE=kernel tests/vm/run.sh $(BIN)/pytest -p no:cacheprovider $(TESTS) || test $$? = 77

crash-stores: $(BIN)/maturin web
	$(call install,dev,$(FAST))
	$(BIN)/pip install --quiet --disable-pip-version-check $(STORES)
	PYTHONPATH=tests/python $(BIN)/python -m stores $(CASES)

mutants:
	$(BIN)/python tests/mutants/run.py $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(FOLDERS)

# For every Linux with glibc 2.17: zig links against its symbols. Nothing of ours needs more (crates/load/src/newer_calls.rs);
# Rust itself asks for no less.
dist: $(BIN)/maturin web
	rm -rf dist
	@test -f python/headstack/report/engine.wasm.lzma
	$(BIN)/pip install --quiet --disable-pip-version-check 'ziglang>=0.13'
	. $(BIN)/activate && maturin build --release --zig --compatibility manylinux2014 --out dist && maturin sdist --out dist
	@$(BIN)/python -m zipfile --extract dist/*.whl target/dist
	@if nm -D --undefined-only target/dist/headstack/_native.abi3.so | grep -vE ' [vw] |@(GLIBC|GCC)_| _?Py'; then \
	echo "glibc 2.17 has no such functions" >&2; exit 1; fi

fuzz: properties
	fuzz/run.sh 60

# `make test` tries the same inputs every time; here they are new. The seed is printed, and repeats a finding.
.PHONY: properties
properties: seed := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
properties:
	@echo "every property with PROPTEST_RNG_SEED=$(seed)"
	PROPTEST_RNG_SEED=$(seed) cargo test --workspace --quiet --no-fail-fast

clean:
	rm -rf target $(VENV) demo dist fuzz/target web/node_modules python/headstack/report/bundle.* python/headstack/report/explore.* \
	python/headstack/report/alive.* python/headstack/report/engine.wasm.lzma
