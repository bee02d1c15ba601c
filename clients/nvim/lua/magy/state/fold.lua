--- Applies what the server says of a session to its transcript.

local queue = require("magy.state.queue")
local questions = require("magy.state.questions")
local restored = require("magy.state.restored")
local sums = require("magy.state.sums")
local text_of = require("magy.state.text_of").text_of

local M = {}

local TAIL = 2000 -- bytes that are kept of a running tool's output

local ENDS = {
  refusal = "The model refused",
  max_tokens = "The reply became too long",
  max_requests = "Too many requests",
  max_turn_tokens = "Too many tokens",
  max_cost = "Too expensive",
  max_run = "The whole run is at its cap",
  max_time = "Out of time",
  loop = "A loop",
  stray_call = "A tool call came as text",
}

local function about(news)
  return news._meta and news._meta.magy or {}
end

local function stream(t, kind, id, text)
  local block = t:ensure(kind, id, 0)
  if not block.data.whole then
    -- Joined when it is drawn: joining at each delta would copy the text so far thousands of times.
    block.data.more = block.data.more or {}
    table.insert(block.data.more, text)
    t:touch(block)
  end
end

--- Without any text, a reply begins anew, and what was streamed of it is void.
local function message(t, kind, id, text, seq)
  if text == "" then
    return t:remove(id)
  end
  local block = t:ensure(kind, id, seq)
  local known = block.data.whole
  block.data.text, block.data.more = (text:gsub("%s+$", "")), nil
  block.data.whole = true
  if not (known and t.page) then
    t:touch(block)
  end
end

--- Has the results drawn anew of which a graph that came, or is void, shows the tasks.
local function touch_results(t, call)
  t:back(function(block)
    if block.kind == "mail" then
      t:touch(block)
    end
    return block == call
  end)
end

local function tool_call(t, news, seq)
  local block, more = t:ensure("tool", news.toolCallId, seq), about(news)
  local had = block.data.graph ~= nil
  if t.answered[block.id] then
    t:touch(t.answered[block.id])
  end
  t:merge(block, {
    title = news.title,
    status = news.status,
    name = news.name,
    input = news.rawInput,
    parts = news.content,
    -- What comes of the call takes its place; a diff then says what did happen.
    code = more.decision and news.content and vim.tbl_filter(function(part)
      return part.type == "content"
    end, news.content) or nil,
    locations = news.locations,
    sort = news.kind,
    decision = more.decision,
    graph = more.graph,
    deliberation = more.deliberation,
    ended = more.status,
    duration = more.duration,
  })
  if news.status == "completed" or news.status == "failed" or news.status == "cancelled" then
    block.data.tail = nil
    -- What streamed of it is not how it ended.
    block.data.graph, block.data.deliberation = more.graph, more.deliberation
  end
  if had ~= (block.data.graph ~= nil) then
    touch_results(t, block)
  end
end

local function output(t, id, text)
  local block = t:ensure("tool", id, 0)
  local tail = (block.data.tail or "") .. text:sub(-2 * TAIL)
  if #tail > TAIL then
    tail = tail:sub(-TAIL)
    local line = tail:find("\n[^\n]")
    if line then
      tail = tail:sub(line + 1)
    end
  end
  t:merge(block, { tail = tail })
end

--- Each turn shows its own plan.
local function plan(t, news, seq)
  local turn = ""
  t:back_here(function(block)
    local where = block.data.queue
    if (block.kind == "user" or block.kind == "mail") and where ~= "waiting" and where ~= "dropped" then
      turn = block.id
      return true
    end
  end)
  local entries = news.plan.entries
  t:merge(t:ensure("plan", "plan " .. turn, seq), { entries = entries })
end

local function notice(t, news, seq)
  if news.title == "Restored" then
    return -- `_magy_restored` said so
  end
  if news.title == "Resumed" and not t.page then
    t:drop_streamed()
  end
  local id = seq > 0 and ("notice %d %s"):format(seq, news.title) or "notice now " .. news.title
  t:merge(t:ensure("notice", id, seq), {
    severity = news.severity,
    title = news.title,
    description = news.description,
  })
end

local function mail(t, news, seq)
  if news.mail.payload ~= "signal" then
    t:merge(t:ensure("mail", news.mail.id, seq), { mail = news.mail, content = news.content, report = news.report })
  end
end

--- Returns the prompt of the turn that is read, or nil.
local function prompt_of_turn(t)
  local found
  t:back_here(function(block)
    found = block.kind == "user" and block.data.queue ~= "waiting" and block or nil
    return found ~= nil
  end)
  return found
end

--- Adds what one request took to the prompt that it was for. Entries may come twice.
local function count_for_prompt(t, more, seq)
  local block = prompt_of_turn(t)
  local data = block and block.data or {}
  if not more.usage or seq == 0 or seq <= (data.counted or 0) then
    return
  end
  local spent = block and (data.spent or sums.nothing()) or t.orphans
  sums.add(spent, more.usage, more.cost)
  if block then
    data.spent, data.counted = spent, seq
    t:touch(block)
  end
end

local function usage(t, news, seq)
  local more = about(news)
  count_for_prompt(t, more, seq)
  if t.page or not more.usage or seq <= t.counted then
    return
  end
  t.counted = seq
  sums.add(t.spent, more.usage, more.cost)
  -- The request of a reply is a number; titles and summaries are asked for aside.
  if tostring(more.request):match("^%d+$") and (more.usage.totalTokens or 0) > 0 then
    t.context = more.usage.totalTokens
  end
  t:frame()
end

--- Says why a turn ended, if not as it should.
local function ended(t, news, seq)
  local stop, why = about(news).stop, about(news).message or ""
  if news.state ~= "idle" or not stop or stop == "end_turn" or (stop == "cancelled" and why == "") then
    return
  end
  local words = stop:gsub("_", " "):gsub("%f[%w]%l", string.upper)
  t:merge(t:ensure("notice", "end " .. seq, seq), {
    severity = stop == "error" and "error" or "info",
    title = ENDS[stop] or words,
    description = why,
  })
end

--- Shows calls of this turn as stopped that never became part of the log.
local function stop_streamed(t)
  t:back(function(block)
    if block.streamed and block.kind == "tool" then
      t:merge(block, { status = "cancelled" })
    end
    return block.kind == "user"
  end)
end

local function state(t, news, seq)
  if not t.page then
    t.state = news.state
    t:frame()
    if news.state == "idle" then
      stop_streamed(t)
    end
  end
  ended(t, news, seq)
end

--- What may be chosen stays as it was where an option does not say it.
local function options(t, changed)
  for _, option in ipairs(changed or {}) do
    t.options[option.configId] = option.currentValue
    if option.options and #option.options > 0 then
      t.choices[option.configId] = option.options
    end
  end
end

--- What is about now, and not about then: these say nothing while an older page is read.
local NOW = {
  session_info_update = function(t, news)
    t.title = news.title or t.title
  end,
  config_option_update = function(t, news)
    t.window = about(news).window or t.window
    options(t, news.configOptions)
  end,
  _magy_progress = function(t, news)
    t.progress = news.text
  end,
  _magy_closed = function(t, news, seq)
    t.closed = true
    local block = t:ensure("notice", "closed " .. seq, seq)
    t:merge(block, { severity = "info", title = "Closed", description = news.reason })
  end,
}

local KINDS = {
  user_message = function(t, news, seq)
    t:merge(t:ensure("user", news.messageId, seq), { content = news.content })
  end,
  agent_message_chunk = function(t, news)
    stream(t, "agent", news.messageId, text_of(news.content))
  end,
  agent_message = function(t, news, seq)
    message(t, "agent", news.messageId, text_of(news.content), seq)
  end,
  agent_thought_chunk = function(t, news)
    stream(t, "thought", news.messageId, text_of(news.content))
  end,
  agent_thought = function(t, news, seq)
    message(t, "thought", news.messageId, text_of(news.content), seq)
  end,
  tool_call_update = tool_call,
  tool_call_content_chunk = function(t, news)
    output(t, news.toolCallId, text_of(news.content))
  end,
  plan_update = plan,
  _magy_restored = restored.restored,
  notice = notice,
  _magy_mail = mail,
  _magy_queue = queue.update,
  _magy_interaction = questions.interaction,
  usage_update = usage,
  state_update = state,
}

--- Entry `seq` of the log, or a delta if that is 0. Kinds that are not known are left out; one that
--- cannot be understood changes nothing more, and is logged.
local function apply(t, news, seq)
  if not t.page and t.progress ~= "" then
    t.progress = ""
    t:frame()
  end
  local kind = type(news) == "table" and news.sessionUpdate
  local how = KINDS[kind] or (not t.page and NOW[kind])
  if not how then
    return
  end
  local fine, problem = pcall(how, t, news, seq)
  if not fine then
    vim.lsp.log.error("Magy: an update could not be shown", problem, news)
  elseif NOW[kind] then
    t:frame()
  end
end

--- Applies the answer of `magy/session/subscribe`; `again`: it adds to what is shown.
function M.attached(t, result, again)
  if again then
    t:drop_streamed()
  end
  t.paging = true
  for _, event in ipairs(result.events) do
    apply(t, event.update, event.seq)
  end
  t.paging = false
  local summary, newest = result.summary, result.events[#result.events]
  t.seq = math.max(t.seq, result.more and (newest and newest.seq or 0) or result.headSeq)
  t.waiting = vim.deepcopy(summary.waiting or {})
  t.title = summary.session.title
  t.state = summary.session.state or "idle"
  t.counted = result.headSeq
  t.spent = sums.of(summary.usage, summary.cost)
  local context = summary.context or {}
  t.context, t.window = context.tokens or 0, context.window or 0
  options(t, summary.configOptions)
  if not again then
    t.floor = result.floorSeq
  end
  questions.summary(t, summary.interactions or {})
  t:frame()
end

--- Applies the answer of `magy/session/events`: a page before all that is shown.
function M.older(t, result)
  t.floor = result.events[1] and result.events[1].seq or 1
  local rest = t.orphans
  t.orphans = sums.nothing()
  t:in_front(function()
    for _, event in ipairs(result.events) do
      apply(t, event.update, event.seq)
    end
    local block = prompt_of_turn(t)
    if block then
      block.data.spent = block.data.spent or sums.nothing()
    end
    sums.join(block and block.data.spent or t.orphans, rest)
  end)
  local seqs = vim.tbl_keys(t.restores)
  table.sort(seqs)
  for _, seq in ipairs(seqs) do
    restored.restored(t, t.restores[seq], seq)
  end
  t:frame()
end

--- Applies one update as it comes live.
function M.update(t, news)
  local seq = type(news) == "table" and about(news).seq or 0
  apply(t, news, seq)
  t.seq = math.max(seq, t.seq)
end

--- Keeps how a child of the tree is now.
function M.child_changed(t, child)
  local known = t.children[child.sessionId]
  if known and known.updatedAt > child.updatedAt then
    return
  end
  t.children[child.sessionId] = child
  t:frame()
  local block = t:get(child.sessionId:match("[^/]*$"))
  if child.parentSessionId == t.session and block and block.kind == "tool" then
    t:touch(block)
  end
  t:back(function(one)
    if one.kind == "tool" and one.data.name and one.data.name:find("agent", 1, true) then
      t:touch(one)
    end
    return one.kind == "user"
  end)
end

--- Keeps the options that a session begins with, while there is none.
function M.begins(t, offered)
  options(t, offered)
  t:frame()
end

return M
