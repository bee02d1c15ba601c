--- Agents below a session: a window with their tree, and what one does with them.

local buffers = require("magy.view.buffer")
local connection = require("magy.connection")
local events = require("magy.events")
local one_line = require("magy.state.harmless").one_line
local projects = require("magy.project")
local prompt = require("magy.prompt")
local say = require("magy.say")
local session = require("magy.session")
local special = require("magy.special")
local words = require("magy.state.words")

local api = vim.api

local M = {}

-- buffer -> {project, session, rows = line -> child, closed = whether closed ones are shown}
local trees = {}

local KEYS = {
  { "<CR>", "transcript", "go to its transcript" },
  { "m", "message", "say something to it" },
  { "a", "answer", "answer what it asks" },
  { "s", "stop", "stop what it does" },
  { "w", "wait", "be told when it is done" },
  { "x", "close", "close it" },
  { "X", "cancel", "close it and stop what it does" },
  { "+", "spawn", "give a task to a new agent below it" },
  { ".", "closed", "show or hide those that are closed" },
  { "q", "quit", "close this window" },
}

M.keys = KEYS

local function children_of(project, parent, closed)
  local list = {}
  for _, child in pairs(project.children or {}) do
    if child.parentSessionId == parent and (closed or child.state ~= "closed") then
      table.insert(list, child)
    end
  end
  table.sort(list, function(a, b)
    return a.createdAt < b.createdAt
  end)
  return list
end

local function add_rows(tree, parent, depth, lines)
  for _, child in ipairs(children_of(tree.project, parent, tree.closed)) do
    local asked, life = words.life_of(child)
    local parts = vim.tbl_map(one_line, { child.agent, child.name, asked, life, child.said })
    table.insert(lines, ("  "):rep(depth) .. words.mark(child.state) .. " " .. words.joined(parts))
    tree.rows[#lines] = child
    add_rows(tree, child.sessionId, depth + 1, lines)
  end
end

local function draw(buf)
  local tree = trees[buf]
  local view = session.main(tree.project)
  local lines = { ("%s %s"):format(words.mark(view.state.state), one_line(view.state.title or tree.project.name)) }
  tree.session, tree.rows = view.session, {}
  if view.session then
    add_rows(tree, view.session, 1, lines)
  end
  if #lines == 1 then
    table.insert(lines, "  There are no agents; + gives a task to one.")
  end
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

local function redraw(project)
  for buf, tree in pairs(trees) do
    if tree.project == project and api.nvim_buf_is_loaded(buf) then
      draw(buf)
    end
  end
end

events.on("children", redraw)
events.on("shown", function(view)
  for buf, tree in pairs(trees) do
    if tree.project == view.project and view == session.main(view.project) then
      local other = tree.session and tree.session ~= view.session
      for _, window in ipairs(other and vim.fn.win_findbuf(buf) or {}) do
        pcall(api.nvim_win_close, window, false) -- it was opened for that one; the last window stays
      end
      draw(buf)
    end
  end
end)
events.on("magy/session/update", function(project, params)
  local news = params.update or {}
  if news.sessionUpdate == "state_update" or news.sessionUpdate == "session_info_update" then
    redraw(project)
  end
end)
events.on("magy/child/changed", function(project, params)
  project.children = project.children or {}
  local before = project.children[params.child.sessionId]
  project.children[params.child.sessionId] = not params.deleted and params.child or nil
  redraw(project)
  local ended = ({ completed = true, failed = true, cancelled = true })[params.child.state]
  if ended and not (before and before.state == params.child.state and before.turns == params.child.turns) then
    say.event("MagyAgentDone", { session = params.child.sessionId, state = params.child.state })
  end
end)

--- Goes to the transcript of a child, with its prompt below: what is written there steers it.
function M.show(project, id)
  local view = session.view_of(project, id)
  prompt.show(view)
  connection.when_ready(project, function()
    session.ensure(view, function()
      buffers.go_to_end(view)
    end)
  end)
end

local function close(project, child, mode)
  local params = { sessionId = child.sessionId, mode = mode }
  connection.ask(project, "magy/child/close", params, function(result)
    say.info("%d closed.", #result.closed)
  end)
end

local function wait(project, child)
  local params = { sessionIds = { child.sessionId }, ["until"] = "all", timeoutMs = 86400000 }
  say.info("You are told when %s is done.", words.child_name(child))
  connection.ask(project, "magy/child/wait", params, function(result)
    local one = result.results[1]
    if one then
      say.info("%s: %s. %s", words.child_name(one.child), one.child.state, one.text)
    end
  end)
end

local function message(project, child)
  say.ask(("To %s: "):format(words.child_name(child)), function(text)
    session.prompt(session.view_of(project, child.sessionId), { { type = "text", text = text } }, "auto")
  end)
end

local function stop(project, child)
  connection.ask(project, "magy/session/cancel", { sessionId = child.sessionId }, function(result)
    say.info(result.cancelled and "Stopped." or "It does nothing.")
  end)
end

--- Has the person choose an agent and write a task for it, below the session of `view`; `along` is a list
--- of further content blocks. `--worktree` may stand before the task, or instead of it.
function M.spawn(view, along, agent, task)
  local rest, worktree = special.switched(task or "")
  local function with_agent(name)
    if rest ~= "" then
      return special.spawn(view, name, task, along)
    end
    local where = worktree and " (on a branch of its own)" or ""
    say.ask(("Task of %s%s: "):format(name, where), function(text)
      special.spawn(view, name, worktree and "--worktree " .. text or text, along)
    end)
  end
  if agent then
    return with_agent(agent)
  end
  connection.ask(view.project, "magy/agent/list", { cwd = view.project.root }, function(result)
    local offered = vim.tbl_filter(function(one)
      return one.mode ~= "primary"
    end, result.agents)
    vim.ui.select(offered, {
      prompt = "Agent",
      format_item = function(one)
        return ("%s: %s"):format(one.name, one.description)
      end,
    }, function(chosen)
      if chosen then
        with_agent(chosen.name)
      end
    end)
  end)
end

local function act(buf, what)
  local tree = trees[buf]
  local child = tree.rows[api.nvim_win_get_cursor(0)[1]]
  local main = session.main(tree.project)
  if what == "closed" then
    tree.closed = not tree.closed
    return draw(buf)
  elseif what == "quit" then
    return api.nvim_win_close(0, false)
  elseif what == "spawn" then
    return M.spawn(child and session.view_of(tree.project, child.sessionId) or main)
  elseif what == "answer" then
    return require("magy.panel").answer()
  elseif what == "transcript" and child then
    return M.show(tree.project, child.sessionId)
  elseif what == "transcript" then
    return prompt.show(main)
  elseif not child then
    return say.info("No agent is here.")
  end
  local actions = { message = message, stop = stop, wait = wait }
  if actions[what] then
    return actions[what](tree.project, child)
  end
  close(tree.project, child, what == "cancel" and "cancel" or "finish")
end

local function make(project)
  local buf = api.nvim_create_buf(false, true)
  trees[buf] = { project = project, rows = {}, closed = false }
  pcall(api.nvim_buf_set_name, buf, ("magy://%s/agents"):format(project.name))
  vim.b[buf].magy_root = project.root
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].filetype = "magy-agents"
  for _, one in ipairs(KEYS) do
    vim.keymap.set("n", one[1], function()
      act(buf, one[2])
    end, { buffer = buf, nowait = true, desc = "Magy: " .. one[3] })
  end
  vim.keymap.set("n", "g?", "<Plug>(magy-help)", { buffer = buf, desc = "Magy: help" })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      trees[buf] = nil
    end,
  })
  return buf
end

--- Opens the tree of the agents of this project.
function M.open()
  local project = projects.here(0)
  local buf
  for one, tree in pairs(trees) do
    buf = tree.project == project and api.nvim_buf_is_loaded(one) and one or buf
  end
  buf = buf or make(project)
  vim.cmd.stopinsert()
  local window = vim.fn.bufwinid(buf)
  if window == -1 then
    vim.cmd(("botright %dsplit"):format(math.max(4, math.min(8, math.floor(vim.o.lines / 5)))))
    window = api.nvim_get_current_win()
    api.nvim_win_set_buf(window, buf)
    buffers.window_options(window, "agents")
    vim.wo[window][0].wrap = false
    vim.wo[window][0].cursorline = true
    vim.wo[window][0].winfixheight = true
    vim.wo[window][0].winbar = " <CR> transcript  m say  a answer  s stop  x close  + new  . closed  q quit"
  end
  api.nvim_set_current_win(window)
  draw(buf)
  connection.when_ready(project, function()
    local view = session.main(project)
    if view.session and not view.attached then
      session.attach(view)
    end
  end)
end

return M
