--- The keys below the prefix that `setup{ prefix = ... }` names: the letters that Emacs's client has.

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

--- Maps all keys below a prefix, in normal and visual mode.
function M.set(prefix)
  for key, name in pairs(M.keys) do
    vim.keymap.set({ "n", "x" }, prefix .. key, ("<Plug>(magy-%s)"):format(name), { desc = "Magy: " .. name })
  end
end

return M
