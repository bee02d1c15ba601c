--- What is said of blocks in a line: heads of calls, children, results.

local one_line = require("magy.state.harmless").one_line
local sums = require("magy.state.sums")

local M = {}

local MARKS = {
  completed = "✓",
  failed = "✗",
  cancelled = "⊘",
  in_progress = "▸",
  running = "▸",
  waiting = "?",
  requires_action = "?",
  closed = "▪",
  idle = "○",
}

--- Returns the mark of a call or a child in that state.
function M.mark(state)
  return MARKS[state] or "·"
end

--- Returns the text on one line of 60 characters at most; "" for what is no text.
function M.clipped(text)
  local line = one_line(type(text) == "string" and text or "")
  return vim.fn.strchars(line) > 60 and vim.fn.strcharpart(line, 0, 59) .. "…" or line
end

--- Returns the parts that are not empty, with `by` (two blanks) between them.
function M.joined(parts, by)
  local some = {}
  for _, part in ipairs(parts) do
    if part ~= "" then
      table.insert(some, part)
    end
  end
  return table.concat(some, by or "  ")
end

function M.input_of(data)
  return type(data.input) == "table" and data.input or {}
end

function M.duration(seconds)
  return seconds and seconds >= 1 and ("%.1f s"):format(seconds) or ""
end

--- Returns how a call ended, if not as it should.
function M.ended_badly(data)
  return data.ended and data.ended ~= "completed" and data.ended or ""
end

--- Returns the rule that decided about a call.
function M.rule_of(data)
  local decision = data.decision
  return decision and decision.rule ~= "" and ("%s: %s"):format(decision.action, decision.rule) or ""
end

-- Child agents ----------------------------------------------------------------------------------

--- Returns the id of the session above, or nil for a root.
function M.parent_of(session)
  return session:match("^(.+)/[^/]*$")
end

--- Returns the id of the child that a call of the session began.
function M.child_of(t, block)
  return t.session .. "/" .. block.id
end

--- Returns the id of a session as a model writes it, in full.
local function full_id(t, id)
  if type(id) ~= "string" or id == "" then
    return nil
  elseif id == "parent" then
    return M.parent_of(t.session)
  end
  return id:find("/", 1, true) and id or t.session .. "/" .. id
end

function M.child_name(child)
  return child.name ~= "" and ("%s “%s”"):format(child.agent, child.name) or child.agent
end

local function who(t, id)
  local child = t.children[full_id(t, id) or ""]
  if child then
    return M.child_name(child)
  end
  return type(id) == "string" and id ~= "" and id or "an agent"
end

--- Returns how many questions a child asks, and how it is and what it took.
function M.life_of(child)
  local asked, waiting = child.questions or 0, child.waiting or 0
  local rest = { child.state, waiting > 0 and waiting .. " wait" or "" }
  vim.list_extend(rest, sums.words(sums.of(child.usage, child.cost)))
  local questions = asked > 0 and ("%d question%s"):format(asked, asked == 1 and "" or "s") or ""
  return questions, M.joined(rest, " · ")
end

local CALLS = {
  wait_agent = function(t, input)
    local ids = type(input.job_ids) == "table" and input.job_ids or {}
    if #ids == 0 then
      return "wait for all"
    elseif #ids > 3 then
      return ("wait for %d agents"):format(#ids)
    end
    local names = vim.tbl_map(function(id)
      return who(t, id)
    end, ids)
    return "wait for " .. table.concat(names, input["until"] == "any" and " or " or ", ")
  end,
  send_agent_message = function(t, input)
    return ("tell %s: %s"):format(who(t, input.job_id), M.clipped(input.message))
  end,
  list_agents = function()
    return "list"
  end,
  close_agent = function(t, input)
    return ("%s %s"):format(input.mode == "cancel" and "cancel" or "close", who(t, input.job_id))
  end,
  rate_agent = function(t, input)
    local score = type(input.score) == "number" and ("%g"):format(input.score) or "?"
    return ("rate %s for %s: %s"):format(who(t, input.job_id), M.clipped(input.capability), score)
  end,
}

--- Returns what a call about children wants, in a line; "" for other calls.
function M.agent_call(t, data)
  local said = CALLS[data.name]
  return said and (data.input or data.decision) and said(t, M.input_of(data)) or ""
end

function M.is_spawn(data)
  return data.name == "spawn_agent"
end

--- Returns whether the child exists that a call is to spawn.
function M.begun(t, block)
  return block.data.status == "completed" or t.children[M.child_of(t, block)] ~= nil
end

--- Returns how a graph of tasks is, a line for each; those that need others stand further in.
function M.graph(graph)
  local lines, count = {}, 0
  for _, task in ipairs(graph.tasks) do
    table.insert(lines, ("  "):rep(math.min(task.depth, 8)) .. task.line .. "\n")
  end
  for _, number in pairs(graph.counts) do
    count = count + number
  end
  if count > #graph.tasks then
    table.insert(lines, ("(%d more)\n"):format(count - #graph.tasks))
  end
  return table.concat(lines)
end

--- Returns whether a block is the result of a task that a graph took, and whose graph shows the task: it
--- leads to the transcript with that result. What no graph took, say after a cancel, is for the reader.
function M.is_in_graph(t, block)
  local data = block.data
  if block.kind ~= "mail" or not data.report or data.queue ~= "dropped" then
    return false
  end
  local parent, call = (data.mail.sender or ""):match("^(.*)/([^/]+)%.[%w_-]+%.%d+$")
  local graph = parent == t.session and t:get(call)
  return graph and graph.data.graph ~= nil or false
end

--- Columns before what is below the head of a block, and of the drawing of a node's vote.
local INDENT, COLUMN = 4, 24

--- Returns the session of the agent whose task, or whose vote, a line of a block is about; the column
--- (from 0) says which of three votes.
function M.task_session(block, line, column)
  for _, task in ipairs((block.data.graph or {}).tasks or {}) do
    if line:find(task.line, 1, true) then
      return task.sessionId
    end
  end
  for at, node in ipairs((block.data.deliberation or {}).nodes or {}) do
    local drawn = select(2, line:gsub("|", "")) >= 4 and math.floor((column - INDENT) / COLUMN) + 1 == at
    if drawn or line:find("^%s*" .. node.name .. " %(") then
      return node.sessionId
    end
  end
  return nil
end

--- Returns the session that a block is about, if it is one of an agent.
function M.session_of(t, block)
  local data = block.data
  if block.kind == "mail" then
    return data.mail and data.mail.sender
  elseif block.kind ~= "tool" then
    return nil
  elseif M.is_spawn(data) then
    return M.begun(t, block) and M.child_of(t, block) or nil
  elseif M.agent_call(t, data) == "" then
    return nil
  end
  local input = M.input_of(data)
  local ids = type(input.job_ids) == "table" and input.job_ids or {}
  return full_id(t, input.job_id or (#ids == 1 and ids[1] or nil))
end

--- Returns what a call to spawn wants: its terms, and the task unless the head has it whole.
function M.wanted(input)
  local lines = {}
  for _, name in ipairs({ "model", "context", "permissions", "limits", "directory" }) do
    local value = input[name]
    if value ~= nil and value ~= "" and value ~= "none" then
      table.insert(lines, ("%s: %s\n"):format(name, type(value) == "string" and value or vim.json.encode(value)))
    end
  end
  local task = type(input.prompt) == "string" and input.prompt or ""
  local in_head = (input.task_name or "") == "" and task == M.clipped(task)
  return table.concat(lines) .. (in_head and "" or task)
end

--- Returns the task of a call to spawn, in short.
function M.task_of(input)
  return M.clipped((input.task_name or "") ~= "" and input.task_name or input.prompt)
end

--- Returns who sent a message.
function M.sender_of(data)
  return data.mail and M.child_name({ agent = data.mail.agent, name = data.mail.name or "" }) or ""
end

--- Returns how the turn of a child ended that sent a result.
function M.report_of(data)
  local report = data.report
  local parts = { report.status }
  vim.list_extend(parts, sums.words(sums.of(report.usage, report.cost)))
  table.insert(parts, (report.seconds or 0) >= 1 and ("%.0f s"):format(report.seconds) or "")
  table.insert(parts, data.queue == "waiting" and "not read yet" or "")
  return M.joined(parts, " · ")
end

return M
