-- The command, the <Plug> maps and the colours. Nothing of Magy is loaded before one of them is used.

if vim.g.loaded_magy then
  return
end
vim.g.loaded_magy = true

vim.api.nvim_create_user_command("Magy", function(args)
  require("magy.commands").run(args)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Magy: open the transcript, or do what a subcommand says",
  complete = function(lead, line, place)
    return require("magy.commands").complete(lead, line, place)
  end,
})

-- <Plug>(magy-NAME) in normal and visual mode: the subcommand of that name, or a key of a buffer's.
for _, name in ipairs({
  -- what is at hand anywhere
  "ask",
  "open",
  "actions",
  "rewrite",
  "mention",
  "skills",
  "answer",
  "allow",
  "refuse",
  "stop",
  "agent",
  "model",
  "mode",
  "bypass",
  "new",
  "resume",
  "children",
  "spawn",
  "review",
  "diff",
  "next",
  "previous",
  "accept",
  "reject",
  "amend",
  "comment",
  "unreview",
  "undo",
  "redo",
  "checkpoints",
  "permissions",
  "help",
  -- in Magy's own buffers
  "send",
  "send-queue",
  "send-interrupt",
  "visit",
  "prompt-next",
  "prompt-previous",
  "parent",
  "older",
  "close",
  "history-previous",
  "history-next",
  "fold",
  "fold-open",
  "fold-close",
  "fold-open-all",
  "fold-close-all",
}) do
  vim.keymap.set({ "n", "x", "i" }, ("<Plug>(magy-%s)"):format(name), function()
    require("magy.commands").plug(name)
  end, { silent = true, desc = "Magy: " .. name })
end

-- Only where something was left in some project, it is looked whether it was in this one.
vim.api.nvim_create_autocmd("VimEnter", {
  callback = function()
    if vim.uv.fs_stat(vim.fs.joinpath(vim.fn.stdpath("state"), "magy", "left")) then
      require("magy.left").greet()
    end
  end,
})

local links = {
  MagyUser = "Title",
  MagyHead = "Title",
  MagyThought = "Comment",
  MagyMeta = "Comment",
  MagyNotice = "Comment",
  MagyWarning = "WarningMsg",
  MagyError = "ErrorMsg",
  MagyQuestion = "Question",
  MagyDone = "DiagnosticOk",
  MagyRunning = "DiagnosticInfo",
  MagyFailed = "DiagnosticError",
  MagyAdded = "DiffAdd",
  MagyRemoved = "DiffDelete",
  MagyHunk = "DiffChange",
  MagyWord = "DiffText",
  MagyReplaced = "Comment",
}
for group, target in pairs(links) do
  vim.api.nvim_set_hl(0, group, { link = target, default = true })
end
