# Every target sets up what it needs: a virtual environment in .venv, with the versions of constraints.txt.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Installs programs beside Python that are missing, where we may, from Debian's packages.
TOOLS := $(BIN)/python -m tests.tools
# Compiled kernels and tool caches live here, so that a clone stays clean.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba
# Tests start hundreds of Python processes: none should have to compile what another has.
unexport PYTHONDONTWRITEBYTECODE

BENCHES := bench-wire bench-json bench-startup bench-install bench-broker bench-placement bench-heartbeats bench-isolation bench-groups bench-client bench-pipeline bench-nexmark bench-processors bench-versions bench-queues bench-test-driver bench-restore bench-memory bench-driver bench-console
.PHONY: help setup demo tour test test-long test-fresh test-images lint types format bench $(BENCHES) simulate availability chaos scale cluster docs docs-serve links dist smoke clean

help: ## List the targets
	@awk -F ':.*## | := | ## ' '/^[a-z-]+:.*##/ {printf "  make %-16s %s\n", $$1, $$2} \
	/^AREA_/ {sub("AREA_", "test-", $$1); printf "  make %-16s Tests of %s: %s\n", $$1, $$3, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Virtual environment and packages

$(READY): scripts/setup pyproject.toml spark/pyproject.toml constraints.txt
	@scripts/setup $(VENV)
	@touch $@

# More options: make demo DEMO="--records 50000 --keep"
demo: $(READY) ## A streams application on a year of flights, through a crash, beside a batch job
	@$(TOOLS) java
	@$(BIN)/kohort demo --cache .cache --directory .cache/demo $(DEMO)

tour: $(READY) ## A tour of the inspector, on real bytes
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/tour

# Many tests wait for servers, so there are more workers than cores. Those of the pipeline run beside the others, in two:
# each worker starts a Spark session, which waits for brokers half of its time, and keeps a file's tests together. Files
# come by name, as those with few tests are the longest: they aren't to be the last.
WORKERS ?= $(shell expr $$(nproc) \* $(if $(and $(WITHOUT_SPARK),$(WITH_SPARK)),3,4) / 2)
SPARK_WORKERS ?= 2
TESTS ?= tests
CHOSEN = $(patsubst tests,tests tests/pipeline,$(filter tests tests/%,$(TESTS:/=)))
WITH_SPARK = $(filter tests/pipeline%,$(CHOSEN))
WITHOUT_SPARK = $(filter-out tests/pipeline%,$(CHOSEN))
# Options of pytest's are for both runs: TESTS="tests/client -k 'commit or fetch'". Values that are paths need a `=`:
# --deselect=tests/client/test_x.py. Quotes are passed through two shells.
OPTIONS = $(subst ",\",$(subst ','\'',$(filter-out tests tests/%,$(TESTS:/=))))
# What ran, and what was left out for a missing program, is counted over both runs. $(1) chooses tests.
define run_tests
	@rm -rf .cache/test
	@$(TOOLS) java kcat maven
	@scripts/each "$(BIN)/python -m tests.kernels" "$(BIN)/python -m tests.beside --live \
	$(if $(or $(WITHOUT_SPARK),$(if $(WITH_SPARK),,alone)),'$(BIN)/pytest -rfE -n $(WORKERS) --dist worksteal --ignore tests/pipeline $(1) --junit-xml .cache/test/all.xml $(strip $(OPTIONS) $(WITHOUT_SPARK))') \
	$(if $(WITH_SPARK),'$(BIN)/pytest -rfE -n $(SPARK_WORKERS) --dist loadfile --no-loadscope-reorder $(1) --junit-xml .cache/test/pipeline.xml $(strip $(OPTIONS) $(WITH_SPARK))')" \
	"$(BIN)/python -m tests.left_out .cache/test/*.xml"
endef

test: $(READY) ## The tests, in parallel: make test WORKERS=8 TESTS="tests/client tests/interop"
	$(call run_tests)

SHARE ?= 1/1
test-long: $(READY) ## More of them: crashes, restarts, groups of all clients, simulated worlds: make test-long SHARE=1/2
	@$(TOOLS) chromium systemd
	$(call run_tests,-m long --share $(SHARE))

# Parts of the tests, for quick turns of about two minutes at most: make test-log. CONTRIBUTING.md says what each folder shows.
AREA_wire := tests/protocol ## messages, record batches and their codec
AREA_log := tests/log ## a partition on disk
AREA_broker := tests/broker tests/isolation tests/security tests/testing ## the server and its handlers, who may do what, and brokers for tests
AREA_client := tests/client tests/faults ## consumer, producer, members and admin, without Apache Kafka
AREA_coordinator := tests/coordinator tests/simulation/test_simulation.py tests/simulation/streams tests/simulation/consumer_groups tests/simulation/share_partitions ## all group and transaction coordination, with its simulation
AREA_placement := tests/coordinator/placement tests/cli/test_place*.py ## who gets which task
AREA_streams := tests/streams tests/coordinator/streams tests/coordinator/modern tests/client/streams tests/simulation/streams ## streams groups, in coordinator and client
AREA_pipeline := tests/spark tests/simulation/queues ## the pipeline, without a Spark session
AREA_runtime := tests/spark/runtime tests/simulation/test_runtime*.py ## an instance's tasks and epochs, with whole instances simulated
AREA_plans := tests/pipeline/test_column_propagation.py tests/pipeline/test_jobs.py tests/pipeline/test_key_encoding.py tests/pipeline/test_program.py tests/pipeline/test_spark_internals.py ## programs and jobs on Spark
AREA_spark := tests/pipeline ## the pipeline on Spark, with whole applications: five minutes
AREA_cli := tests/cli tests/console tests/schema_registry ## the command and the console
AREA_interop := tests/interop ## other clients and Apache Kafka: three minutes
AREA_house := tests/test_*.py tests/fresh tests/chaos/test_*.py tests/deploy ## the Makefile, the documents, what deploys, and the tools of the tests
AREAS := $(patsubst AREA_%,%,$(filter AREA_%,$(.VARIABLES)))

$(AREAS:%=test-%): TESTS = $(AREA_$(@:test-%=%))
$(AREAS:%=test-%): $(READY)
	$(call run_tests)

test-%:
	$(error no tests of '$*': make test-AREA takes one of $(sort $(AREAS)))

lint: $(READY) ## ruff and the import contracts
	@scripts/each "$(BIN)/ruff format --check --quiet . || { echo some files aren\'t formatted: run make format; exit 1; }" \
	"$(BIN)/ruff check ." "PYTHONPATH=src $(BIN)/lint-imports"

types: $(READY) ## mypy, strict
	@$(BIN)/mypy

format: $(READY) ## Format and sort imports
	@scripts/each "$(BIN)/ruff format ." "$(BIN)/ruff check --fix ."

FIRST ?= 1000
SEEDS ?= 1000
LARGE ?= large
KIND ?= all
simulate: $(READY) ## More seeds of the simulation, and a large one: make simulate FIRST=1000 SEEDS=5000
	@scripts/each "$(BIN)/python -m tests.simulation --first $(FIRST) --seeds $(SEEDS) --kind $(KIND)" \
	"$(BIN)/python -m tests.simulation --first $(FIRST) --seeds 1 --size $(LARGE) --kind $(KIND)"

availability: $(READY) ## Availability of stateful tasks over a rolling restart and a scale-out, simulated
	@$(BIN)/python -m tests.simulation --availability

# In small: make bench BENCH=--quick
bench: ## All benchmarks
	@$(MAKE) --no-print-directory --keep-going $(BENCHES)

bench-wire: $(READY) ## Messages and record batches, beside kio
	@$(BIN)/python benchmarks/wire.py $(BENCH)

bench-console: $(READY) ## The console on a large cluster: pages, updates, memory, processor time
	@$(BIN)/python -m benchmarks.console $(BENCH)

bench-json: $(READY) ## JSON values to columns, beside pyarrow.json
	@$(BIN)/python -m benchmarks.json_columns $(BENCH)

bench-startup: $(READY) ## How long the command takes to start
	@$(BIN)/python benchmarks/startup.py $(BENCH)

bench-install: $(READY) ## What base and extras take on disk, and the time to a first test (the peer needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.install $(BENCH)

bench-broker: $(READY) ## The broker beside Apache Kafka (needs kcat and Maven with a JDK)
	@$(BIN)/python -m benchmarks.broker $(BENCH)

bench-placement: $(READY) ## Placement beside Kafka's StickyTaskAssignor (needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.placement $(BENCH)

bench-heartbeats: $(READY) ## Heartbeats of streams and consumer groups of 1,000 members (the peer needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.heartbeats $(BENCH)

bench-isolation: $(READY) ## Heartbeats beside requests that are much work (the peer needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.isolation $(BENCH)

bench-groups: $(READY) ## Consumer and share groups of Java's and librdkafka's members, beside Apache Kafka (needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.groups $(BENCH)

bench-client: $(READY) ## The client beside confluent-kafka and aiokafka (Apache Kafka needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.client $(BENCH)

bench-pipeline: $(READY) ## The pipeline beside Structured Streaming, Kafka Streams and quixstreams (needs Java; some Maven with a JDK)
	@$(BIN)/python -m benchmarks.pipeline $(BENCH)

bench-nexmark: $(READY) ## Nexmark's queries beside Structured Streaming and Kafka Streams (needs Java; peers Maven with a JDK)
	@$(BIN)/python -m benchmarks.nexmark $(BENCH)

bench-processors: $(READY) ## A function that keeps state by key, beside Spark's transformWithStateInPandas (needs Java)
	@$(BIN)/python -m benchmarks.processors $(BENCH)

bench-versions: $(READY) ## Joins as of a time, by how many versions keys have, without Spark
	@$(BIN)/python -m benchmarks.pipeline.versions $(BENCH)

bench-test-driver: $(READY) ## The test driver's steps, program by program (needs Java)
	@$(BIN)/python -m benchmarks.driver_steps $(BENCH)

bench-queues: $(READY) ## Work queues with 1, 2 and 4 workers, beside a stream and librdkafka's share consumer (needs Java)
	@$(BIN)/python -m benchmarks.queues $(BENCH)

bench-restore: $(READY) ## Restoring a store of 5 million keys, and restarts, beside Kafka Streams (the peer needs Maven with a JDK)
	@$(BIN)/python -m benchmarks.restore $(BENCH)

bench-memory: $(READY) ## What an instance of the pipeline has in memory at rest, and where (needs Java and Maven with a JDK)
	@$(BIN)/python -m benchmarks.pipeline.resting $(BENCH)

bench-driver: $(READY) ## What an instance's driver can do for 2, 16 and 64 cores of executors, without Spark
	@$(BIN)/python -m benchmarks.pipeline.driving $(BENCH)

ROUNDS ?= 20
PROGRAM ?= flights
FAULTS ?= tests/spark/runtime/test_faults.py tests/spark/state
chaos: $(READY) ## The pipeline under fire: instances killed and paused, the broker restarted: make chaos ROUNDS=20 PROGRAM=flights|orders|jobs
	@$(TOOLS) java
	@scripts/each "KOHORT_ALL_FAULTS=1 $(BIN)/pytest -n $(WORKERS) $(FAULTS)" \
	"$(BIN)/python -m tests.chaos --rounds $(ROUNDS) --program $(PROGRAM)"

scale: $(READY) ## The pipeline scaled from one instance to three and back, with warm-ups
	@$(TOOLS) java
	@$(BIN)/python -m tests.chaos.scale

cluster: $(READY) ## The pipeline on a Spark standalone cluster of two workers
	@$(TOOLS) java
	@$(BIN)/python -m tests.chaos.cluster

# A part of it: make test-fresh FRESH="--systems trixie --runs test --tests tests/client"
test-fresh: $(READY) ## make demo and make test in empty roots of Debian 12 and 13; an hour (needs root)
	@$(BIN)/python -m tests.fresh $(FRESH)

test-images: $(READY) ## The images of deploy/docker, built by podman and run: a few minutes (needs root)
	@$(BIN)/python -m tests.deploy.images

docs: $(READY) ## The site, in site/: guides, tutorials, and a reference out of the code; every link is checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build && echo "open site/index.html"

docs-serve: $(READY) ## The same on http://127.0.0.1:8000, built again when docs/ changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

links: $(READY) ## Every link that leads to others is asked whether it still does (needs the Internet)
	@$(BIN)/python -m tests.links

dist: $(READY) ## What is uploaded, in dist/: sdists and wheels of kohort and kohort-spark, checked and installed once
	@scripts/dist $(BIN)/python $(DIST)

smoke: $(READY) ## Every target that CI doesn't run otherwise, in small, so that none rots
	@$(TOOLS) java kcat maven
	@$(BIN)/python -m tests.smoke --share $(SHARE) $(SMOKE)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .cache dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
