"""The manual and the guide of the Emacs client say what is so, and their pictures can be taken."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from test_emacs import CLIENT, GUIDE, SOURCES, emacs, missing

from scripts import screenshots
from tests.clients.driven import xvfb

MANUAL = CLIENT / "magy.org"
IMAGES = GUIDE.parent / "images"
MAGI = GUIDE.parent.parent / "howto" / "magi.md"
_OPTION = re.compile(r"^\| ~(magy-[a-z-]+)~ \| =(.*?)= \|", re.MULTILINE)
_COMMAND = re.compile(r"^\| (?:~(.+?)~)? ?\| ~(magy-[a-z-]+)~ \|", re.MULTILINE)


@pytest.fixture(autouse=True)
def needs_emacs() -> None:
    if shutil.which("emacs") is None:
        missing("emacs is not installed (Debian: apt install emacs-nox)")


def answers(*forms: str) -> list[str]:
    """What forms print, with all of the client loaded that a person's init file loads."""
    code = " ".join(f'(princ (format "%S\\n" {form}))' for form in forms)
    run = emacs("-l", "magy", "--eval", f"(progn {code})")
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_manual_has_every_option_with_its_default() -> None:
    told = dict(_OPTION.findall(MANUAL.read_text("utf-8")))
    sources = "".join(source.read_text("utf-8") for source in SOURCES)
    names = re.findall(r"^\(defcustom (magy-[a-z-]+)", sources, re.MULTILINE)
    assert sorted(told) == sorted(names)
    features = " ".join(source.stem for source in SOURCES if "(defcustom" in source.read_text())
    defaults = answers(
        f"(progn (mapc #'require '({features})) t)",
        *(f"(eval (car (get '{name} 'standard-value)) t)" for name in told),
    )
    assert dict(zip(told, defaults[1:], strict=True)) == told


def test_the_manual_has_every_command_with_its_key() -> None:
    rows = _COMMAND.findall(MANUAL.read_text("utf-8"))
    commands = [name for _, name in rows]
    assert set(commands) >= set(re.findall(
        r'^ +\(?"." (magy-[a-z-]+) "', (CLIENT / "magy.el").read_text("utf-8"), re.MULTILINE
    ))  # fmt: skip
    assert set(answers(*(f"(commandp '{name})" for name in commands))) == {"t"}
    bound = [(key.removeprefix("C-c m "), name) for key, name in rows if key]
    found = answers(*(f'(lookup-key magy-command-map (kbd "{key}"))' for key, _ in bound))
    assert found == [name for _, name in bound]


def test_what_the_manual_names_exists() -> None:
    named = sorted(set(re.findall(r"~(magy-[a-z-]+|global-magy-mode)~",
                                  MANUAL.read_text("utf-8"))))  # fmt: skip
    sources = "".join(source.read_text("utf-8") for source in SOURCES)
    assert len(named) > 80
    for name in named:
        assert re.search(rf"\((?:def[a-z]+|define-[a-z-]+) {name}\b", sources), name


def test_emacs_reads_the_manual() -> None:
    """As Org without a complaint, and as what Info is made of."""
    run = emacs(
        "--eval", "(progn (require 'org-lint) (require 'ox-texinfo))", str(MANUAL),
        "--eval", '(princ (format "%S %S" (org-lint) (> (length (org-export-as (quote texinfo)))'
                  " 9999)))",
    )  # fmt: skip
    assert run.stdout == "nil t", run.stdout + run.stderr


def test_the_guide_has_a_small_picture_of_each_scene_in_both_looks() -> None:
    wanted = {f"{scene}-{look}.png" for scene in screenshots.SCENES for look in screenshots.THEMES}
    guide = GUIDE.read_text("utf-8")
    of_others = ("vscode", "nvim-", "neovim-")
    shown = re.findall(r"images/([a-z-]+\.png)", guide + MAGI.read_text("utf-8"))
    assert {one for one in shown if not one.startswith(of_others)} == wanted
    pictures = [one for one in IMAGES.iterdir() if not one.name.startswith(of_others)]
    assert {picture.name for picture in pictures} == wanted
    assert max(picture.stat().st_size for picture in pictures) < 150_000
    assert guide.count("<img ") == len(re.findall(r'<img [^>]*alt="[^"]{20,}"', guide))


def test_the_scenes_of_the_pictures_can_be_played(tmp_path: Path) -> None:
    if shutil.which("Xvfb") is None:
        missing("Xvfb is not installed")
    if emacs("--eval", "(princ (fboundp 'x-export-frames))").stdout != "t":
        missing("this Emacs cannot take pictures of itself (Debian: apt install emacs-lucid)")
    with xvfb(screenshots.SCREEN) as display:
        for picture in screenshots.take(display, screenshots.THEMES["dark"], "dark", tmp_path):
            width, height = struct.unpack(">II", picture.read_bytes()[16:24])
            assert width > 400 and height > 200, picture.name
    assert len(list(tmp_path.iterdir())) == len(screenshots.SCENES)
