--- What a block looks like: its lines, and what is put on them.
---
--- Nothing is said by colour alone: each kind begins with a sign of its own.

local maps = require("magy.maps")
local markdown = require("magy.view.markdown")
local one_line = require("magy.state.harmless").one_line
local sums = require("magy.state.sums")
local text = require("magy.state.text")
local words = require("magy.state.words")

local M = {}

local function split(value)
  return value == "" and {} or vim.split(value, "\n", { plain = true })
end

--- Returns lines with a sign before the first, and as wide an indent before the others.
local function signed(sign, lines, width)
  local made = {}
  for at, line in ipairs(lines) do
    made[at] = (at == 1 and sign or (" "):rep(width)) .. line
  end
  return made
end

--- Returns a head on one line, its blanks kept.
local function flat(head)
  return (head:gsub("%s*\n%s*", " "))
end

local function paint(decor, first, last, group)
  for row = first, last do
    table.insert(decor, { row, 0, { line_hl_group = group } })
  end
end

local function word(decor, row, col, length, group)
  table.insert(decor, { row, col, { end_row = row, end_col = col + length, hl_group = group } })
end

local function user(head, _, _, block)
  local lines = signed("❯ ", split(head), 2)
  table.insert(lines, 1, "")
  local decor = {}
  paint(decor, 1, #lines - 1, "MagyUser")
  local took = block.data.spent and words.joined(sums.words(block.data.spent), " · ") or ""
  if took ~= "" then
    table.insert(decor, { 1, 0, { virt_text = { { took, "MagyMeta" } }, virt_text_pos = "eol_right_align" } })
  end
  return lines, decor
end

local function agent(head, _, _, block)
  local lines = split(head)
  table.insert(lines, 1, "")
  return lines, markdown.looks(head, not block.streamed)
end

local function thought(_, below)
  local lines = vim.list_extend({ "✻ Thinking" }, signed("  ", split(below), 2))
  local decor = {}
  paint(decor, 0, #lines - 1, "MagyThought")
  return lines, decor
end

local MARKS = {
  ["✓"] = "MagyDone",
  ["✗"] = "MagyFailed",
  ["⊘"] = "MagyFailed",
  ["▸"] = "MagyRunning",
  ["?"] = "MagyQuestion",
}

local DIFF = { ["+"] = "MagyAdded", ["-"] = "MagyRemoved", ["@"] = "MagyHunk" }

local function below_lines(lines, decor, below, is_diff)
  for _, line in ipairs(split(below)) do
    table.insert(lines, "    " .. line)
    local group = is_diff and DIFF[line:sub(1, 1)]
    if group then
      table.insert(decor, { #lines - 1, 0, { line_hl_group = group } })
    end
  end
end

local function has_diff(block)
  return vim.iter(block.data.parts or {}):any(function(part)
    return part.type == "diff"
  end)
end

local VERDICTS = {
  APPROVE = "MagyDone",
  APPROVED = "MagyDone",
  CAVEATED = "MagyQuestion",
  REJECT = "MagyFailed",
  REJECTED = "MagyFailed",
  DISSENTS = "MagyFailed",
  AGAINST = "MagyFailed",
  DEADLOCK = "MagyQuestion",
}

--- Paints the words of a deliberation that say how somebody voted, in lines from `first` (from 0).
local function verdicts(lines, decor, first)
  for row = first, #lines - 1 do
    for at, said in lines[row + 1]:gmatch("()(%u+)") do
      if VERDICTS[said] then
        word(decor, row, at - 1, #said, VERDICTS[said])
      end
    end
  end
end

local function tool(head, below, rule, block, answered)
  local decor, lines = {}, {}
  -- "tool" is said of most lines: the mark says enough.
  local shown = head:gsub("^tool ", ""):gsub("  not_run", "  not run")
  if answered then
    local refused = answered.data.outcome == "refused"
    shown = (refused and shown:gsub("  denied", "") or shown) .. "  " .. one_line(text.answer(answered.data))
  end
  lines[1] = "  " .. flat(shown)
  local mark = shown:match("[^%w%s%z\1-\127][\128-\191]*") or ""
  local at = lines[1]:find(mark, 1, true)
  if mark ~= "" and at and MARKS[mark] then
    word(decor, 0, at - 1, #mark, MARKS[mark])
  end
  local first = #lines
  below_lines(lines, decor, below, has_diff(block))
  if block.data.deliberation then
    verdicts(lines, decor, first)
  end
  if rule ~= "" then
    table.insert(lines, "    " .. flat(rule))
    table.insert(decor, { #lines - 1, 0, { line_hl_group = "MagyMeta" } })
  end
  return lines, decor
end

local function plan(head, below)
  local lines, decor = { "", head }, {}
  word(decor, 1, 0, #head, "MagyHead")
  for _, line in ipairs(split(below)) do
    table.insert(lines, "  " .. line)
    local mark = line:match("^[^ ]*")
    if MARKS[mark] then
      word(decor, #lines - 1, 2, #mark, MARKS[mark])
    end
  end
  return lines, decor
end

local function notice(head, _, _, block)
  local lines = signed("— ", split(head), 2)
  table.insert(lines, 1, "")
  local decor = {}
  local severity = block.data.severity
  local group = severity == "error" and "MagyError" or severity == "warning" and "MagyWarning" or "MagyNotice"
  paint(decor, 1, #lines - 1, group)
  return lines, decor
end

local function mail(head, below)
  local lines, decor = vim.list_extend({ "" }, split(head)), {}
  word(decor, 1, 0, #lines[2], "MagyHead")
  for _, line in ipairs(split(below)) do
    table.insert(lines, "    " .. line)
  end
  return lines, decor
end

local function question(head, below, _, block)
  local lines, decor = { "" }, {}
  if block.data.outcome then
    lines = { "  " .. flat(head) }
    return lines, { { 0, 0, { line_hl_group = "MagyMeta" } } }
  end
  vim.list_extend(lines, split(head))
  paint(decor, 1, #lines - 1, "MagyQuestion")
  below_lines(lines, decor, below, has_diff({ data = { parts = block.data.question.content } }))
  table.insert(lines, "    " .. maps.way("answer") .. "  refuses or allows; until then it waits.")
  table.insert(decor, { #lines - 1, 0, { line_hl_group = "MagyMeta" } })
  return lines, decor
end

local KINDS = {
  user = user,
  agent = agent,
  thought = thought,
  tool = tool,
  plan = plan,
  notice = notice,
  mail = mail,
  question = question,
}

--- Kinds of which all but the head folds, and in which line (from 0) that head is. Folding is done here,
--- and not by 'foldexpr': that stands still while one writes in Insert mode, in a prompt say.
--- Of a prompt four lines stay, if it is long; what warns stays whole.
M.folding = { tool = 0, thought = 0, mail = 1, notice = 1, user = 4 }

local function folds(block, lines)
  local keeps = M.folding[block.kind]
  local least = block.kind == "user" and 10 or keeps and keeps + 2
  local warns = block.data.severity == "error" or block.data.severity == "warning"
  return keeps and not warns and #lines >= least
end

local function folded(lines, decor, head)
  local hidden = #lines - head - 1
  lines = vim.list_slice(lines, 1, head + 1)
  local mark = ("  …%d line%s"):format(hidden, hidden == 1 and "" or "s")
  local at = #lines[head + 1]
  lines[head + 1] = lines[head + 1] .. mark
  decor = vim.tbl_filter(function(one)
    return one[1] <= head
  end, decor)
  word(decor, head, at, #mark, "MagyMeta")
  return lines, decor
end

--- Returns the lines of a block and its decoration: a list of {row in the block, column, extmark options}.
--- No lines: the block is not shown. `open`: all of it, and not only its head. `narrow`: see `text.block`.
function M.block(t, block, open, narrow)
  local head, below, rule = text.block(t, block, narrow)
  if head == "" and below == "" then
    return {}, {}
  end
  local answered = t.answered[block.id]
  if block.kind == "question" and block.data.call and t:get(block.data.call) then
    return {}, {} -- the call itself says how it was answered
  end
  local lines, decor = KINDS[block.kind](head, below, rule, block, answered)
  if not open and folds(block, lines) then
    return folded(lines, decor, M.folding[block.kind])
  end
  return lines, decor
end

--- Returns what stands below the last line, as virtual lines: what goes on, and what waits; `sent`: texts
--- that are on their way to the server; `last`: the session that may be gone on with.
function M.tail(t, sent, last)
  local lines = {}
  if last and #sent == 0 then
    local title = last.title and ("“%s”, "):format(words.clipped(last.title)) or ""
    local turns = ("%d turn%s"):format(last.turns, last.turns == 1 and "" or "s")
    table.insert(lines, { { ("  The session before: %s%s."):format(title, turns), "MagyMeta" } })
    table.insert(lines, { { "  `:Magy resume last` goes on with it.", "MagyMeta" } })
  end
  for _, text_sent in ipairs(sent) do
    table.insert(lines, { { "  · on its way: " .. one_line(text_sent), "MagyMeta" } })
  end
  if t.progress ~= "" then
    table.insert(lines, { { "  ▸ " .. one_line(t.progress), "MagyMeta" } })
  end
  for _, one in ipairs(t.waiting) do
    local how = one.delivery == "queue" and "waits" or "comes next"
    table.insert(lines, { { ("  · %s: %s"):format(how, one_line(one.text)), "MagyMeta" } })
  end
  return lines
end

return M
