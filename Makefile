# SPDX-License-Identifier: MIT
#
# The front door. CMake does the building (CMakeLists.txt, CMakePresets.json); this file only names the
# doors. `make help` lists them.

PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# make test-all CONFIGS="tsan aarch64": just these. make test-all TESTED=1: make test has just passed, run what it left out.
CONFIGS ?=
TESTED  ?=
# make soak SECONDS=36000 PRESET=tsan; make fuzz SECONDS=600
SECONDS ?= 3600
PRESET  ?= release

RELEASE = build/release
cmake_configure = cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
cmake_build = cmake --build build/$(1) -j $(JOBS) --target $(2)

.PHONY: all lib demo test test-all bench check coverage format install uninstall soak fuzz clean help
.DEFAULT_GOAL := all

all: lib
	@$(call cmake_build,release,all examples)

lib:
	@tools/setup --look build
	@mkdir -p build && { $(call cmake_configure,release); }
	@$(call cmake_build,release,all)

demo:
	@tools/setup build
	@mkdir -p build && { $(call cmake_configure,release); }
	@$(call cmake_build,release,demo)
	@$(RELEASE)/demo/demo $(ARGS)

test:
	@tools/setup test
	@tools/test-all --jobs $(JOBS) --basic

test-all:
	@tools/setup test-all
	@tools/test-all --jobs $(JOBS) $(if $(TESTED),--rest) $(CONFIGS)

bench:
	@tools/setup bench
	@mkdir -p build && { $(call cmake_configure,release); }
	@bench/run $(ARGS)

check:
	@tools/setup check
	@tools/check --jobs $(JOBS)

coverage:
	@tools/setup test-all
	@tools/coverage --jobs $(JOBS) $(ARGS)

format:
	@tools/setup check
	@find src include tests examples bench demo -name '*.[ch]' -o -name '*.cc' 2>/dev/null | xargs clang-format -i

install: lib
	@tools/install put $(RELEASE) "$(PREFIX)" "$(DESTDIR)"

uninstall:
	@tools/install remove "$(PREFIX)" "$(DESTDIR)"

soak: SOAK = soak$(if $(ALLOCATOR),_$(ALLOCATOR)_malloc)
soak:
	@tools/setup test
	@mkdir -p build && { $(call cmake_configure,$(PRESET)); }
	@$(call cmake_build,$(PRESET),test_stress_$(SOAK))
	@SOAK_SECONDS=$(SECONDS) SOAK_EVERY=$${SOAK_EVERY:-10} build/$(PRESET)/tests/stress/$(SOAK) mixed_load

fuzz: SECONDS = 60
fuzz:
	@tools/setup test-all
	@mkdir -p build && { $(call cmake_configure,fuzz); }
	@$(call cmake_build,fuzz,tests-fuzz)
	@tools/fuzz build/fuzz $(SECONDS) $(ARGS)

clean:
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name installed -exec rm -rf {} +
	@rmdir build 2>/dev/null || true

help:
	@echo 'make            build the library and the examples (release)'
	@echo 'make demo       build and run the demo'
	@echo 'make test       everything gort promises, with gcc: release, debug, sanitizers; some minutes'
	@echo 'make test-all   that, and all other configurations; CONFIGS="tsan aarch64": just these'
	@echo 'make check      format, layers, sizes, thread-locals, forbidden calls, clang-tidy, exported symbols'
	@echo 'make coverage   which lines the tests run: build/coverage/index.html'
	@echo 'make format     let clang-format rewrite the sources'
	@echo 'make bench      benchmarks beside their Go twins'
	@echo 'make soak       mixed load under injected faults for SECONDS (3600); PRESET=tsan, asan-ubsan: other builds;'
	@echo '                ALLOCATOR=own: a malloc of the program'"'"'s own'
	@echo 'make fuzz       libFuzzer on everything that parses, SECONDS (60) each; ARGS="addr buf": just these'
	@echo 'make install    to PREFIX (/usr/local), under DESTDIR; the debug library goes to lib/gort-debug'
	@echo 'make uninstall  remove what make install put there; with the same PREFIX and DESTDIR'
	@echo 'make clean      remove build/, but for the records of what is installed'
	@echo
	@echo 'One configuration by hand: cmake --preset debug && cmake --build build/debug --target tests &&'
	@echo 'tools/test build/debug; cmake --list-presets names them all.'
