"""The plugin as files: installed as the guide says, its help, its format, what it loads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.nvim.conftest import environment
from tests.clients.nvim.embedded import CLIENT, ROOT, neovim, program
from tests.patience import PATIENCE

HELP = (CLIENT / "doc" / "magy.txt").read_text("utf-8")
GUIDE = (ROOT / "docs" / "clients" / "neovim.md").read_text("utf-8")
LUA = sorted(CLIENT.rglob("*.lua"))
NAMES = "local names = vim.tbl_keys(require('magy.commands').all) table.sort(names) return names"


def ask(code: str, *words: str, env: dict[str, str] | None = None) -> Any:
    """What Lua returns in a Neovim that was started with these words."""
    with neovim(CLIENT, env or environment(""), *words) as nvim:
        return nvim.lua(code)


def test_every_command_and_no_other_is_in_the_help_and_in_the_guide() -> None:
    names = ask(NAMES)
    assert sorted(re.findall(r"\*:Magy-([a-z]+)\*", HELP)) == names
    assert not [name for name in names if f"`:Magy {name}" not in GUIDE]
    assert set(re.findall(r"`:Magy ([a-z]+)", GUIDE)) <= set(names)


def test_every_option_is_in_the_help_with_its_default() -> None:
    flat = """
    local function flat(options, prefix, into)
      for name, value in pairs(options) do
        if type(value) == "table" and next(value) then
          flat(value, prefix .. name .. ".", into)
        else
          into[prefix .. name] = vim.inspect(value):gsub("^vim.empty_dict%(%)$", "{}")
        end
      end
      return into
    end
    return flat(require("magy.config").defaults, "", {})
    """
    options = ask(flat)
    assert sorted(re.findall(r"\*magy-option-([\w.]+)\*", HELP)) == sorted(options)
    for name, default in options.items():
        assert re.search(rf"^{re.escape(name)} +{re.escape(default)} ", HELP, re.MULTILINE), name


def test_every_map_is_in_the_help() -> None:
    plugs = ask("""
    return vim.tbl_map(function(map) return map.lhs end, vim.tbl_filter(function(map)
      return map.lhs:find("^<Plug>%(magy%-") ~= nil
    end, vim.api.nvim_get_keymap("n")))
    """)
    assert len(plugs) > 30 and not [plug for plug in plugs if f"`{plug}`" not in HELP]
    prefixed = ask("local keys = require('magy.maps').keys return keys")
    assert not [k for k, n in prefixed.items() if f"    {k}   |:Magy-{n}|" not in HELP]
    own = ask("""
    local keys, found = require("magy.view.keys"), {}
    for _, one in ipairs(keys.of_transcript) do table.insert(found, { one[1], one[3] }) end
    for _, one in ipairs(keys.of_prompt) do table.insert(found, { one[2], one[4] }) end
    for _, name in ipairs({ "children", "review.keys" }) do
      for _, one in ipairs(require("magy." .. name).keys) do
        table.insert(found, { one[1], one[3] })
      end
    end
    return found
    """)
    assert not [key for key, words in own if f"    {key:<10} {words}" not in HELP]


def test_the_tags_of_the_help_resolve(tmp_path: Path) -> None:
    copy = tmp_path / "magy"
    shutil.copytree(CLIENT, copy)
    with neovim(tmp_path, environment(""), "--cmd", f"set runtimepath^={copy}") as nvim:
        nvim.command("help magy-options")  # as it comes, before any :helptags
        assert "*magy-options*" in nvim.text()
        nvim.command(f"helptags {copy}/doc")
        nvim.command("Magy help")
        assert "*:Magy*" in nvim.text()
    made = (copy / "doc" / "tags").read_text()
    tags = {line.split("\t")[0] for line in made.splitlines()}
    assert (CLIENT / "doc" / "tags").read_text() == made, "run `:helptags clients/nvim/doc`"
    assert not [link for link in re.findall(r"\|(:?[Mm]agy[\w:.-]*)\|", HELP) if link not in tags]


@pytest.mark.needs("luacheck")
def test_luacheck_finds_nothing() -> None:
    done = subprocess.run(
        ["luacheck", "--no-color", "."], cwd=CLIENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.needs("stylua")
def test_stylua_would_change_nothing() -> None:
    for folder in (CLIENT, Path(__file__).parent):
        done = subprocess.run(
            ["stylua", "--check", "."], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_said_fits_on_a_line_of_80_columns() -> None:
    """Beside "Magy: " and what Neovim keeps for itself. Longer, it would have one press ENTER."""
    said = [
        text
        for file in LUA
        for text in re.findall(r'say\.(?:info|warn)\(\s*"(.*?)"[,)]', file.read_text("utf-8"))
    ]
    assert len(said) > 50 and not [text for text in said if len(text) > 62]


def test_modules_are_small() -> None:
    assert not [str(file) for file in LUA if len(file.read_text("utf-8").splitlines()) >= 400]


def block(word: str) -> str:
    """The block of the guide that has that word."""
    (found,) = [one for one in re.findall(r"```\w+\n(.*?)```", GUIDE, re.DOTALL) if word in one]
    return str(found)


def installed(home: Path, init: str, *prepare: str) -> Any:
    """What Neovim has after the steps of the guide, in a home with a checkout: whether `:Magy`, the
    keys of the guide, and the server's command."""
    (home / "src").mkdir(exist_ok=True)
    (home / "src" / "magy").symlink_to(ROOT)
    config = home / ".config" / "nvim"
    config.mkdir(parents=True)
    (config / "init.lua").write_text(init)
    env = {**environment(""), "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"),
           "XDG_DATA_HOME": str(home / ".local" / "share")}  # fmt: skip
    for command in prepare:
        subprocess.run(["sh", "-c", command], env=env, check=True)
    code = (
        "lua io.write(vim.fn.exists(':Magy') .. ' ' .. vim.fn.maparg('<Leader>mo', 'n') .. ' '"
        " .. vim.inspect(vim.lsp.config.magy.cmd))"
    )
    done = subprocess.run(
        [program(), "--headless", "-c", code, "-c", "qall!"], env=env, cwd=home,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_it_is_installed_on_the_runtimepath(tmp_path: Path) -> None:
    said = installed(tmp_path, block('prepend("~/src'))
    assert said.startswith("2 ") and '"magy", "lsp"' in said


def test_it_is_installed_as_a_package(tmp_path: Path) -> None:
    assert installed(tmp_path, "", block("ln -s")).startswith("2 ")


LAZY = """
vim.go.loadplugins = false
package.preload.lazy = function()
  return {
    setup = function(specs)
      vim.opt.runtimepath = { vim.fn.stdpath("config"), vim.env.VIMRUNTIME }
      for _, spec in ipairs(specs) do
        local dir = vim.fs.normalize(spec.dir)
        vim.opt.runtimepath:append(dir)
        for _, file in ipairs(vim.fn.glob(dir .. "/plugin/**/*.lua", true, true)) do
          vim.cmd.source(file)
        end
        require(spec.name).setup(spec.opts)
      end
    end,
  }
end
"""
"""What lazy.nvim does with the spec of a directory."""
PACK = """
vim.pack = vim.pack or {
  add = function(specs, options)
    for _, spec in ipairs(specs) do
      local path = vim.fn.stdpath("data") .. "/site/pack/core/opt/" .. spec.name
      vim.fn.system({ "git", "clone", "-q", spec.src, path })
      options.load({ spec = spec, path = path })
    end
  end,
}
"""
"""What the manual of `vim.pack` says, for a Neovim before 0.12."""


def test_it_is_installed_as_lazy_nvim_does_it(tmp_path: Path) -> None:
    said = installed(tmp_path, LAZY + block('require("lazy")'))
    assert said.startswith("2 <Plug>(magy-open) ") and '"magy", "lsp"' in said


def test_it_is_installed_from_a_repository_as_vim_pack_does_it(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(CLIENT, repository / "clients" / "nvim")
    git = ["git", "-C", str(repository), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "the client"]):
        subprocess.run([*git, *words], check=True)
    init = block("vim.pack.add").replace("file:///home/me/src/magy", repository.as_uri())
    said = installed(tmp_path, PACK + init)
    assert said.startswith("2 ") and '"magy", "lsp"' in said


def test_magy_says_where_the_client_is() -> None:
    magy = Path(program()).parent / "magy"
    done = subprocess.run(
        [magy, "path", "nvim"], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == f"{CLIENT}\n"


def test_the_plugin_loads_nothing_before_it_is_used() -> None:
    loaded = ask("""
    vim.cmd.edit("README.md")
    return vim.tbl_filter(function(name) return vim.startswith(name, "magy") end,
      vim.tbl_keys(package.loaded))
    """)
    assert not loaded


def test_wrong_options_and_commands_are_said() -> None:
    with neovim(CLIENT, environment("")) as nvim:
        nvim.lua("require('magy').setup({ widnow = 1, window = { position = 'middle' } })")
        nvim.command("Magy nothing")
        said = nvim.request("nvim_exec2", "messages", {"output": True})["output"]
    assert "There is no option `widnow`." in said
    assert "`window.position` must be one of: auto, right" in said
    assert "There is no `:Magy nothing`." in said
