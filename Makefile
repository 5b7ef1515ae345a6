# Every target sets up what it needs in .venv; nothing else has to be installed but Python ≥ 3.11.
# On Windows run it from Git Bash, or from another shell of that kind.
VENV := .venv
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := $(VENV)/Scripts
export PYTHONUTF8 := 1
else
PYTHON ?= python3
BIN := $(VENV)/bin
endif
PEERS := .venv-peers
SITE := build/docs

# runs of days: a clone of its own at a commit that stays, so that work in this tree does not disturb them
EVIDENCE ?= ../rollin-evidence
EVIDENCE_COMMIT := 013807c826c62add553518e1ed3e6a59c14de1fc

MINUTES ?= 10

.PHONY: demo test test-fast fuzz browser lint format docs pages bench bench-sac bench-sac-avx2 \
	bench-scaling bench-learning bench-peers evidence evidence-collect clean

demo: $(VENV)/core
	$(BIN)/rollin demo

# the tests' own bytecode is kept even where the shell says not to: collecting them takes half the time
test test-fast: export PYTHONDONTWRITEBYTECODE :=

# three processes, because some tests wait for a cluster or a browser
test: $(VENV)/dev browser
	$(BIN)/python -m pytest -n 3 --dist loadgroup

# without those of tests/slow.txt: no runs of seconds, no browser, no cluster
test-fast: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

# changes of files and options at random; what goes wrong is written to build/fuzz, to be tried again
fuzz: $(VENV)/dev
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky docs $(SITE)
	@echo "Documentation: $(abspath $(SITE))/index.html"

# tables of the documentation, from the records in results
pages: $(VENV)/dev
	$(BIN)/python -m docs.pages

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.tabular
	$(BIN)/python -m benchmarks.envs

bench-sac: $(VENV)/dev $(PEERS)/ready
	$(BIN)/python -m benchmarks.sac --peers $(PEERS)/bin/python

# everybody kept to AVX2, on a machine that has more
bench-sac-avx2: $(VENV)/dev $(PEERS)/ready
	$(BIN)/python -m benchmarks.sac --peers $(PEERS)/bin/python --lanes 8

bench-scaling: $(VENV)/dev $(PEERS)/ready
	$(BIN)/python -m benchmarks.scaling --peers $(PEERS)/bin/python

# in the background at the lowest priority, as `evidence` below; goes on where it stopped
bench-learning: $(VENV)/dev $(PEERS)/ready
	@mkdir -p build
	@setsid sh -c 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$$@"' sh \
		$(BIN)/python -m benchmarks.learning --peers $(PEERS)/bin/python --jobs 2 \
		>>build/learning.log 2>&1 </dev/null & \
	echo "Learning: log in build/learning.log"

# all of them in turn, for a quiet machine
bench-peers: bench-sac bench-sac-avx2 bench-scaling
	$(BIN)/python -m benchmarks.learning --peers $(PEERS)/bin/python --jobs 2

# Starts in the background, or resumes; on Linux and macOS. As many runs side by side as there are
# cores, or fewer with taskset. Linux shares a core by sessions first, so that the lowest priority has
# to be that of the session. `antmaze-tuning` is not among them: a person decides by it.
evidence: $(EVIDENCE)/.venv/$(EVIDENCE_COMMIT)
	@cd $(EVIDENCE) && if pgrep -f "studies.antmaze run --out $$PWD/" >/dev/null; then \
		echo "Evidence: already running, see $$PWD/antmaze.log"; \
	else \
		$$(command -v setsid) sh -c \
			'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$$@"' sh \
			.venv/bin/python -m studies.antmaze run --out "$$PWD/runs/antmaze" \
			>>antmaze.log 2>&1 </dev/null & \
		echo "Evidence: runs in $$PWD/runs/antmaze, log in $$PWD/antmaze.log"; \
	fi

# by the code that made the runs, into the records of this tree
evidence-collect: $(VENV)/dev
	cd $(EVIDENCE) && .venv/bin/python -c "from pathlib import Path; from studies.antmaze import collect; \
		collect(Path('runs/antmaze'), Path('$(CURDIR)/results/antmaze'))"
	$(BIN)/python -m docs.pages

$(EVIDENCE)/.venv/$(EVIDENCE_COMMIT):
	test -d $(EVIDENCE)/.git || git clone --quiet --no-checkout . $(EVIDENCE)
	git -C $(EVIDENCE) fetch --quiet $(CURDIR)
	git -C $(EVIDENCE) checkout --quiet $(EVIDENCE_COMMIT)
	$(MAKE) -C $(EVIDENCE) $(VENV)/core
	touch $@

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

# a real browser for the tests of reports; without one, and the right to install it, they are skipped
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		command -v apt-get >/dev/null && \
		root=$$(test "$$(id -u)" = 0 || echo "sudo -n") && \
		$$root apt-get update -qq && \
		$$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			chromium >/dev/null; \
	} || echo "No Chromium here, and none could be installed: its tests will be skipped."

# one stamp per set of extras, made anew when pyproject.toml changes; with the robots, so that the
# README's commands work after `make demo`
$(VENV)/core: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --editable '.[mujoco]'
	touch $@

# PyTorch first, so that Stable-Baselines3 takes it as it is
$(VENV)/dev: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# what we compare with, apart from what we need: PyTorch first, so that the others take it as it is;
# SBX without its own demands, because it asks for a second build of one library
$(PEERS)/ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet torch==2.13.0
	$(PEERS)/bin/python -m pip install --quiet --no-deps sbx-rl==0.28.0
	$(PEERS)/bin/python -m pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(SITE) build/jax .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks studies docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
