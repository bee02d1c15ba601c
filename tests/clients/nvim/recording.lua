-- What the scripts of this folder share: recorded sessions (tests/clients/record.py) told to a transcript.

local M = {}

vim.opt.runtimepath:prepend(arg[1])
local fold = require("magy.state.fold")
local questions = require("magy.state.questions")
local text = require("magy.state.text")
local Transcript = require("magy.state.transcript")

local function tell(t, method, params)
  if method == "magy/session/update" then
    fold.update(t, params.update)
  elseif method == "magy/interaction/changed" then
    questions.changed(t, params)
  elseif method == "magy/child/changed" then
    fold.child_changed(t, params.child)
  end
end

--- Returns the lines of a recording: the first has the page that a client gets that attaches.
function M.read(path)
  local lines = {}
  for line in io.lines(path) do
    table.insert(lines, vim.json.decode(line, { luanil = { object = true } }))
  end
  return lines
end

--- Returns a transcript that was told a whole recording.
function M.recorded(lines)
  local t = Transcript.new("s-1")
  fold.attached(t, lines[1].result, false)
  for at = 2, #lines do
    tell(t, lines[at].method, lines[at].params)
  end
  return t
end

--- Returns the blocks that are shown, as {kind, text}.
function M.shown(t)
  local shown = {}
  for _, block in ipairs(t.blocks) do
    local head, below, rule = text.block(t, block)
    local all = vim.trim(head .. (rule == "" and "" or "  " .. rule) .. "\n" .. below)
    if all ~= "" then
      table.insert(shown, { block.kind, all })
    end
  end
  return shown
end

return M
