"""What a person forbade or wants to be asked about is found however it is written."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.shell.deny_patterns import is_about
from magy_server.core.values import Facts, Grant, Resource

from .rules import command

EVERYTHING = [Grant(id="1", key="bash", pattern="*", scope="session")]
ALLOWS = Ruleset(source="a", keys={"bash": (Rule(pattern="*", action="allow", bare=True),)})

WRITTEN = r"""
kubectl delete *
    kubectl delete pod x
    kubectl -n prod delete pod x
    kubectl --namespace prod delete x
    kubectl --namespace=prod delete pod x
    kubectl --context c -n prod delete ns y
    kubectl -nprod delete pod x
    /usr/local/bin/kubectl -n prod delete pod x
    kubectl -v 9 -n p delete -f x.yaml
    timeout 5 kubectl -n prod delete pod x
    kubectl-delete pod x
    kubectl --as admin --as-group g delete pod x
    kubectl -n prod del*te pod x
    KUBECTL -n prod delete pod x
    kubectl -n prod delete
    'kubectl' -n 'prod' "delete" pod
    kube?tl -n prod delete pod x
    kubectl get pods; kubectl -n prod delete pod x
    if true; then kubectl -n p delete x; fi
git push *
    git push
    git push origin main
    git -C . push
    git -C sub push origin
    git -P push
    git --git-dir .git push
    git --git-dir=.git push
    git --work-tree . push origin
    git -c a.b=c push
    git -c a.b=c -C x push
    git --namespace n push origin
    git --no-pager -C . push
    git -p push
    git --bare push
    git --exec-path=/x push
    git --config-env a.b=C push
    git --literal-pathspecs push
    git --unknown x push
    git pus? origin
    git pu* origin
    git p[u]sh origin
    git * origin
    git [p]* origin
    git -C . pus? origin
    git push*
    /usr/lib/git-core/git-push origin
    git-push origin
    Git push
    git 'push' origin
    git pu\sh origin
    git pu''sh origin
    nice git -C . push
    (git -C x push)
    git -C x push || true
    git -C x push | cat
    git -C x push > log
    git --attr-source t push
    git -Cx push
git push * --force
    git push --force
    git push origin --force
    git push --force origin
    git push --forc
    git -C x push origin main --force
    git push origin --force --tags
git push --force*
    git push --force-with-lease
    git push origin --force-if-includes
git push -f *
    git push -uf origin
    git push origin -f
    git push -fu
    git push -qfu o
git reset --hard *
    git reset HEAD~1 --hard
    git reset --har HEAD
    git -C . reset -q --hard
    git reset --h*
npm publish *
    npm publish
    npm --prefix x publish
    npm --prefix=x publish
    npm -w a publish
    npm --workspace a --tag b publish
    npm --registry r publish
    npm --loglevel silent publish
    npm -C dir publish
    npm publi?h
    npm --otp 1 publish --access public
npm install -g *
    npm -g install x
    npm install x -g
    npm --loglevel x install -g y
    npm i?stall -g x
docker run *
    docker --context c run x
    docker -H tcp://h run x
    docker --host h run x
    docker -l debug run alpine
    docker --config d run alpine
    docker ru? alpine
    docker container run alpine
    docker --tlscacert a --tlscert b run x
    docker -c c run x
docker compose down *
    docker-compose down
    docker compose -f a.yml down
    docker compose --project-name p down
    docker --context c compose -p x down -v
    docker-compose -f a.yml down -v
pip install *
    pip --python p install x
    pip3 install x
    pip3.12 install x
    python -m pip install x
    python3 -m pip --quiet install x
    python3.12 -B -m pip install x
    pip --proxy p install x
    pip -q install x
    pip --cache-dir d install -r r.txt
    python3 -mpip install x
    .venv/bin/pip install x
    .venv/bin/python -m pip install x
    pip inst*ll x
    pip --log l install x
    pip --isolated install x
    python -I -m pip install x
cargo publish *
    cargo +nightly publish
    cargo --config a publish
    cargo -Z x publish
    cargo -C d publish
    cargo --color always publish
    cargo -q publish
    cargo-publish publish
    cargo publis?
rm -rf *
    rm -fr x
    rm -r -f x
    rm -f -r x
    rm -rfv x
    rm x -rf
    rm -vfr x
    /bin/rm -fr x
    rm -r x -f
    rm -Rrf x
    rm -rf -- x
    r? -rf x
    r[m] -rf x
    /bin/r* -rf x
rm *
    rm x
    /bin/rm x
    RM x
    ../bin/rm x
    r\m x
    ls && rm x
    echo $(rm x)
/usr/bin/rm *
    rm x
    /bin/rm x
terraform apply *
    terraform -chdir=x apply
    terraform -chdir x apply
    terraform apply -auto-approve
terraform * -auto-approve
    terraform apply -auto-approve x
    terraform -chdir=x destroy -auto-approve
helm uninstall *
    helm -n p uninstall x
    helm --kube-context c --namespace n uninstall x
aws s3 rm *
    aws --profile p s3 rm s3://x
    aws --region r s3 --debug rm s3://x
    aws s3 --quiet rm x
gh repo delete *
    gh repo -R x delete
    gh --repo x repo delete y
    gh repo delete --yes x
make deploy *
    make -C . deploy
    make V=1 deploy
    make all deploy
    make -f x deploy
    make -j 4 deploy
make deploy
    make -C . deploy
    make deploy V=1
    make deploy -j 4
    make build deploy
mvn deploy *
    mvn -q clean deploy
    mvn -f x.xml deploy
    mvn -pl a deploy
    mvn clean dep*
gradle publish *
    gradle -p x publish
    ./gradle clean publish
    gradle build publish
systemctl stop *
    systemctl --user stop x
    systemctl -H h stop x
    systemctl --host h stop x
chmod 777 *
    chmod -R 777 .
    chmod --recursive 777 x
    chmod 777 x
    chmod -v 77? x
apt-get remove *
    apt-get -y remove x
    apt-get -o a=b remove x
    apt-get --option a remove y
poetry publish *
    poetry -C d publish
    poetry --directory d publish
    poetry -P d publish
psql -c *
    psql -d x -c y
    psql x -c y
    psql -Uu -cdrop
curl * -o *
    curl -sSo x y
    curl x -o y
    curl -ofile x
    curl -L -o x y
curl --output *
    curl x --output=y
    curl --outp y x
    curl -s --output y x
go generate *
    go -C d generate ./...
    go generate ./...
    go gener* .
npm publish *
    npm publis
    npm pub
    npm -w a publ
    yarn npm publish
    npm.cmd publish
npm uninstall *
    npm un x
    npm rm x
    npm --prefix d remove x
pip uninstall *
    uv pip uninstall x
    uv -q pip uninstall x
make deploy *
    gmake deploy
    gmake -C x deploy
rm *
    grm x
    rm.exe x
git push *
    git.exe push
    GIT.EXE -C x push
kubectl delete *
    kubectl.exe -n x delete pod y
yarn npm publish
    yarn --cwd x npm publish
    yarn npm publish --tag a
find * -delete
    find . -name x -delete
    find -delete
echo 'a b' *
    echo 'a b'
    echo -n 'a b' c
    echo "a b" c
    echo a\ b
"""
"""A pattern, and below it lines that are to be found by it."""


def lines() -> Iterator[tuple[str, str]]:
    pattern = ""
    for line in WRITTEN.strip().splitlines():
        if line.startswith(" "):
            yield pattern, line.strip()
        else:
            pattern = line


LINES = list(lines())


def test_there_are_many() -> None:
    assert len(LINES) >= 200


@pytest.mark.parametrize(("pattern", "line"), LINES)
def test_however_it_is_written(pattern: str, line: str) -> None:
    for action in ("deny", "ask"):
        particular = Ruleset(source="b", keys={"bash": (Rule(pattern=pattern, action=action),)})
        decision = decide(command(line), "bash", "exec", [ALLOWS, particular])
        assert decision.action != "allow", decision.rule
    denies = Ruleset(source="b", keys={"bash": (Rule(pattern=pattern, action="deny"),)})
    answered = decide(command(line), "bash", "exec", [ALLOWS, denies], EVERYTHING, True)
    assert answered.action == "deny" or answered.firm


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git push *", "git commit -m push"), ("git push *", "git stash push -m x"),
        ("git push *", "git -C . log push"), ("git push *", "git add push"),
        ("git push *", "echo git push"), ("git push *", "git pull"), ("git push *", "git pull *"),
        ("git push", "git push origin"), ("git stash", "git stash list"), ("make", "make test"),
        ("make", "make -C sub test"), ("rm *", "rmdir x"), ("rm -rf *", "rm -r x"),
        ("rm -rf *", "rm -f x"), ("kubectl delete *", "kubectl -n prod get pods"),
        ("npm install -g *", "npm install x"), ("find * -delete", "find . -type d -empty"),
        ("git push * --force", "git push origin"), ("docker run *", "docker ps"),
        ("docker run *", "docker pull runner"), ("git push *", "git log -- *"),
        ("curl --output *", "curl --o x"), ("pip install *", "python -m pytest install"),
        ("echo 'a b' *", "echo a b"), ("rm *", "ls *"), ("cargo publish *", "cargo build"),
        ("npm publish *", "npm test"), ("npm uninstall *", "npm install x"),
        ("pip uninstall *", "uv pip list"), ("rm *", "gem x"), ("make deploy *", "gmake test"),
    ],
)  # fmt: skip
def test_what_is_something_else_is_not_meant(pattern: str, line: str) -> None:
    assert not any(is_about(pattern, r.argv, r.globbed) for r in command(line).resources)


WORDS = st.sampled_from(["a", "b", "-x", "--yy", "c d", "-n", "é"])


@given(st.lists(WORDS, min_size=1, max_size=4), st.data())
def test_more_options_never_hide_it(words: list[str], data: st.DataObject) -> None:
    pattern = " ".join(f"'{word}'" if " " in word else word for word in ["prog", *words]) + " *"
    longer = list(words)
    for _ in range(data.draw(st.integers(0, 4))):
        more = data.draw(st.sampled_from([["-k"], ["--kk", "v"], ["--kk=v"], ["v"]]))
        at = data.draw(st.integers(0, len(longer)))
        longer[at:at] = more
    assert is_about(pattern, ("prog", *longer))


def test_an_alias_is_known_by_both_names() -> None:
    seen = Resource(
        kind="exec", subject="git log", argv=("git", "log"), written=("git", "-C", "x", "l")
    )
    for pattern in ("git l *", "git log *"):
        rules = Ruleset(source="b", keys={"bash": (Rule(pattern=pattern, action="deny"),)})
        assert decide(Facts(resources=(seen,)), "bash", "exec", [ALLOWS, rules]).action == "deny"


@pytest.mark.parametrize(
    "line",
    ["git " + "x " * 16_000, "git " + "*" * 32_000, "git " + "-a=" * 10_000,
     "git " + "*x " * 9_000, "git " + "-a*=b " * 60, "git " + "[" * 32_000,
     "git " + "[a]" * 10_000, "x; " * 10_000, "git " + "a*" * 16_000],
)  # fmt: skip
def test_long_lines_are_held_against_many_rules_in_time(line: str) -> None:
    patterns = [f"git p{n}*h --force * x *" for n in range(100)] + ["git " + "*a" * 200 + "b *"]
    rules = tuple(Rule(pattern=pattern, action="deny") for pattern in patterns)
    seen = command(line)
    begin = time.process_time()
    decide(seen, "bash", "exec", [ALLOWS, Ruleset(source="b", keys={"bash": rules})])
    assert time.process_time() - begin < 5
