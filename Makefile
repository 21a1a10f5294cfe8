# make demo   the main job end to end, in its own virtual environment; demo-mvpbench and so on for the other benchmarks
# make test   the whole suite, as CI runs it
# make lint   ruff and mypy
# make bench  the benches, and the README's table of them (ten minutes, on a quiet machine)

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: demo-mt_video_bench

demo-%: .venv/installed
	$(BIN)/python -m utils.demo $*

test: .venv/installed lint
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m utils.bench --save utils/bench/results.json
	$(BIN)/python -m utils.readme

.venv/installed: setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -e '.[test,lint]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
