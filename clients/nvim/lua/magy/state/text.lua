--- A block as text: what all clients show of it, a head and what is below it.

local content = require("magy.state.text_of")
local harmless = require("magy.state.harmless").harmless
local questions = require("magy.state.questions")
local words = require("magy.state.words")

local M = {}

local joined = words.joined

--- Returns what a part of a call says.
local function part_text(part)
  if part.type == "diff" then
    return part.patch.text
  elseif part.type == "content" then
    return (part.content.text:gsub("%s+$", "")) .. "\n"
  end
  return ""
end

local function parts_text(parts)
  return table.concat(vim.tbl_map(part_text, parts or {}))
end

--- Returns all that a call ran and gave. What it runs is left out where its content says so still.
--- A deliberation is drawn: what its content says, the agent repeats.
local function body(data, narrow)
  local code = data.code or {}
  if vim.deep_equal(code, data.parts or {}) then
    code = {}
  end
  if data.deliberation then
    return table.concat(data.deliberation[narrow and "rows" or "box"], "\n")
  end
  if data.graph then
    -- At the end the first part of the content says what the graph does, for other clients.
    return words.graph(data.graph) .. (data.ended and parts_text(vim.list_slice(data.parts or {}, 2)) or "")
  end
  return parts_text(code) .. (#code > 0 and "\n" or "") .. parts_text(data.parts) .. (data.tail or "")
end

local function marked(data, text)
  return text .. (data.queue == "dropped" and "  (dropped)" or "") .. (data.undone and "  (undone)" or "")
end

local function spawn(t, block)
  local data = block.data
  local input, child = words.input_of(data), t.children[words.child_of(t, block)]
  local asked, life = "", ""
  if child then
    asked, life = words.life_of(child)
  end
  local failed = data.status == "failed" or data.status == "cancelled"
  local head = joined({
    ("agent %s %s"):format(
      words.mark(child and child.state or data.status),
      child and child.agent or input.agent or "agent"
    ),
    words.task_of(input),
    asked,
    life,
    not child and failed and data.ended or "",
  })
  local waits = words.begun(t, block) or #(data.parts or {}) == 0
  return head, waits and words.wanted(input) or body(data)
end

local function tool(t, block, narrow)
  local data = block.data
  if words.is_spawn(data) then
    return spawn(t, block)
  end
  local mark, bad, took = words.mark(data.status), words.ended_badly(data), words.duration(data.duration)
  local said = words.agent_call(t, data)
  if said ~= "" then
    return joined({ ("agent %s %s"):format(mark, said), bad, took }), body(data)
  end
  return joined({ ("tool %s %s"):format(mark, data.title or "…"), bad, took }),
    body(data, narrow),
    words.rule_of(data)
end

local function plan(_, block)
  local entries, done, lines = block.data.entries or {}, 0, {}
  for _, one in ipairs(entries) do
    done = done + (one.status == "completed" and 1 or 0)
    table.insert(lines, ("%s %s"):format(one.status == "cancelled" and "✗" or words.mark(one.status), one.content))
  end
  return ("Plan %d/%d"):format(done, #entries), table.concat(lines, "\n")
end

local function notice(_, block)
  local data = block.data
  local head = data.title or ""
  if data.severity == "error" then
    head = head:lower() == "error" and "error" or "error: " .. head
  end
  return head .. ((data.description or "") ~= "" and ": " .. data.description or "")
end

local function mail(t, block)
  if words.is_in_graph(t, block) then
    return ""
  end
  local data = block.data
  local text = content.all(data.content)
  if data.report then
    local mark, from = words.mark(data.report.status), data.mail or {}
    return joined({ ("result %s %s"):format(mark, from.agent or ""), from.name or "", words.report_of(data) }), text
  elseif not data.content then
    return ("data from %s, for no model to read"):format(words.sender_of(data))
  end
  return data.queue == "waiting" and "" or ("%s ❯ %s"):format(words.sender_of(data), marked(data, text))
end

--- Returns how a question was answered.
function M.answer(data)
  local lasts = (data.scope == "session" or data.scope == "project") and " for the " .. data.scope or ""
  return (data.outcome or "") .. lasts .. ((data.reason or "") ~= "" and ": " .. data.reason or "")
end

--- Returns what a yes that lasts would allow, as a line.
function M.extent(t, question)
  if questions.form(question) then
    return "The answer goes to the server " .. question.form.server
  end
  if #(question.remember or {}) == 0 then
    return "No lasting yes: Magy cannot tell what it would allow"
  end
  local head = questions.spawns(question) and "Any yes would allow" or "A lasting yes would allow"
  return ("%s: %s"):format(head, table.concat(questions.covers(t, question), ", "))
end

local function question(t, block)
  local data = block.data
  local one = data.question
  local title = one and one.title or "A question"
  if data.outcome or not one then
    return "? " .. joined({ title, M.answer(data) })
  end
  local by = questions.asker(t, one)
  local lines = { parts_text(one.content):gsub("\n$", ""), "asked because: " .. one.rule, M.extent(t, one) }
  return ("? %s%s"):format(title, by ~= "" and ("  (asked by %s)"):format(by) or ""), joined(lines, "\n")
end

--- Returns what was said so far, the deltas since the last call joined to it.
local function said(data)
  if data.more and #data.more > 0 then
    data.text = (data.text or "") .. table.concat(data.more)
    data.more = {}
  end
  return data.text or ""
end

local KINDS = {
  user = function(_, block)
    local data = block.data
    return data.queue == "waiting" and "" or marked(data, content.all(data.content))
  end,
  agent = function(_, block)
    return said(block.data)
  end,
  thought = function(_, block)
    return "Thinking", said(block.data)
  end,
  tool = tool,
  plan = plan,
  notice = notice,
  mail = mail,
  question = question,
}

--- Returns of a block its head, what is below it, and the rule that decided about it, all harmless.
--- Head and below are "" if the block is not shown. `narrow`: no drawing of 73 columns fits.
function M.block(t, block, narrow)
  local head, below, rule = KINDS[block.kind](t, block, narrow)
  return harmless(head), (harmless(below or ""):gsub("%s+$", "")), harmless(rule or "")
end

--- Returns what a question is about in full: the command or the diff, as lines of text.
function M.subject(one)
  return (harmless(parts_text(one.content)):gsub("%s+$", ""))
end

return M
