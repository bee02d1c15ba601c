--- Sessions: which one a view shows, attaching to it, and prompts to it.
---
--- A view is what a transcript buffer shows: {project, session, state, buf, attached, unsent}. Each project
--- has one (`project.view`), and one for each child that was looked at (`project.views`). `attached` is
--- true, a list of what waits for that, or nil. `coming` has the texts that wait for the server to be there,
--- `began` when the turn that runs was first seen (`vim.uv.now`), and `project.last` the session before this one.

local config = require("magy.config")
local connection = require("magy.connection")
local events = require("magy.events")
local fold = require("magy.state.fold")
local projects = require("magy.project")
local questions = require("magy.state.questions")
local say = require("magy.say")
local Transcript = require("magy.state.transcript")

local M = {}

local function new_view(project, session)
  return { project = project, session = session, state = Transcript.new(session), unsent = {}, coming = {} }
end

--- Returns the view of the project's own session.
function M.main(project)
  project.view = project.view or new_view(project, nil)
  return project.view
end

--- Returns the view of a child, which is made if there is none; of the project's own session, that one.
function M.view_of(project, session)
  if session == M.main(project).session then
    return project.view
  end
  project.views[session] = project.views[session] or new_view(project, session)
  return project.views[session]
end

--- Returns the views of a project that show something.
function M.views(project)
  local list = vim.tbl_values(project.views)
  table.insert(list, 1, M.main(project))
  return vim.tbl_filter(function(view)
    return view.session ~= nil
  end, list)
end

--- Returns whether a view shows a child.
function M.is_child(view)
  return view.session ~= nil and view.session:find("/", 1, true) ~= nil
end

local function changed(view)
  events.tell("changed", view)
end

--- Keeps since when the turn of a view runs, as this Neovim saw it.
local function time(view)
  view.began = view.state.state == "running" and (view.began or vim.uv.now()) or nil
end

-- Attaching -------------------------------------------------------------------------------------

local function learn_children(view)
  local root = view.session:match("^[^/]*")
  local params = { parentSessionId = root, includeClosed = true }
  connection.request(view.project, "magy/child/list", params, function(_, result)
    for _, child in ipairs(result and result.children or {}) do
      view.project.children = view.project.children or {}
      view.project.children[child.sessionId] = child
      fold.child_changed(view.state, child)
    end
    changed(view)
    events.tell("children", view.project)
  end)
end

local function attached(view, session, result, again)
  if view.session ~= session then
    return
  end
  if again and result.headSeq < view.state.seq then
    -- It is another session with the same id: begin anew with it.
    view.state, view.attached = Transcript.new(session), nil
    return M.attach(view)
  end
  fold.attached(view.state, result, again)
  time(view)
  local waiting = type(view.attached) == "table" and view.attached or {}
  view.attached = true
  changed(view)
  events.tell("questions", view.project)
  learn_children(view)
  for _, next in ipairs(waiting) do
    next()
  end
end

--- Attaches a view to its session: from the last entry that it has, or with the last turns.
function M.attach(view, next)
  local session, again = view.session, view.state.seq > 0
  view.attached = type(view.attached) == "table" and view.attached or {}
  table.insert(view.attached, next)
  local method = M.is_child(view) and "magy/session/subscribe" or "magy/session/resume"
  -- The last entry is read again, since it may have been cut in two.
  local from = again and { seq = math.max(0, view.state.seq - 1) } or { tail = config.get().turns }
  connection.request(view.project, method, { sessionId = session, from = from }, function(problem, result)
    if problem then
      view.attached = nil
      if view.session == session and not problem.gone then
        say.warn("%s cannot be shown: %s", session, problem.message)
      end
      return
    end
    attached(view, session, result, again)
  end)
end

--- Has a view show another session, of which nothing is known yet; nil: none.
function M.show(view, session)
  local old = view.session
  if old and old ~= session and view.attached and projects.alive(view.project) then
    connection.request(view.project, "magy/session/unsubscribe", { sessionId = old }, function() end)
  end
  view.session, view.attached, view.began = session, nil, nil
  view.state = Transcript.new(session)
  view.fresh = true
  changed(view)
  events.tell("shown", view)
end

--- Makes a new session for the project and shows it; `more` are further parameters.
function M.new(project, next, more)
  local view, id = M.main(project), say.id("nvim")
  M.show(view, id)
  view.attached = { next }
  local params = vim.tbl_extend("force", { sessionId = id, cwd = project.root }, more or {})
  connection.ask(project, "magy/session/new", params, function()
    M.attach(view)
  end, function(problem)
    M.show(view, nil)
    say.problem(problem)
    M.give_back(view, problem.message)
  end)
end

--- Calls `next` when the view is attached to a session; without any, a new one is made.
function M.ensure(view, next)
  connection.when_ready(view.project, function()
    if view.attached == true then
      next()
    elseif view.attached then
      table.insert(view.attached, next)
    elseif view.session then
      M.attach(view, next)
    else
      M.new(view.project, next)
    end
  end)
end

-- Prompts ---------------------------------------------------------------------------------------

--- Has a text shown that is sent once the server is there. Returns what is called when that is so, or not
--- any more.
function M.announce(view, text)
  local one = { text = text }
  table.insert(view.coming, one)
  view.state:frame()
  changed(view)
  return function()
    view.coming = vim.tbl_filter(function(other)
      return other ~= one
    end, view.coming)
    view.state:frame()
    changed(view)
  end
end

--- Returns the texts that are sent but not with the server yet.
function M.on_its_way(view)
  local texts = vim.tbl_map(function(prompt)
    return prompt.blocks[1] and prompt.blocks[1].text or ""
  end, view.unsent)
  for _, one in ipairs(view.coming) do
    table.insert(texts, one.text)
  end
  return texts
end

local function forget(view, prompt)
  view.unsent = vim.tbl_filter(function(one)
    return one ~= prompt
  end, view.unsent)
  view.state:frame()
  changed(view)
end

--- Gives prompts that the server did not take back to who wrote them.
function M.give_back(view, why)
  local unsent = view.unsent
  view.unsent = {}
  view.state:frame()
  changed(view)
  for _, prompt in ipairs(unsent) do
    events.tell("refused", view, prompt.blocks, why)
  end
end

local function send(view, prompt)
  local project = view.project
  if prompt.client == project.client then
    return
  end
  prompt.client = project.client
  prompt.session = prompt.session or view.session
  local method = "magy/session/prompt"
  local params =
    { sessionId = prompt.session, messageId = prompt.id, prompt = prompt.blocks, delivery = prompt.delivery }
  if prompt.session:find("/", 1, true) then
    method = "magy/child/send"
    local how = prompt.delivery == "auto" and "steer" or prompt.delivery
    params = { sessionId = prompt.session, requestKey = prompt.id, prompt = prompt.blocks, delivery = how }
  end
  connection.request(project, method, params, function(problem)
    if problem and problem.gone then
      return -- it goes to the next server
    end
    forget(view, prompt)
    if problem then
      events.tell("refused", view, prompt.blocks, problem.message)
      say.problem(problem)
    end
  end)
end

--- Sends content blocks as a prompt; `delivery`: auto, queue or interrupt. It is kept until the server has
--- accepted it: if the server dies before, it goes to the next one.
function M.prompt(view, blocks, delivery)
  local prompt = { id = say.id("prompt"), blocks = blocks, delivery = delivery or "auto" }
  table.insert(view.unsent, prompt)
  view.state:frame()
  changed(view)
  M.ensure(view, function()
    send(view, prompt)
  end)
end

-- What the server says --------------------------------------------------------------------------

events.on("magy/session/update", function(project, params)
  for _, view in ipairs(M.views(project)) do
    if view.session == params.sessionId and view.attached then
      fold.update(view.state, params.update)
      time(view)
      changed(view)
      say.event("MagySessionUpdate", { session = params.sessionId, update = params.update })
      local news = type(params.update) == "table" and params.update or {}
      if news.sessionUpdate == "_magy_interaction" then
        events.tell("questions", project)
      elseif news.sessionUpdate == "state_update" and news.state == "idle" then
        say.event("MagyTurnEnded", { session = params.sessionId })
      end
    end
  end
end)

events.on("magy/interaction/changed", function(project, params)
  for _, view in ipairs(M.views(project)) do
    questions.changed(view.state, params)
    changed(view)
  end
  events.tell("questions", project)
end)

events.on("magy/child/changed", function(project, params)
  for _, view in ipairs(M.views(project)) do
    fold.child_changed(view.state, params.child)
    changed(view)
  end
end)

--- Finds the session of the project in which something was said last, other than `except`; `done` gets it, or nil.
function M.find_last(project, except, done, failed, cursor)
  local params = { cwd = project.root, only = true, limit = 100, cursor = cursor }
  connection.ask(project, "magy/session/list", params, function(result)
    local page = result or { sessions = {} }
    local last = vim.iter(page.sessions):find(function(one)
      return one.agent ~= "rewrite" and one.cwd == project.root and one.sessionId ~= except and (one.turns or 0) > 0
    end)
    if last or not page.nextCursor then
      return done(last)
    end
    M.find_last(project, except, done, failed, page.nextCursor)
  end, failed)
end

--- Learns which session of the project was the last, while none is shown: it is offered.
local function learn_last(project)
  M.find_last(project, nil, function(last)
    project.last = last
    M.main(project).state:frame()
    changed(project.view)
  end, function() end)
end

events.on("ready", function(project)
  if not M.main(project).session then
    learn_last(project)
  end
  for _, view in ipairs(M.views(project)) do
    if view.state.seq > 0 or #view.unsent > 0 then
      M.attach(view, function()
        for _, prompt in ipairs(view.unsent) do
          send(view, prompt)
        end
      end)
    end
  end
end)

events.on("died", function(project, unexpected)
  for _, view in ipairs(M.views(project)) do
    view.attached, view.coming = nil, {}
    view.state:drop_streamed()
    view.state.state, view.state.open, view.state.asked = "idle", {}, {}
    if unexpected then
      local block = view.state:ensure("notice", say.id("death"), 0)
      block.streamed = false
      view.state:merge(block, {
        severity = "warning",
        title = "Interrupted",
        description = project.problem .. "  The next command starts it again and goes on.",
      })
    end
    changed(view)
  end
  if unexpected and not M.main(project).session then
    M.give_back(project.view, project.problem)
  end
  events.tell("questions", project)
end)

return M
