"""Takes the pictures of the Emacs guide: `make screenshots`.

A real Emacs in a window that nobody sees (it needs Emacs with a display, and Xvfb), a real server,
a scripted model. Each scene is brought about by keys, as a person would.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # for `tests`, which is not installed

from tests import guard  # noqa: E402
from tests.clients.driven import Driven, emacs, installed, letters, lisp, xvfb  # noqa: E402

IMAGES = TOP / "docs" / "clients" / "images"
SCREEN = "1400x1200"
THEMES = {"light": "modus-operandi", "dark": "modus-vivendi"}

CODE = '''\
"""Headers of messages."""

import re


def parse_header(line):
    name, _, value = line.partition(":")
    return name, value.split(";")[:-1]


def charset(fields, default="ascii"):
    for field in fields:
        if field.startswith("charset="):
            return field[8:]
    return default


def unfold(text):
    return re.sub("\\n[ \\t]+", " ", text)


def headers(text):
    result = []
    for line in unfold(text).splitlines():
        result.append(parse_header(line))
    return result
'''


PLAN = ["Find the line that loses it", "Mend the parser", "Run the tests"]
EDITS = {
    '    return name, value.split(";")[:-1]': """\
    fields = [field.strip() for field in value.split(";")]
    return name.strip(), [field for field in fields if field]""",
    "            return field[8:]": """            return field[8:].strip("'").lower()""",
    '"\\n[ \\t]+"': 'r"\\r?\\n[ \\t]+"',
}
REWRITTEN = '''\
def headers(text):
    """Return (name, fields) for each header of TEXT, in the order that they have there."""
    return [parse_header(line) for line in unfold(text).splitlines() if line]
'''


def call(tool: str, **arguments: object) -> str:
    return f"call: {tool} {json.dumps(arguments)}"


def planned(done: int) -> str:
    """The plan when so many of its entries are done."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(PLAN)
    entries = [
        {"content": what, "status": state} for what, state in zip(PLAN, states, strict=False)
    ]
    return call("update_plan", tasks=entries)


VOTES = {
    "MELCHIOR": {
        "verdict": "APPROVE", "confidence": 90, "low": 80, "high": 95,
        "summary": "RFC 9110 has optional blanks around fields. All parsers that were tried strip "
        "them.", "evidence": ["RFC 9110, 5.6.3"],
    },
    "BALTHASAR": {
        "verdict": "CAVEATED", "confidence": 70,
        "summary": "It can be done if the old form is still read.", "risks": ["Old logs break."],
        "protection": "Keep the old reader.", "caveats": {"preconditions": ["Old logs are read."]},
    },
    "CASPER": {
        "verdict": "REJECT", "confidence": 55, "feeling": "foggy",
        "summary": "Who wrote the tests was not asked.", "stakes": "The trust of the maintainers.",
        "last_words": "Ask them first.",
    },
}  # fmt: skip
VOTED = "\n".join(
    f"prompt: question as {node}\ntext: {json.dumps(vote)}\n" for node, vote in VOTES.items()
)
SCRIPT = "\n".join([
    "prompt: lost",
    "think: The last field is lost. Which line cuts it off?",
    "text: I look at the parser first.",
    planned(0),
    call("read_file", path="header.py"),
    "---",
    "text: |",
    "  `parse_header` **drops the last field**: its slice was meant for a trailing `;`.",
    "",
    "  - fields keep their blanks, so that `charset` finds none",
    "  - a quoted value keeps its quotes",
    *(call("edit_file", path="header.py", old_text=old, new_text=new)
      for old, new in EDITS.items()),
    planned(2),
    "---",
    "text: That should be all. I run the tests.",
    call("bash", command="pytest -q tests/test_header.py"),
    "---",
    "text: All tests pass.",
    "",
    "prompt: two agents",
    "text: Two agents look into it, side by side.",
    call("spawn_agent", agent="general", task_name="Quoted values",
         prompt="Try what becomes of quoted values.\nReport each case with its result."),
    call("spawn_agent", agent="explore", task_name="Who calls the parser",
         prompt="Find all callers of parse_header."),
    "---",
    "text: They are on their way.",
    "---",
    "text: There is **one** caller, `headers`. The other agent is at work still.",
    "",
    "prompt: try what becomes",
    "text: I try three values.",
    call("bash", command="python try_values.py"),
    "---",
    "text: Done.",
    "",
    "prompt: find all callers",
    call("grep", pattern="parse_header"),
    "---",
    "text: Only `headers` calls it, in line 28.",
    "",
    "prompt: release notes",
    call("run_graph", tasks=[
        {"id": "changes", "agent": "explore", "prompt": "List what changed since the release."},
        {"id": "callers", "prompt": "Try each caller of parse_header."},
        {"id": "notes", "prompt": "Write the notes.", "needs": ["changes", "callers"]},
    ]),
    "---",
    "text: The notes are written.",
    "",
    "prompt: list what changed",
    call("grep", pattern="def "),
    "---",
    "text: Two functions are new.",
    "",
    "prompt: try each caller",
    "text: I try the first one.",
    call("bash", command="python try_callers.py"),
    "---",
    "text: All work.",
    "",
    "prompt: magi",
    call("deliberate", question="Should fields be stripped of blanks?", kind="decision",
         complexity="simple"),
    "---",
    "text: The ruling is yes, and one disagrees.",
    "",
    VOTED,
    "prompt: comprehension",
    "delay: 0.2",
    "speed: 60",
    call("replace_selection", text=REWRITTEN),
    "",
])  # fmt: skip


def top(one: Driven) -> None:
    one.ask("(goto-char (point-min)) (set-window-start nil (point)) (set-window-point nil (point))")


def transcript(one: Driven) -> None:
    """An answer, its edits, and a question that waits."""
    one.ask('(search-forward "def char") (set-window-point nil (point))')
    one.ask("(split-window-below 13)")
    one.keys("C-c m m", letters("a field is lost. Why?"), "RET")
    one.until("(magy-permission--all)")
    one.until("(get-buffer-window (magy-project-buffer (magy-driven-project)))")
    one.until("(= 3 (length (plist-get (car magy-review--files) :hunks)))")
    one.ask(
        '(goto-char (point-min)) (search-forward "def char") (set-window-point nil (point))'
        " (set-window-start nil 1)"
    )
    one.keys("C-c m o", "<backtab>")
    one.ask("(goto-char (point-max)) (set-window-point nil (point)) (set-window-start nil 1)")
    one.keys("C-x o")


def review(one: Driven) -> None:
    """Changes in the buffer of the file, one of them at point."""
    one.ask("(delete-other-windows) (set-frame-height nil 34)")
    top(one)
    one.keys("C-c m ]")
    one.until("(equal 8 (line-number-at-pos))")


def diff(one: Driven) -> None:
    """The same as a diff, one of them rejected with a reason."""
    one.keys("C-c m =")
    one.until('(and (derived-mode-p \'magy-review-diff-mode) (string-search "@@" (buffer-string)))')
    one.ask("(delete-other-windows)")
    one.keys("n", "C-u r", letters("case matters here"), "RET")
    one.until('(string-search "case matters here" (buffer-string))')


def rewrite(one: Driven) -> None:
    """New text that streams where it will stand."""
    one.ask('(switch-to-buffer "header.py") (delete-other-windows)')
    top(one)
    one.ask('(search-forward "def head") (set-window-point nil (point)) (recenter 18)')
    one.keys("C-c m w", letters("as a comprehension"), "RET")
    one.until(
        '(and magy-rewrite--all (string-search "order" (or (overlay-get'
        ' (magy-rewrite-overlay (car magy-rewrite--all)) \'after-string) "")))'
    )


def menu(one: Driven) -> None:
    """All commands."""
    one.until("(null magy-rewrite--all)")
    one.until("(= 3 (length (plist-get (car magy-review--files) :hunks)))")
    one.keys("C-c m ?")
    one.until(
        '(seq-some (lambda (window) (string-search "transient"'
        " (buffer-name (window-buffer window)))) (window-list))"
    )


def agents(one: Driven) -> None:
    """The tree of agents above the transcript of their parent; one asks, one is done."""
    one.keys("C-g", "C-c m o", "C-c m c")
    one.until('(equal "" (magy-driven-transcript))')
    one.keys("C-c m m", letters("have two agents look at the parser"), "RET")
    one.until('(string-search "? Spawn general" (magy-driven-transcript))')
    one.until("(null (cdr (magy-permission--all)))")  # that of the session before is withdrawn
    one.keys("C-c m y", "y")
    one.until('(string-search "is at work still" (magy-driven-transcript))')
    one.until('(string-search "? Run python" (magy-driven-transcript))')
    one.keys("C-c m J")
    one.ask(
        "(delete-other-windows) (let ((below (split-window-below 7)))"
        " (set-window-buffer below (magy-project-buffer (magy-driven-project)))"
        " (set-window-start below 1)) t"
    )
    for state in ("waiting", "completed"):
        one.until(f"(string-search {lisp(state)} (buffer-string))")
    one.ask('(goto-char (point-min)) (search-forward "general") (set-window-point nil (point)) t')


def graph(one: Driven) -> None:
    """A graph of tasks as it runs: one is done, one asks, one waits for both."""
    one.keys("C-c m o", "C-c m c")
    one.until('(equal "" (magy-driven-transcript))')
    one.ask("(delete-other-windows) (set-frame-height nil 26)")
    one.keys("C-c m m", letters("have the release notes written"), "RET")
    one.until('(string-search "? Run 3 tasks" (magy-driven-transcript))')
    one.keys("C-c m y", "y")
    one.until('(string-search "changes (explore): completed" (magy-driven-transcript))')
    one.until('(string-search "? Run python" (magy-driven-transcript))')
    one.ask("(goto-char (point-max)) (set-window-point nil (point)) (set-window-start nil 1) t")


def magi(one: Driven) -> None:
    """Three votes, who disagrees with whom, and the ruling."""
    one.keys("C-c m y", "y")
    one.until('(string-search "The notes are written." (magy-driven-transcript))')
    one.keys("C-c m o", "C-c m c")
    one.until('(equal "" (magy-driven-transcript))')
    one.ask("(delete-other-windows) (set-frame-height nil 56)")
    one.keys("C-c m V", letters("Should fields be stripped of blanks?"), "RET")
    one.until('(string-search "? MAGI" (magy-driven-transcript))')
    one.keys("C-c m y", "y")
    one.until('(string-search "and one disagrees" (magy-driven-transcript))')
    one.keys("C-c m o")
    one.ask("(delete-other-windows) (goto-char (point-min)) (set-window-start nil 1) t")


SCENES: dict[str, Callable[[Driven], None]] = {
    "transcript": transcript, "review": review, "diff": diff, "rewrite": rewrite, "menu": menu,
    "agents": agents, "graph": graph, "magi": magi,
}  # fmt: skip


def take(display: str, theme: str, name: str, into: Path) -> Iterator[Path]:
    """Plays all scenes and takes a picture of each, called after the scene and `name`."""
    with tempfile.TemporaryDirectory() as place, fresh_home() as home:
        init = installed(home, SCRIPT)
        root = Path(place) / "mailer"
        (root / ".git").mkdir(parents=True)
        file = root / "header.py"
        file.write_text(CODE, "utf-8")
        with emacs("window", init, root, display) as one:
            one.ask(f"(magy-driven-look '{theme})")
            one.ask(f"(find-file {lisp(str(file))})")
            for scene, play in SCENES.items():
                play(one)
                picture = into / f"{scene}-{name}.png"
                one.ask(f"(magy-driven-picture {lisp(str(picture))})")
                yield picture


@contextmanager
def fresh_home() -> Iterator[Path]:
    """A home directory of its own, and nothing else of this person in the environment."""
    before = dict(os.environ)
    guard.clean_environment(os.environ)
    with guard.fresh_home() as places:
        os.environ.update(places)
        try:
            yield Path(places["HOME"])
        finally:
            os.environ.clear()
            os.environ.update(before)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with xvfb(SCREEN) as display:
        for name, theme in THEMES.items():
            for picture in take(display, theme, name, IMAGES):
                print(picture.relative_to(TOP), f"{picture.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
