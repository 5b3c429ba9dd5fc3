# Sluice: make run starts the demo, make test runs every test, make lint every linter.
# What each needs is installed first, and only if it is missing (scripts/setup).

SLUICE_LUAJIT ?= luajit
LUA_PATHS = ./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;
PYTHON = build/venv/bin/python

# Scenario of make bench, and QUICK=1 for its short form.
SCENARIO ?=
QUICK ?=

# Of make flame and make instructions: a revision to compare with. Of make flame: a file of stacks
# to draw instead.
COMPARE ?=
FOLDED ?=

# Of make bench-selftest: so many comparisons of a revision with itself.
SAME ?=

# Of make kill.
KILLS ?=
SEED ?=
# Files of tests on nginx that run at once: they wait half of the time. JOBS=0 is one process, as a debugger needs it.
JOBS ?= 3
# Of unit, nginx, store and lab: the files or folders to run instead of all; ARGS may name them as well.
ONLY ?=
named = $(or $(ONLY),$(filter test/%,$(ARGS)))
flags = $(if $(ONLY),$(ARGS),$(filter-out test/%,$(ARGS)))
# $(call pytest,FOLDERS,FLAGS): the tests of folders; the first one names the cache.
pytest = $(PYTHON) -m pytest -o cache_dir=$(CURDIR)/build/pytest/$(notdir $(firstword $(1))) --quiet $(2) $(flags) \
	$(or $(named),$(1)) $(written_down)
# A suite that has written its failures down ends well: scripts/check decides.
written_down = || [ -s "$$FAILED_TO" ]

.PHONY: help setup build prepare folder install run test long steady unit nginx ring store kill lab lint format deb bench bench-peers bench-gate bench-docs bench-report bench-selftest flame instructions docs platforms sanitize clean

help:
	@echo "make setup   install what is missing to run Sluice"
	@echo "make build   build the nginx module for the installed nginx, and the core for the command"
	@echo "make install  what is built into the system (DESTDIR=, PREFIX=/usr/local, SYSCONFDIR=/etc)"
	@echo "make run     run the gateway and a demo upstream in the foreground"
	@echo "make test    all tests: unit, ring, store, nginx and lab"
	@echo "make long    the long run: soaks at full size, fresh seeds, sanitizers, both Debians (hours)"
	@echo "make steady  the check RUNS=6 times beside LOAD=0 busy loops: test x failures"
	@echo "make unit    unit tests (ARGS=... goes to busted)"
	@echo "make nginx   tests that drive a real nginx (ARGS=... goes to pytest, JOBS=3 files at once)"
	@echo "make store   tests of the store: kills, power cuts, full disks"
	@echo "make ring    tests of the plain C (events' log, timers, core), without nginx"
	@echo "make sanitize  tests that drive nginx, with ASan and UBSan in the module (ARGS=..., JOBS=3)"
	@echo "make kill    kills workers under load (KILLS=2000 SEED=n)"
	@echo "make lab     tests of the bench runner"
	@echo "make lint    all linters"
	@echo "make format  bring Lua and Python into their format"
	@echo "make bench   SCENARIO=<name> [QUICK=1], or every scenario"
	@echo "make bench-gate      this change against what it is based on; stops one that is far slower"
	@echo "make bench-report    draws the history of full runs as a page"
	@echo "make bench-docs      writes the latest runs into README, docs/benchmarks.md and docs/figures.md"
	@echo "make bench-peers [QUICK=1]  beside Envoy and Caddy as well, logged and written into the same"
	@echo "make bench-selftest  does a comparison notice a build that is 3% slower? SAME=20: its false alarms"
	@echo "make flame   SCENARIO=<name> [COMPARE=<revision>]: where its CPU time goes, as a picture"
	@echo "make instructions [SCENARIO=<name>] [COMPARE=<revision>]: user-space instructions a request"
	@echo "make platforms  README on a bare Debian 12 and 13 (root; TESTS=all: the whole of make test there)"
	@echo "make deb     Debian packages of HEAD, built and tried on a bare Debian 12 and 13 (root): build/deb"
	@echo "make docs    write the generated pages again"

setup:
	@scripts/setup run

# The nginx module, for the installed nginx, and the core as a library, for the command; quick when
# nothing has changed. Everything generated goes to build/.
build: setup folder
	@scripts/build-module

folder:
	@mkdir -p build

# What is built, into a system (root) or a staging folder: DESTDIR, PREFIX=/usr/local, SYSCONFDIR=/etc.
install:
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" SYSCONFDIR="$(SYSCONFDIR)" scripts/install

run: build
	@scripts/run

test:
	@scripts/check test

# The long run: soaks at full size, fresh seeds, sanitizers, kills, both Debians with all tests, CPU
# times. Hours; it blocks nobody.
long: export LONG = 1
long: export TESTS = all
long: export SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d " ")
long:
	@scripts/check lint test sanitize kill platforms bench-gate bench-selftest

# The check RUNS times beside LOAD busy loops: which tests failed how often.
steady:
	@scripts/steady

# All that tests need.
prepare: build
	@scripts/setup run test bench flame

unit: build
	@scripts/setup run test
	LUA_PATH="$(LUA_PATHS)" busted --lua=$(SLUICE_LUAJIT) --output=test/unit/support/output.lua \
		$(flags) $(or $(named),test/unit test/plugins) $(written_down)

nginx: build
	@scripts/setup run test
	$(call pytest,test/nginx test/plugins,-n $(JOBS) --dist loadfile)

ring: setup
	$(MAKE) -C test/ring check
	$(MAKE) -C test/wheel check
	$(MAKE) -C test/core check

store: build
	@scripts/setup run test
	$(call pytest,test/store,-n $(JOBS) --dist loadfile)

# All that drives nginx, with AddressSanitizer and UBSan in the module; not part of make test.
sanitize: build
	@scripts/setup run test
	scripts/sanitize -n $(JOBS) --dist loadfile $(ARGS)

# Kills workers under load; not part of make test.
kill: build
	@scripts/setup run test
	cd test/nginx/support && ../../../$(PYTHON) kill_events.py $(if $(KILLS),--kills $(KILLS)) \
		$(if $(SEED),--seed $(SEED))
	$(MAKE) -C test/ring kill

lab: build
	@scripts/setup run test bench flame
	$(call pytest,test/bench)

lint: folder
	@scripts/setup lint
	@scripts/lint

format: folder
	@scripts/setup lint
	build/stylua/node_modules/.bin/stylua bench cli gateway lib plugins test
	build/venv/bin/ruff check --quiet --fix .
	build/venv/bin/ruff format --quiet .

bench: build
	@scripts/setup run bench
	python3 bench/run.py $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(filter-out 0,$(QUICK)),--quick)

# This change against what it is based on, by instructions (LONG=1: by CPU time, too).
bench-gate: build
	@scripts/setup run bench
	python3 bench/gate.py $(if $(filter-out 0,$(LONG)),--times)

# The history of full runs and the latest flame graphs as a page: build/bench/report/index.html.
bench-report: folder
	python3 bench/site_page.py

# The latest runs' tables and plots: README, docs/benchmarks.md, docs/figures.md, docs/plots.
bench-docs:
	python3 bench/figures.py

# The table that docs/benchmarks.md opens with, and README's: measured, logged, written.
bench-peers: build
	@scripts/setup run bench peers
	python3 bench/run.py --record $(if $(filter-out 0,$(QUICK)),--quick) \
		$(foreach name,plain plugins routes-1000 tls h2,--scenario proxy-$(name))
	python3 bench/figures.py

bench-selftest: build
	@scripts/setup run bench
	python3 bench/selftest.py $(if $(SAME),--same $(SAME))

flame: build
	@scripts/setup run bench flame
	python3 bench/flame.py $(if $(FOLDED),--folded $(FOLDED),--scenario $(SCENARIO)) \
		$(if $(COMPARE),--compare $(COMPARE))

instructions: build
	@scripts/setup run bench
	python3 bench/instructions.py $(if $(SCENARIO),--scenario $(SCENARIO)) \
		$(if $(COMPARE),--compare $(COMPARE))

docs: folder
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) cli/options/reference.lua > build/config.md
	mv build/config.md docs/config.md
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) cli/options/kong_reference.lua > build/kong-settings.md
	mv build/kong-settings.md docs/kong-settings.md
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) gateway/metrics/reference.lua > build/metrics.md
	mv build/metrics.md docs/metrics.md
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'io.write(require("scripts.docs.openapi").text())' > build/openapi.json
	mv build/openapi.json docs/openapi.json
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'require("scripts.docs.entities").write()'
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'require("scripts.docs.plugins").write()'
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'require("scripts.docs.answers").write()'
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'require("scripts.docs.sizes").write()'
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) -e 'require("scripts.docs.pdk").write()'
	@scripts/setup test
	LUA_PATH="$(LUA_PATHS)" $(SLUICE_LUAJIT) test/house/draw.lua

# README's promise on each Debian that it names, from nothing; minutes each.
platforms: folder
	@scripts/setup platforms
	TESTS=$(TESTS) scripts/platforms $(ARGS)

# Packages of HEAD for each Debian, from nothing; minutes each. ARGS=bookworm: one alone.
deb: folder
	@scripts/setup platforms
	scripts/deb $(ARGS)

clean:
	rm -rf build
