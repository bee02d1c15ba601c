--- The keys below the prefix that `setup{ prefix = ... }` names: the letters that Emacs's client has.

local config = require("magy.config")

local M = {}

--- Key after the prefix -> name of the subcommand.
M.keys = {
  p = "ask",
  o = "open",
  w = "rewrite",
  ["@"] = "mention",
  S = "skills",
  y = "answer",
  Y = "permissions",
  k = "stop",
  A = "agent",
  M = "model",
  n = "new",
  R = "resume",
  s = "spawn",
  J = "children",
  g = "review",
  e = "amend",
  u = "unreview",
  U = "undo",
  P = "checkpoints",
  ["."] = "actions",
  ["="] = "diff",
  ["]"] = "next",
  ["["] = "previous",
  ["+"] = "accept",
  ["-"] = "reject",
  [";"] = "comment",
  ["?"] = "help",
}

--- Returns how a subcommand is called: by its key, if there is a prefix, and its name.
function M.way(name)
  local prefix = config.get().prefix
  for key, of in pairs(M.keys) do
    if prefix and of == name then
      local leader = (vim.g.mapleader or "\\"):gsub("^ $", "<Space>")
      return prefix:gsub("<[Ll]eader>", (leader:gsub("%%", "%%%%"))) .. key .. " " .. name
    end
  end
  return ":Magy " .. name
end

--- Maps all keys below a prefix, in normal and visual mode.
function M.set(prefix)
  for key, name in pairs(M.keys) do
    vim.keymap.set({ "n", "x" }, prefix .. key, ("<Plug>(magy-%s)"):format(name), { desc = "Magy: " .. name })
  end
end

return M
