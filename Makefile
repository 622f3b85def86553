# Every target works in a fresh clone: it first brings .venv up to date, which is quick when nothing changed.
# KAFKAWIRE_COMPILE=off|hot|all: what is compiled. PYTHON: the interpreter (3.11 or newer) for .venv.

PYTHON ?= python3
KAFKAWIRE_COMPILE ?= hot
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready-$(KAFKAWIRE_COMPILE)
# what the demo runs with: what is installed already, else the package alone, interpreted
DEMO_READY := $(firstword $(wildcard $(VENV)/ready-*) $(VENV)/ready-demo)
INCIDENT := fixtures/captures/ck-group-range.pcap
STORM := fixtures/incidents/rebalance-storm.pcap.gz
PAGE ?= build/demo.html

# the tests start hundreds of processes: none but the first should compile the modules to bytecode
export PYTHONDONTWRITEBYTECODE :=

# inputs of an editable install: schemas, the generator, compiled modules
BUILT_FROM := pyproject.toml $(shell find codegen schemas kafkawire/capture kafkawire/client/producer kafkawire/primitives kafkawire/protocol kafkawire/records \
	kafkawire/spark/shuffle \
	-name '*.py' -o -name '*.c' -o -name '*.h' -o -name '*.j2' -o -name '*.json')

.PHONY: all-compiled bench bench-compare builds captures clean demo docs lint peers quick simulation soak test types wheel wheels

# incidents in recorded traffic: why a consumer group stood still, and what is wrong with another one
demo: $(DEMO_READY)
	@mkdir -p $(dir $(PAGE))
	@printf '\n$$ kafkawire summary %s\n\n' $(INCIDENT)
	@$(BIN)/kafkawire summary $(INCIDENT)
	@printf '\n$$ kafkawire groups %s\n\n' $(INCIDENT)
	@$(BIN)/kafkawire groups $(INCIDENT)
	@printf '\n$$ kafkawire report %s -o %s\n\n' $(INCIDENT) $(PAGE)
	@$(BIN)/kafkawire report $(INCIDENT) -o $(PAGE)
	@printf '\n$$ kafkawire diagnose %s\n\n' $(STORM)
	@$(BIN)/kafkawire diagnose $(STORM)
	@printf '\nIn %s, a consumer joined: the group consumed nothing for five seconds, and a commit of the other member failed.\n' $(INCIDENT)
	@printf 'The page with charts: %s\n' $(abspath $(PAGE))

test: $(READY)
	$(BIN)/python -m pytest -n 4 --dist loadgroup -m "not builds and not simulation" $(TESTS)

# tests that build packages, or start a cluster of processes
builds: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m builds $(TESTS)

# hundreds of seeds of the simulated clusters
simulation: $(READY)
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "simulation and not fuzz" $(TESTS)

# tests that need neither Java, Spark, other implementations nor chance, and are not slow (tests/markers.py): run it after each edit
quick: $(READY)
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not builds and not fuzz and not java and not peers and not simulation and not slow and not spark" $(TESTS)

# every fuzz target with SOAK times as many examples; then the C code under AddressSanitizer and UBSan, and compiled for the
# other platforms of wheels; then the schemas of
# all releases of Kafka, from jars that Maven fetches once, merged and compared with ours; the release of Kafka before the newest beside ours;
# then, with every message compiled,
# all tests of `make test` and the cases that it leaves out
SOAK ?= 50
soak: $(READY)
	KAFKAWIRE_SOAK=$(SOAK) $(BIN)/python -m pytest -n 4 --dist loadgroup -m "fuzz or simulation" $(TESTS)
	$(BIN)/python -m tests.sanitizers
	$(BIN)/python -m pytest tests/other_platforms.py
	$(BIN)/python -m tests.real.timeline
	KAFKAWIRE_KAFKA=4.3.1 $(BIN)/python -m pytest tests/real/test_responses.py tests/net/server/test_beside_kafka.py
	KAFKAWIRE_SOAK=2 $(MAKE) KAFKAWIRE_COMPILE=all test

# the documentation site with the Python API, in build/site, with pictures drawn anew; checks links, and opens a page in headless Chromium
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .ci/docs-requirements.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file .ci/mkdocs.yml
	$(BIN)/python -m docs.screenshots build/site/images
	.ci/check-docs build/site

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-compare: $(READY)
	@test -n "$(BASE)" || { echo "usage: make bench-compare BASE=revision"; exit 2; }
	$(BIN)/python -m benchmarks.compare $(BASE)

# the suites of kafka-python, franz-go's kgo and librdkafka, and calls of tools, at our broker and at an Apache Kafka, side by side;
# needs Java and Go, and Debian's apt-get source for librdkafka
peers: $(READY)
	$(BIN)/python -m tests.peers

# compares every capture with what other tools saw in it: found, missing, invented, in the wrong place
captures: $(READY)
	@$(BIN)/python -m tests.capture.report

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

# a build with every message compiled; then run the tests with KAFKAWIRE_COMPILE=all make test
all-compiled:
	$(MAKE) KAFKAWIRE_COMPILE=all $(VENV)/ready-all

wheel: $(READY)
	$(BIN)/python -m build --outdir dist

# builds, installs and tests a wheel for each CPython from 3.11 to 3.14 that is found; lists those not found
wheels: $(READY)
	@KAFKAWIRE_COMPILE=$(KAFKAWIRE_COMPILE) .ci/wheels $(BIN)/python dist

clean:
	rm -rf $(VENV) build dist kafkawire/messages benchmarks/results
	find kafkawire -name '*.so' -delete

# one stamp at a time: a build replaces the native modules of another mode
$(READY): $(BUILT_FROM)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	rm -f $(VENV)/ready-*
	KAFKAWIRE_COMPILE=$(KAFKAWIRE_COMPILE) \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench,dev]'
	touch $@

# development dependencies and the compiler come with $(READY), in the same environment
$(VENV)/ready-demo: $(BUILT_FROM)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	KAFKAWIRE_COMPILE=off $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report]'
	touch $@
