# Words people try. Everything happens in .venv; nothing else on the machine is touched.

python = .venv/bin/python
product = .venv/.product
stamp = .venv/.setup
# How many processes run the tests; `make test workers=0` starts none.
workers = auto
# What `make test FAST=1` runs, with few examples: the pure parts, and one path through each door.
fast = tests/core tests/config tests/contracts tests/edits tests/doors \
	tests/e2e/test_turn.py tests/e2e/test_written_client.py tests/cli/test_run.py \
	"tests/cli/test_terminal.py::test_a_question_is_answered_with_a_key" \
	"tests/clients/test_emacs.py::test_ert[magy-real-server-reads-and-edits-the-live-buffer]"
# What `make check` runs whole; `make test CHECKED=1`, right after it, does not run that again.
checked = tests/test_architecture.py tests/test_rooms.py tests/test_docs.py tests/test_docs_names.py \
	tests/clients/test_emacs_style.py
# How often `make chaos` kills.
kills = 1000
# How many cases `make interleavings` has.
cases = 10000

# Some machines set it. What is imported by a thousand processes would be compiled by each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL = help
.PHONY: help setup demo check compile test chaos interleavings bench docs screenshots requirements vscode extension clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(stamp) ## make .venv with everything Magy and its tests need

$(stamp): pyproject.toml scripts/setup
	@scripts/setup tests
	@touch $(product) $(stamp)

$(product): pyproject.toml scripts/setup
	@scripts/setup
	@touch $(product)

demo: $(product) ## watch an agent do a whole task, in a project made for it; no key needed
	.venv/bin/magy demo

check: setup ## format, lint, types, architecture, fresh documents: in seconds
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(python) -m pytest $(checked)

compile: ## byte-compile the Emacs client in place, without a warning
	cd clients/emacs && emacs -Q --batch -L . --eval '(setq byte-compile-error-on-warn t)' \
		-f batch-byte-compile *.el

test: setup ## all tests, those left out for want of an editor named; FAST=1, THOROUGH=1: fewer, more
	$(strip $(if $(FAST),EXAMPLES=brief) $(python) -m pytest -n $(workers) --dist worksteal \
		$(if $(FAST),$(fast)) \
		$(if $(CHECKED),$(addprefix --ignore=,$(checked))))

chaos: setup ## kill the server 1,000 times while a tree of agents is at work
	$(python) -m tests.chaos --kills $(kills)

interleavings: setup ## 10,000 times, type while Magy edits, decides, undoes, rewrites and runs commands
	$(python) -m tests.interleavings --cases $(cases)

bench: setup ## how fast it is
	$(python) -m bench

docs: setup ## renew the generated pages
	$(python) -m scripts.generate_docs
	$(python) -m tests.llm.matrix --write

screenshots: setup ## take the pictures of the guides of Emacs, Neovim and VS Code again
	$(python) scripts/screenshots.py
	$(python) scripts/screenshots_neovim.py
	$(python) scripts/screenshots_vscode.py

requirements: setup ## what the tests show of docs/requirements.md, and what no test shows
	$(python) -m scripts.requirements

# npm takes what the lock file says. It needs Node 20 or newer.
vscode: extension ## check, test and build the VS Code extension: clients/vscode/magy.vsix
	cd clients/vscode && npm run check && npm test

extension:
	cd clients/vscode && npm ci && npm run package
	@size=$$(wc -c < clients/vscode/magy.vsix); \
	[ $$size -lt 1000000 ] || { echo "magy.vsix has $$size bytes, and may have 1,000,000."; exit 1; }

clean: ## remove what was built, caches and .venv
	rm -rf clients/vscode/node_modules clients/vscode/out clients/vscode/*.vsix
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name .git -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -type d \
		-exec rm -rf {} +
	find clients -name '*.elc' -delete
