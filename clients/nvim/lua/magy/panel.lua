--- Questions: a panel that shows the oldest one and never takes the focus, and answers to it.
---
--- `:Magy answer` moves into the panel, where single keys answer. Leaving it leaves the question open.

local buffers = require("magy.view.buffer")
local config = require("magy.config")
local connection = require("magy.connection")
local events = require("magy.events")
local harmless = require("magy.state.harmless")
local maps = require("magy.maps")
local projects = require("magy.project")
local questions = require("magy.state.questions")
local render = require("magy.view.render")
local say = require("magy.say")
local session = require("magy.session")
local text = require("magy.state.text")
local words = require("magy.state.words")

local api = vim.api

local M = {}

local SETTLE = 400 -- milliseconds in which keys do not answer a question that has just come

local ns = api.nvim_create_namespace("magy.panel")
local panel = { buf = nil, win = nil, project = nil, question = nil, since = 0, hidden = false }

--- Returns the question to answer first, and its project: of the current project, or else of any.
function M.first()
  local status = require("magy.status")
  local here = projects.here(0)
  local list = projects.all()
  table.sort(list, function(a, b)
    return (a == here and 0 or 1) < (b == here and 0 or 1)
  end)
  for _, project in ipairs(list) do
    local open = projects.alive(project) and status.questions(project) or {}
    if open[1] then
      return open[1], project, #open
    end
  end
end

local function state_for(project, question)
  for _, view in ipairs(session.views(project)) do
    if view.session == question.sessionId then
      return view.state
    end
  end
  return session.main(project).state
end

--- Returns the keys that answer, on as many lines of that width as they take.
local function key_lines(question, width)
  local choices = questions.choices(question)
  table.insert(choices, { key = "q", label = "leave it open" })
  local lines = { "" }
  for _, choice in ipairs(choices) do
    local key = ("%s %s"):format(choice.key, choice.label)
    local longer = words.joined({ lines[#lines], key })
    if vim.fn.strdisplaywidth(longer) > width then
      table.insert(lines, key)
    else
      lines[#lines] = longer
    end
  end
  return lines
end

--- Returns the lines of the panel: what is asked, all that would run, by whom and why, and the keys.
local function lines_of(question, project, count)
  local t = state_for(project, question)
  local by = questions.asker(t, question)
  local lines = { "? " .. harmless.one_line(question.title) }
  local subject = text.subject(question)
  if subject ~= "" then
    vim.list_extend(lines, vim.split(subject, "\n", { plain = true }))
  end
  local foot = {}
  if by ~= "" then
    table.insert(foot, "asked by " .. harmless.one_line(by))
  end
  table.insert(foot, "asked because: " .. harmless.one_line(question.rule))
  table.insert(foot, harmless.one_line(text.extent(t, question)))
  if count > 1 then
    table.insert(foot, ("%d more questions wait."):format(count - 1))
  end
  return lines, foot
end

local function clipped(lines, foot, most)
  local room = math.max(1, most - #foot - 1)
  if #lines > room then
    local left = #lines - room + 1
    lines = vim.list_slice(lines, 1, room - 1)
    table.insert(lines, ("… %d more lines; :Magy answer shows them"):format(left))
  end
  return vim.list_extend(lines, foot)
end

local function buffer()
  if panel.buf and api.nvim_buf_is_valid(panel.buf) then
    return panel.buf
  end
  panel.buf = api.nvim_create_buf(false, true)
  vim.bo[panel.buf].bufhidden = "hide"
  vim.bo[panel.buf].filetype = "magy-question"
  for _, key in ipairs({ "n", "y", "s", "p" }) do
    vim.keymap.set("n", key, function()
      M.key(key)
    end, { buffer = panel.buf, nowait = true, desc = "Magy: answer the question" })
  end
  for _, key in ipairs({ "q", "<Esc>", "<C-c>" }) do
    vim.keymap.set("n", key, M.leave, { buffer = panel.buf, nowait = true, desc = "Magy: leave the question open" })
  end
  return panel.buf
end

local function fill(lines)
  local buf = buffer()
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  api.nvim_buf_set_extmark(buf, ns, 0, 0, { line_hl_group = "MagyQuestion" })
  return buf
end

local function is_focused()
  return panel.win ~= nil and api.nvim_win_is_valid(panel.win) and api.nvim_get_current_win() == panel.win
end

local function close()
  if panel.win and api.nvim_win_is_valid(panel.win) then
    api.nvim_win_close(panel.win, true)
  end
  panel.win = nil
end

--- Returns whether the cursor is in the upper half of the screen.
local function cursor_is_high()
  return api.nvim_win_get_position(0)[1] + vim.fn.winline() <= vim.o.lines / 2
end

--- Draws the panel for a question, at the edge away from the cursor. In the focus it has room for all; else
--- for `panel_height` lines.
local function show(question, project, count)
  local focused = is_focused()
  panel.low = not focused and cursor_is_high() or (focused and panel.low)
  local width = math.max(20, math.min(vim.o.columns - 4, 76))
  local most = focused and vim.o.lines - 6 or config.get().panel_height
  local lines, foot = lines_of(question, project, count)
  local hint = focused and key_lines(question, width) or { maps.way("answer") .. "  to refuse or allow" }
  vim.list_extend(foot, hint)
  lines = focused and vim.list_extend(lines, foot) or clipped(lines, foot, most)
  local buf = fill(lines)
  local place = {
    relative = "editor",
    anchor = panel.low and "SE" or "NE",
    row = panel.low and vim.o.lines - vim.o.cmdheight - 1 or (vim.o.showtabline == 2 and 1 or 0),
    col = vim.o.columns,
    width = width,
    height = math.max(1, math.min(#lines, vim.o.lines - 4)),
    style = "minimal",
    border = "single",
    title = (" Magy asks%s "):format(project == projects.here(0) and "" or " in " .. project.name),
    focusable = focused,
    zindex = 60,
  }
  if panel.win and api.nvim_win_is_valid(panel.win) then
    api.nvim_win_set_config(panel.win, place)
  else
    place.noautocmd = true
    panel.win = api.nvim_open_win(buf, false, place)
    vim.wo[panel.win].wrap = true
    vim.wo[panel.win].linebreak = true
  end
  local rows = api.nvim_win_text_height(panel.win, {}).all
  api.nvim_win_set_height(panel.win, math.max(1, math.min(rows, vim.o.lines - 4)))
end

--- Returns whether a window shows a block: all of it, or of a longer one as much as it can, to the end.
local function shows(window, view, block)
  local first = block and render.row(view, block)
  if not first then
    return false
  end
  local last = first + render.height(view, block)
  local top, bottom = unpack(api.nvim_win_call(window, function()
    return { vim.fn.line("w0"), vim.fn.line("w$") }
  end))
  return last >= top and last <= bottom and (first + 1 >= top or last - first >= bottom - top)
end

--- Returns whether the lines of the question are on the screen, in a transcript of this tab page.
local function is_seen(project, question)
  for _, view in ipairs(session.views(project)) do
    local window = questions.below(question.sessionId, view.session) and buffers.window(view)
    -- What is drawn in a moment is looked at then.
    if window and (view.due or shows(window, view, view.state:get(question.interactionId))) then
      return true
    end
  end
  return false
end

--- Shows the question that is to be answered first, or takes the panel away.
function M.update()
  local question, project, count = M.first()
  if not question then
    local was = panel.question
    close()
    panel.question, panel.project = nil, nil
    if was then
      say.event("MagyQuestionsDone", {})
    end
    return
  end
  if not panel.question or panel.question.interactionId ~= question.interactionId then
    panel.since, panel.hidden = vim.uv.now(), false
    say.event("MagyQuestion", { id = question.interactionId, agent = question.agent, title = question.title })
  end
  panel.question, panel.project = question, project
  if vim.fn.getcmdwintype() ~= "" then
    return -- no window opens from there; it is looked again when that is closed
  elseif is_focused() or not (panel.hidden or is_seen(project, question)) then
    show(question, project, count)
  else
    close()
  end
end

events.on("questions", function()
  M.update()
  vim.cmd.redrawstatus({ bang = true })
end)

events.on("drawn", function()
  if panel.question then
    M.update()
  end
end)

local group = api.nvim_create_augroup("magy.panel", {})

api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI" }, {
  group = group,
  callback = function()
    if panel.win and not is_focused() and panel.low ~= cursor_is_high() then
      M.update()
    end
  end,
})

api.nvim_create_autocmd({ "VimResized", "TabEnter", "BufWinEnter", "WinClosed", "WinScrolled" }, {
  group = group,
  callback = vim.schedule_wrap(function()
    if panel.question then
      M.update()
    end
  end),
})

--- Takes the panel away until the next question; the question stays open.
function M.hide()
  panel.hidden = true
  close()
end

--- Moves into the panel, where keys answer.
function M.answer()
  M.update()
  if not panel.question then
    return say.info("No question is open.")
  end
  if not is_focused() then
    panel.before = api.nvim_get_current_win()
  end
  if not (panel.win and api.nvim_win_is_valid(panel.win)) then
    show(panel.question, panel.project, 1)
  end
  if vim.fn.mode():find("^[iR]") then
    vim.cmd.stopinsert()
  end
  api.nvim_win_set_config(panel.win, { focusable = true })
  api.nvim_set_current_win(panel.win)
  M.update()
  api.nvim_win_set_cursor(panel.win, { 1, 0 })
end

--- Leaves the panel; the question stays open.
function M.leave()
  if panel.before and api.nvim_win_is_valid(panel.before) then
    api.nvim_set_current_win(panel.before)
  end
  close()
  M.update()
end

local function respond(project, question, outcome, scope, reason, content)
  local form = questions.form(question)
  if form and outcome == "allow" and not content then
    return require("magy.form").fill(form, function(filled)
      respond(project, question, outcome, scope, reason, filled)
    end)
  end
  local params = {
    interactionId = question.interactionId,
    sessionId = question.sessionId,
    outcome = outcome,
    scope = scope,
    reason = reason,
    content = content and next(content) and content or nil,
  }
  connection.ask(project, "magy/interaction/respond", params, function(result)
    if not result.accepted then
      return say.info("The question was answered before: %s.", result.winner or "by another")
    end
    for _, view in ipairs(session.views(project)) do
      questions.answered(view.state, question.interactionId, outcome, scope, reason)
      events.tell("changed", view)
    end
    events.tell("questions", project)
  end)
end

local function refuse(project, question)
  if questions.form(question) then
    respond(project, question, "refuse", "once", "")
    return is_focused() and M.leave()
  end
  vim.ui.input({ prompt = "Refuse; why (may stay empty): " }, function(reason)
    if reason then
      respond(project, question, "refuse", "once", reason)
      if is_focused() then
        M.leave()
      end
    end
  end)
end

--- Answers the question in the panel by one of its keys.
function M.key(key)
  local question, project = panel.question, panel.project
  if not question then
    return M.leave()
  elseif vim.uv.now() - panel.since < SETTLE then
    return say.info("This question has only just come; read it first.")
  end
  for _, choice in ipairs(questions.choices(question)) do
    if choice.key == key and choice.outcome == "refuse" then
      return refuse(project, question)
    elseif choice.key == key then
      respond(project, question, choice.outcome, choice.scope, "")
      return M.leave()
    end
  end
  say.info("Magy cannot tell what a lasting yes would allow.")
end

--- Allows what is asked, for `scope`: once, session or project.
function M.allow(scope)
  local question, project = M.first()
  if not question then
    return say.info("No question is open.")
  end
  for _, choice in ipairs(questions.choices(question)) do
    if choice.outcome == "allow" and choice.scope == scope then
      if questions.spawns(question) and scope == "once" then
        say.info("Until your next prompt agents may be given such tasks.")
      end
      return respond(project, question, "allow", scope, "")
    end
  end
  say.warn("Magy cannot tell what a yes for the %s would allow.", scope)
end

--- Refuses what is asked; without a reason, the person is asked for one.
function M.refuse(reason)
  local question, project = M.first()
  if not question then
    return say.info("No question is open.")
  elseif reason and reason ~= "" then
    return respond(project, question, "refuse", "once", reason)
  end
  refuse(project, question)
end

return M
