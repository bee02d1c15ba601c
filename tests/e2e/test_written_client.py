"""The client of docs/howto/write-a-client.md, as it stands there, at a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-client.md"
CODE = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S))
EDIT = """call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}"""
BEFORE = "def greet():\n    return 'hello'\n"
AFTER = "def greet():\n    return 'good morning'\n"


def run(root: Path, state: Path, script: str, *typed: str) -> str:
    """What the client shows a person who types this, one line after the other."""
    state.mkdir()
    (state / "model.script").write_text(script, encoding="utf-8")
    (state / "client.py").write_text(CODE, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state),
           "MAGY_SCRIPT": str(state / "model.script"), "PYTHONUTF8": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(state / "client.py"), "app.py", "Make it polite"],
        cwd=root, env=env, input="".join(f"{line}\n" for line in typed), text=True,
        capture_output=True, encoding="utf-8", timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_as_short_as_the_page_says() -> None:
    assert len(CODE.splitlines()) <= 150
    assert "in 150 lines of plain Python" in PAGE.read_text("utf-8")
    modules = re.findall(r"^(?:import (.+)|from (\w+) )", CODE, re.MULTILINE)
    names = {name.strip() for found in modules for word in found for name in word.split(",")}
    assert names - {""} <= sys.stdlib_module_names


@pytest.mark.parametrize(("typed", "left", "said"), [
    ("", AFTER, "accepted"),
    ("It is too formal.", BEFORE, "rejected"),
])  # fmt: skip
def test_a_person_talks_to_an_agent(
    root: Path, state: Path, typed: str, left: str, said: str
) -> None:
    script = f"""text: I will greet politely.
{EDIT}
---
text: And I clean up.
call: bash {{"command": "rm -rf build"}}
---
call: bash {{"command": "rm old.txt"}}
---
text: Done: {{{{last}}}}
"""
    (root / "old.txt").touch()
    shown = run(root, state, script, "It takes long to build.", "y", typed)
    story = [
        "I will greet politely.\n",
        "* edit_file: pending\n",
        "* Edit app.py: completed\n",
        "And I clean up.\n",
        "Run rm -rf build (agent build: bash `*` -> ask) [y/N, or why not] ",
        "* Run rm -rf build: failed\n",
        "* Run rm old.txt: completed\n",
        "Done: [exit code 0]",
        "-- end_turn",
        "<<< before\n    return 'hello'\n=== after\n    return 'good morning'\n>>>\n",
        f"-- {said}",
    ]
    places = [shown.find(part) for part in story]
    assert -1 not in places and places == sorted(places), shown
    assert (root / "app.py").read_text() == left and not (root / "old.txt").exists()


def test_an_edit_is_refused(root: Path, state: Path) -> None:
    """Another program wrote the file, and the client does not know what."""
    script = f"""call: bash {{"command": "echo '# mine' >> app.py"}}
---
{EDIT}
---
text: It said: {{{{last}}}}
"""
    shown = run(root, state, script, "y")
    assert "* Edit app.py: failed" in shown
    assert "The editor refused the edit to" in shown and "Something else wrote" in shown
    assert (root / "app.py").read_text() == f"{BEFORE}# mine\n"


def test_text_of_all_kinds(root: Path, state: Path) -> None:
    """Positions in a file with several kinds of line ends and with characters beyond the BMP."""
    (root / "app.py").write_bytes("a = '🙂'\r\nb = '\u2028'\rc = '🙂 hello'\n".encode())
    shown = run(root, state, f"{EDIT.replace(chr(39), '')}\n---\ntext: Done.\n", "")
    assert "-- accepted" in shown
    assert (root / "app.py").read_bytes().decode() == (
        "a = '🙂'\r\nb = '\u2028'\rc = '🙂 good morning'\n")  # fmt: skip
