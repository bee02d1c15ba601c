"""Packages with plugins, as wheels that pip installs into an environment of their own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "howto" / "plugins.md"
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented() -> dict[str, str]:
    """The files of the example that the page has, by their paths."""
    return dict(_FILE.findall(PAGE.read_text("utf-8")))


def package(name: str, code: str, *, value: str = "") -> dict[str, str]:
    """The files of a package `magy-NAME` whose plugin is in one module."""
    module = f"magy_{name}"
    project = (
        f'[project]\nname = "magy-{name}"\nversion = "1"\ndescription = "For tests"\n'
        f'[project.entry-points."magy.plugins"]\n{name} = "{value or f"{module}:plugin"}"\n'
    )
    return {"pyproject.toml": project, f"{module}.py": code}


def wheel(files: Mapping[str, str], folder: Path) -> Path:
    """Builds what a build backend would; all files but pyproject.toml are in it."""
    project = tomllib.loads(files["pyproject.toml"])["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    (points,) = project["entry-points"].items()
    info = f"{name}-{version}.dist-info"
    lines = "".join(f"{key} = {value}\n" for key, value in points[1].items())
    about = f"Name: {project['name']}\nVersion: {version}\nSummary: {project['description']}\n"
    whole = {path: text for path, text in files.items() if path != "pyproject.toml"} | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\n{about}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{points[0]}]\n{lines}",
    }
    record = "".join(f"{path},{_hashed(text)},{len(text)}\n" for path, text in whole.items())
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in [*whole.items(), (f"{info}/RECORD", f"{record}{info}/RECORD,,\n")]:
            archive.writestr(path, text)
    return place


def _hashed(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


class Environment:
    """A clean environment with the Magy of this checkout, and nothing of a plugin."""

    def __init__(self, place: Path) -> None:
        venv.create(place, symlinks=True)
        self.place = place
        self.python = place / "bin" / "python"
        (packages,) = place.glob("lib/python*/site-packages")
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "magy-of-this-checkout.pth").write_text("\n".join([str(TOP), *ours]) + "\n")

    def pip(self, *words: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--isolated"]
        quiet = ["--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, *words, *quiet], check=True, timeout=300)

    def install(self, files: Mapping[str, str]) -> None:
        """In place of an earlier version, if there is one."""
        built = wheel(files, self.place)
        self.pip("install", "--no-deps", "--no-index", "--no-compile", "--force-reinstall",
                 str(built))  # fmt: skip

    def link(self, files: Mapping[str, str], sources: Path) -> None:
        """Writes the sources and installs them for development, as `pip install --editable`."""
        for path, text in files.items():
            (sources / path).parent.mkdir(parents=True, exist_ok=True)
            (sources / path).write_text(text, encoding="utf-8")
        (packages,) = self.place.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheel(files, self.place)) as archive:
            known = [name for name in archive.namelist() if ".dist-info/" in name]
            archive.extractall(packages, known)
        origin = {"url": sources.as_uri(), "dir_info": {"editable": True}}
        place = (packages / known[0]).parent
        (place / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
        (packages / f"{place.stem}.pth").write_text(f"{sources}\n", encoding="utf-8")
