--- Questions to the person: which are open, and how others were answered.

local M = {}

--- Returns whether a session is another one, or below it.
function M.below(session, other)
  return session == other or vim.startswith(session, other .. "/")
end

local function opened(t, question)
  local id = question.interactionId
  local block = t:get(id)
  if block and block.data.outcome then
    return
  end
  local known = t.open[id]
  if not known then
    table.insert(t.asked, id)
  end
  -- The one that comes second may say who asks.
  local newer = not (known and known.path and #known.path > 0)
  local whole = vim.tbl_extend("force", newer and known or question, newer and question or known or {})
  t.open[id] = whole
  local made = t:make("question", id)
  made.data.question = whole
  t:touch(made)
  t:frame()
end

local function resolved(t, id, how)
  t.open[id] = nil
  t.asked = vim.tbl_filter(function(one)
    return one ~= id
  end, t.asked)
  t:frame()
  local block = t:get(id)
  if not block then
    return
  end
  t:merge(block, {
    outcome = how and how.outcome or block.data.outcome or "withdrawn or answered elsewhere",
    scope = how and how.scope,
    reason = how and how.reason,
  })
  if how then
    block.data.outcome = how.outcome
  end
  local asked = block.data.question
  if asked and asked.toolCallId and asked.sessionId == t.session then
    block.data.call, t.answered[asked.toolCallId] = asked.toolCallId, block
    if t:get(asked.toolCallId) then
      t:touch(t:get(asked.toolCallId))
    end
  end
end

--- What the session itself says of a question.
function M.interaction(t, news, seq)
  if news.open then
    local question = vim.tbl_extend("force", news.open, { sessionId = t.session })
    if t.paging then
      -- Whether it is open still, the summary says.
      t:merge(t:ensure("question", question.interactionId, seq), { question = question })
    else
      opened(t, question)
    end
  elseif news.resolved then
    resolved(t, news.resolved.interactionId, news.resolved)
  end
end

--- Questions of any session of the workspace were opened or resolved.
function M.changed(t, news)
  for _, question in ipairs(news.opened or {}) do
    if M.below(question.sessionId, t.session) then
      opened(t, question)
    end
  end
  for _, id in ipairs(news.resolved or {}) do
    local block = t:get(id)
    if block and block.kind == "question" then
      resolved(t, id)
    end
  end
end

--- This client answered: the words are known before the server's come.
function M.answered(t, id, outcome, scope, reason)
  if t:get(id) then
    resolved(t, id, { outcome = outcome == "allow" and "allowed" or "refused", scope = scope, reason = reason })
  end
end

--- Makes `open` the open questions of the session and of those below it.
function M.summary(t, open)
  local ids = {}
  for _, one in ipairs(open) do
    ids[one.interactionId] = true
  end
  for id in pairs(vim.deepcopy(t.open)) do
    if not ids[id] then
      resolved(t, id)
    end
  end
  M.changed(t, { opened = open })
end

--- Returns whether an answer holds for other agents, too.
function M.spawns(question)
  for _, grant in ipairs(question.remember or {}) do
    if grant.key == "agent" then
      return true
    end
  end
  return false
end

--- Returns which agent asks, and whose child it is; the agent of the session if that asks itself.
function M.asker(t, question)
  local path = question.path or {}
  if #path > 1 then
    local names = {}
    for at = #path, 1, -1 do
      local one = path[at]
      local child = one.sessionId:find("/", 2, true)
      table.insert(names, one.name ~= "" and child and ("%s “%s”"):format(one.agent, one.name) or one.agent)
    end
    return table.concat(names, ", a child of ")
  end
  return (question.agent or "") ~= "" and question.agent or t.options.agent or ""
end

local function clip(text)
  local line = text:match("^[^\n]*")
  return vim.fn.strchars(line) > 60 and vim.fn.strcharpart(line, 0, 59) .. "…" or line
end

--- Returns what an answer may allow besides: also the agents of the same reply, by name.
function M.covers(t, question)
  local all = vim.deepcopy(question.covers or {})
  local asked = question.toolCallId and t:get(question.toolCallId)
  if not asked or not M.spawns(question) or question.sessionId ~= t.session then
    return all
  end
  local reply, others = asked.id:match("^[^.]*") .. ".", {}
  t:back(function(block)
    local data = block.data
    if block == asked then
      return true
    end
    if
      block.kind == "tool"
      and vim.startswith(block.id, reply)
      and data.name == asked.data.name
      and data.status == "pending"
    then
      local input = type(data.input) == "table" and data.input or {}
      local task = (input.task_name or "") ~= "" and input.task_name or input.prompt or ""
      table.insert(others, 1, ("%s: %s"):format(input.agent or "an agent", clip(task)))
    end
  end)
  return vim.list_extend(all, others)
end

--- Returns what an MCP server wants to have filled in, or nil.
function M.form(question)
  return type(question.form) == "table" and question.form or nil
end

--- Returns the answers, {label, key, outcome, scope} each; the first refuses. What cannot be said
--- narrowly is not remembered.
function M.choices(question)
  local once = M.spawns(question) and "allow until your next prompt" or "allow once"
  if M.form(question) then
    once = #M.form(question).fields > 0 and "fill it in" or "agree"
  end
  local list = {
    { label = "refuse", key = "n", outcome = "refuse", scope = "once" },
    { label = once, key = "y", outcome = "allow", scope = "once" },
  }
  if #(question.remember or {}) > 0 then
    table.insert(list, { label = "this session", key = "s", outcome = "allow", scope = "session" })
    table.insert(list, { label = "this project", key = "p", outcome = "allow", scope = "project" })
  end
  return list
end

return M
