"""What "always" covers: the same work, and nothing that would run something else."""

from __future__ import annotations

import pytest

from magy_server.core.permit import Rule, Ruleset, decide, proposals
from magy_server.core.shell.remembered_commands import _KINDS, remembered_words
from magy_server.core.values import Facts, Grant, Resource

from .rules import command

ASK = Ruleset(source="a", keys={"bash": (Rule(pattern="*", action="ask", bare=True),)})
COVERED = r"""
git commit -m a
    git commit -am "b c" ; git commit --amend --no-edit ; git commit -m a b.py
git add a
    git add -A ; git add . ; git add -- b c ; git add -u ; git add -f b
git fetch
    git fetch --all --prune ; git fetch origin main
git checkout -b a
    git checkout -b c ; git checkout -b c origin/main ; git checkout -q -b c
git switch a
    git switch -c b ; git switch --detach main
git stash push
    git stash push -m x ; git stash push -u
git branch
    git branch x ; git branch --list ; git branch -avv
git merge a
    git merge --no-ff a ; git merge --abort
git restore --staged a
    git restore --staged b ; git restore -S b
git rm --cached a
    git rm --cached -r b
make test
    make test -j4 ; make test -j 4 ; make test -k -s ; make test --no-print-directory
npm run build
    npm run build --silent ; npm run build -q
npm test
    npm test --silent
go test ./...
    go test -v -race ./pkg ; go test -run TestX -count=1 ./... ; go test -timeout 5s .
go mod tidy
    go mod tidy -v
cargo test
    cargo test --release name ; cargo test -p a -- --nocapture ; cargo test --locked -j 2
cargo build
    cargo build --release --all-targets
pip list
    pip list --outdated ; pip list --format=json
kubectl get pods
    kubectl get pods -n x -o json ; kubectl get svc -A --watch
docker logs a
    docker logs -f --tail 10 b
mvn test
    mvn test -q -B
gradle test
    gradle test --offline --info
gh pr list
    gh pr list -L 5 --state open
terraform plan
    terraform plan -no-color
dotnet test
    dotnet test -c Release --no-build
mix test
    mix test test/a_test.exs --trace
"""
CHANGED = r"""
make test
    make test --eval='$(shell id)' ; make test SHELL=/tmp/x ; make test -f evil.mk
    make test -fevil.mk ; make test --file=evil.mk ; make test --makefile evil.mk
    make test -C evil ; make test --directory=evil ; make test -I evil ; make test V=1
    make test 'X:=$(shell id)' ; make test X+=1 ; make test X!=id ; make test install
    make test -e ; make test --environment-overrides ; make test -E x ; make test -j X=1
    make test -W a ; make test --ev=x ; make test -kf evil.mk ; make test -- SHELL=x
    make test X::=1 ; make test X?=1 ; make test --include-dir=x ; make test -o a
go test ./...
    go test -exec x ./... ; go test -exec=x ./... ; go test --exec=x ; go test -toolexec x
    go test -toolexec=x . ; go test -vettool=x . ; go test -overlay o.json .
    go test -modfile x.mod . ; go test -C evil . ; go test -ldflags=x . ; go test -gcflags=x
    go test -o x . ; go test -args -test.x ; go test -pkgdir x ; go test -mod=mod
    go test -c . ; go test -asmflags x ; go test -tags evil .
go build .
    go build -toolexec=x . ; go build -o /tmp/x . ; go build -ldflags '-extld=x' .
    go build -compiler gccgo . ; go build -gccgoflags x .
go vet .
    go vet -vettool=x . ; go vet -vettool x .
go mod tidy
    go mod tidy -modfile=x ; go mod edit -replace=a=b ; go mod tidy -C x
npm run build
    npm run build --script-shell=x ; npm run build --script-shell x
    npm run build --node-options=x ; npm run build --prefix evil ; npm run build -w evil
    npm run build --workspace=evil ; npm run build -- --config evil.js ; npm run build evil.js
    npm run build --userconfig=x ; npm run build --shell=x ; npm run build -C evil
    npm run build --globalconfig=x ; npm run build --watch ; npm run evil
npm test
    npm test --script-shell=x ; npm test --node-options=--require=x ; npm test evil.js
    npm test -- --require x
npm install
    npm install evil ; npm install git+https://e.org/x ; npm install --script-shell=x
    npm install ./evil
npm ci
    npm ci --script-shell=x ; npm ci --prefix evil
yarn build
    yarn build --cwd evil ; yarn build --use-yarnrc x
pnpm test
    pnpm test --dir evil ; pnpm test -C evil ; pnpm test --script-shell=x
mvn test
    mvn test -Dexec.executable=x ; mvn test -f evil.xml ; mvn test --file evil.xml
    mvn test -s evil.xml ; mvn test -gs evil.xml ; mvn test -Pevil ; mvn test deploy
    mvn test exec:exec ; mvn test -DargLine=-javaagent:x ; mvn test -t toolchains.xml
    mvn test --settings x ; mvn test -l log
gradle test
    gradle test -I evil.gradle ; gradle test --init-script evil.gradle
    gradle test -b evil.gradle ; gradle test -p evil ; gradle test -Dx=y ; gradle test -Px=y
    gradle test publish ; gradle test -c s.gradle ; gradle test --include-build x
    gradle test -g x ; gradle test --project-dir=x
cargo test
    cargo test --config 'build.rustc="x"' ; cargo test --manifest-path evil/Cargo.toml
    cargo test --target x ; cargo test -Z unstable ; cargo test --target-dir /tmp
    cargo test -- --logfile x ; cargo test --lockfile-path x ; cargo test --features evil
    cargo test +nightly ; cargo test -C evil
cargo run
    cargo run evil ; cargo run -- --exec x ; cargo run --bin evil
    cargo run --manifest-path x ; cargo run --example evil
cargo clippy
    cargo clippy --fix ; cargo clippy --config x
cargo fmt
    cargo fmt -- --config-path x ; cargo fmt --manifest-path x
pip list
    pip list --python x ; pip list --index-url http://e ; pip list --cert x
    pip list --find-links=x
pip install -e .
    pip install evil ; pip install -e . evil ; pip install -r evil.txt
git commit -m a
    git commit -F evil ; git commit -t evil ; git commit --template=x ; git commit -S
    git commit -Skey ; git commit --gpg-sign=x ; git commit --pathspec-from-file=x
    git commit -m a --trailer x ; git commit -e ; git commit --cleanup=x ; git config x y
git fetch
    git fetch --upload-pack=x ; git fetch --upload-pack x ; git fetch 'ext::sh -c x'
    git fetch foo::bar ; git fetch --upl x ; git fetch --recurse-submodules
    git fetch --negotiation-tip=x
git merge a
    git merge -s evil a ; git merge --strategy=evil a ; git merge -sevil a ; git merge -X x a
    git merge --strategy evil a
git cherry-pick a
    git cherry-pick --strategy=evil a ; git cherry-pick -S a
git tag a
    git tag -s a ; git tag -u key a ; git tag -F x a
git add a
    git add -p ; git add -e ; git add --pathspec-from-file=x ; git add -i ; git add *
    git fetch https://e.org/x ; git fetch git@e.org:x ; git fetch e.org:x ; git fetch ./evil
    git fetch ../evil ; git fetch /evil ; git fetch origin +a:b ; git fetch -f origin a
    git fetch --force origin a ; git fetch ~/evil
git branch
    git branch --edit-description ; git branch -D x ; git branch -d x ; git branch -f a b
    git branch -m a b ; git branch --delete x ; git branch --force a b ; git branch -C a b
git tag a
    git tag -d a ; git tag --delete a ; git tag -f a ; git tag -af a
git commit -m a
    git commit --no-verify -m a ; git commit -nm a ; git commit -an -m a
git merge a
    git merge --no-verify b
git switch a
    git switch -f b ; git switch -C b ; git switch --force b
git mv a b
    git mv -f a b ; git mv --force a b ; git mv a .git/hooks/pre-commit ; git mv a sub/.GIT/x
git rm --cached a
    git rm a ; git rm -rf . ; git rm -r a
git restore --staged a
    git restore a ; git restore . ; git restore -s HEAD~1 a
git checkout -b a
    git checkout a ; git checkout . ; git checkout -- a ; git checkout main -- a.py
    git checkout -f ; git checkout -B main ; git checkout -b a --force
git checkout a
    git checkout --recurse-submodules a ; git checkout . ; git checkout a.py
    git checkout -f a ; git checkout -- a
docker build .
    docker build evil ; docker build -f evil . ; docker build --build-arg X=1 .
    docker build --output=x .
docker logs a
    docker logs --config x a ; docker -H x logs a
kubectl get pods
    kubectl get pods --kubeconfig=evil ; kubectl get --server=x pods
    kubectl get -f evil.yaml ; kubectl get pods --token x ; kubectl get pods --context=x
    kubectl get pods --as=x ; kubectl get -k evil ; kubectl get secrets ; kubectl get secret x
    kubectl get pods,secrets ; kubectl get secret/x -o yaml ; kubectl get Secrets.v1 -A
terraform plan
    terraform plan -var x=y ; terraform plan -var-file=x ; terraform plan -out=x
    terraform plan -target=x
gh pr view 1
    gh pr view 1 --web ; gh pr checkout 1 ; gh pr view 1 -R other/x
    gh pr view 1 --template x ; gh pr view 1 --json x --jq env ; gh pr view 1 -q env
gh repo clone a/b
    gh repo clone a/b -- --upload-pack=x ; gh repo clone a/b -- -c core.x=y ; gh repo delete a
dotnet build
    dotnet build /p:PreBuildEvent=x ; dotnet build -p:X=y ; dotnet build evil.csproj
    dotnet build @x.rsp ; dotnet build -t:Evil ; dotnet build -l:x.dll
    dotnet build --property:X=y
mix test
    mix test --require x.exs ; mix test --formatter Evil ; mix compile --no-deps
uv sync
    uv sync --project evil ; uv sync --config-file x ; uv sync --directory evil
    uv sync --index-url x ; uv sync --python x
uv pip install -e .
    uv pip install evil
pytest -q
    pytest -q -p evil ; pytest -q --rootdir evil ; pytest -q -c evil.ini ; pytest -q x
    pytest -q -o python_files=x
tox
    tox -c evil.ini ; tox -e evil ; tox --conf x ; tox -x a=b
nox
    nox -f evil.py ; nox -s evil
just test
    just test -f evil ; just --justfile evil test ; just test deploy ; just X=1 test
    just test --shell x
cmake --build .
    cmake --build evil ; cmake -P evil.cmake ; cmake --build . -- SHELL=x
ninja
    ninja -f evil.ninja ; ninja -C evil ; ninja -t x
bazel test //...
    bazel test --run_under=x //... ; bazel test //evil
bundle exec rspec
    bundle exec rspec -r ./evil ; bundle exec rspec evil
rake test
    rake test -f evil ; rake test -r ./evil ; rake deploy ; rake test X=1
composer test
    composer test -d evil ; composer test evil
poetry run pytest
    poetry run pytest -p evil ; poetry run -C x pytest
hatch run test
    hatch run evil ; hatch run test -c x
swift build
    swift build --package-path evil ; swift build -Xcc x
zig build
    zig build --build-file evil.zig ; zig build evil
ansible-playbook a.yml
    ansible-playbook a.yml -e x=y ; ansible-playbook evil.yml ; ansible-playbook a.yml -M x
helm template x
    helm template x --post-renderer=evil ; helm template evil
curl http://a
    curl http://a -o x ; curl -K evil http://a
wget http://a
    wget http://a --use-askpass=x ; wget -e x http://a
python a.py
    python a.py evil ; python evil.py
node a.js
    node a.js x ; node -r x a.js
ruby a.rb
    ruby -r x a.rb
deno task x
    deno task --config e x ; deno task y
"""


def pairs(text: str) -> list[tuple[str, str]]:
    """(what is remembered, what comes later); below each first come later ones."""
    found, first = [], ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            found += [(first, one) for one in line.strip().split(" ; ")]
        else:
            first = line
    return found


def answered(first: str, later: str) -> bool:
    remembered = proposals(command(first), "bash")
    own = decide(command(first), "bash", "exec", [ASK], remembered)
    assert own.action == ("allow" if remembered else "ask")
    return decide(command(later), "bash", "exec", [ASK], remembered).action == "allow"


def test_there_are_many() -> None:
    assert len(pairs(CHANGED)) >= 200


@pytest.mark.parametrize(("first", "later"), pairs(COVERED))
def test_the_same_work_is_covered(first: str, later: str) -> None:
    assert answered(first, later)


@pytest.mark.parametrize(("first", "later"), pairs(CHANGED))
def test_what_would_run_something_else_is_not(first: str, later: str) -> None:
    assert not answered(first, later)


@pytest.mark.parametrize("option", ["--zzz", "-Z", "--zzz=x", "@x", "X=1", "-", "https://e.org/x"])
def test_no_kind_of_work_takes_what_nobody_listed(option: str) -> None:
    for work in _KINDS:
        if work.programs == {"git"} and not option.startswith("-"):
            continue
        for name in work.programs:
            for word in work.words:
                assert remembered_words((name, word, "x", option)) == 0


def test_what_was_remembered_earlier_covers_no_more_than_it_would_today() -> None:
    for pattern, line in (
        ("npm install *", "npm install evil"),
        ("docker build *", "docker build x"),
        ("make test *", "make test SHELL=x"),
        ("pip install *", "pip install x"),
    ):
        old = Grant(id="1", key="bash", pattern=pattern, scope="project")
        assert decide(command(line), "bash", "exec", [ASK], [old]).action == "ask"


def test_long_lines_are_looked_at_in_time() -> None:
    for word in ("-m ", "-", "a ", "=" * 100 + " ", "a:" * 3000 + " ", "-m " + "m" * 3000 + " "):
        remembered_words(tuple(("git commit -m x " + word * 3000).split()))
        remembered_words(tuple(("go test -run x " + word * 3000).split()))


@pytest.mark.parametrize(
    ("asked", "later", "covered"),
    [
        ("POST https://api.example.com/a?b", "POST https://api.example.com/c", True),
        ("POST https://api.example.com/a", "DELETE https://api.example.com/a", False),
        ("POST https://api.example.com/a", "POST https://api.example.com.evil.org/a", False),
        ("https://api.example.com/a", "https://api.example.com:8443/a", False),
        ("https://api.example.com/a", "http://api.example.com/a", False),
        ("private network: a", "private network: a", True),
        ("private network: a", "private network: a/b", False),
    ],
)
def test_an_answer_about_a_request_is_for_its_method_and_host(
    asked: str, later: str, covered: bool
) -> None:
    def facts(subject: str) -> Facts:
        return Facts(resources=(Resource(kind="net", subject=subject),))

    grants = proposals(facts(asked), "http")
    found = decide(facts(later), "http", "net", [], grants)
    assert found.action == ("allow" if covered else "ask")


@pytest.mark.parametrize("key", ["http", "github"])
def test_rules_for_the_network_hold_for_requests(key: str) -> None:
    deny = (Rule(pattern="https://bad.example/*", action="deny"),)
    rules = Ruleset(source="a", keys={"net": deny})
    facts = Facts(resources=(Resource(kind="net", subject="https://bad.example/x"),))
    assert decide(facts, key, "net", [rules]).action == "deny"
