--- Decisions about changes under review, and going from one to the next.

local config = require("magy.config")
local connection = require("magy.connection")
local data = require("magy.review.data")
local documents = require("magy.documents")
local draw = require("magy.review.draw")
local projects = require("magy.project")
local say = require("magy.say")
local visit = require("magy.visit")

local api = vim.api

local M = {}

M.NONE_HERE = "No change waits here; `:Magy next` goes to one."

local WORDS = { accept = "Accepted", reject = "Rejected", amend = "Amended" }

local function cursor_line()
  return api.nvim_win_get_cursor(0)[1] - 1
end

--- Returns the hunk at the cursor, or says that there is none.
local function here()
  local found = draw.at(api.nvim_get_current_buf(), cursor_line())
  if not found then
    say.info(M.NONE_HERE)
  end
  return found
end

-- Going -----------------------------------------------------------------------------------------

--- Goes to a line (from 0) of a file, and has all of a change there shown.
local function go_to(path, row)
  visit.file(path, row + 1)
  local at = draw.at(0, cursor_line())
  if at then
    draw.reveal(at)
  end
end

--- Goes to the next or previous change, in whatever file; `only`: in this buffer alone, saying nothing.
--- In this buffer it is there at once, so that a command or a macro may go on with it.
function M.go(direction, only)
  local project = projects.here(0)
  local window, buf = api.nvim_get_current_win(), api.nvim_get_current_buf()
  local row = draw.beyond(buf, cursor_line(), direction)
  if row then
    return go_to(api.nvim_buf_get_name(buf), row)
  end
  local is_file = vim.bo[buf].buftype == "" and api.nvim_buf_get_name(buf) ~= ""
  local params = { direction = direction, line = cursor_line() }
  params.uri = is_file and vim.uri_from_bufnr(buf) or nil
  params.line = is_file and params.line or 0
  connection.ask(project, "magy/review/navigate", params, function(result)
    if not result.uri then
      return not only and say.info("No change waits for a decision.")
    elseif only and (result.uri ~= params.uri or api.nvim_get_current_win() ~= window) then
      return
    end
    go_to(vim.uri_to_fname(result.uri), result.range and result.range.start.line or 0)
  end)
end

-- Deciding --------------------------------------------------------------------------------------

local function remember(project, file, result, words)
  if result.decisionId then
    project.decisions = project.decisions or {}
    table.insert(project.decisions, {
      id = result.decisionId,
      uri = file.uri,
      proposed = file.mode == "proposed",
      words = ("%s in %s"):format(words, projects.short(project, vim.uri_to_fname(file.uri))),
    })
  end
end

local function stale(result)
  for _, one in ipairs(result.results) do
    if one.state == "stale" then
      return true
    end
  end
end

--- Decides about a file; `what` says of what: {hunkIds} or {lines} or {all}. `done` is called at the end.
local function resolve(project, file, decision, what, reason, text, done)
  local params = vim.tbl_extend("force", {
    uri = file.uri,
    proposed = file.mode == "proposed",
    revision = file.revision,
    decision = decision,
    reason = reason or "",
    text = text,
    requestKey = say.id("decision"),
  }, what)
  connection.ask(project, "magy/review/resolve", params, function(result)
    remember(project, file, result, WORDS[decision])
    if documents.buffer_of(file.uri) then
      data.take(project, file, result.pending > 0 and result.file or nil)
    end
    if result.message and result.message ~= "" then
      say.warn("%s", result.message)
    elseif stale(result) then
      say.warn("The change has become another one; look at it again.")
    end
    if done then
      done(result)
    end
  end)
end

local function go_on()
  if config.get().review.go_on then
    M.go("next", true)
  end
end

local function with_reason(wanted, done)
  if not wanted then
    return done("")
  end
  vim.ui.input({ prompt = "Why (the agent is told; may stay empty): " }, function(reason)
    if reason then
      done(reason)
    end
  end)
end

local function decide_lines(decision, range, reason)
  local project = projects.here(0)
  local files = data.files_of(project, api.nvim_get_current_buf())
  if #files == 0 then
    return say.info(M.NONE_HERE)
  end
  resolve(project, files[1], decision, { lines = { start = range[1] - 1, ["end"] = range[2] } }, reason)
end

local function decide_file(decision, reason)
  local project = projects.here(0)
  local files = data.files_of(project, api.nvim_get_current_buf())
  if #files == 0 then
    return say.info(M.NONE_HERE)
  end
  for _, file in ipairs(files) do
    resolve(project, file, decision, { all = true }, reason)
  end
end

local function decide_everything(decision, reason)
  local project = projects.here(0)
  connection.awaited(project, function()
    data.list(project, function(entries)
      if #entries == 0 then
        return say.info("No change waits for a decision.")
      end
      local words = ("%s all changes in %d files"):format(decision == "accept" and "Accept" or "Reject", #entries)
      vim.ui.select({ "No", words }, { prompt = words .. "?" }, function(chosen)
        if chosen == words then
          for _, entry in ipairs(entries) do
            resolve(project, entry, decision, { all = true }, reason)
          end
        end
      end)
    end)
  end)
end

--- Accepts or rejects: what is at the cursor, the lines of a range, the file, or all files.
function M.decide(decision, args)
  local scope = args.words[1]
  local asks = decision == "reject" and (args.bang or config.get().review.ask_reason)
  if scope and scope ~= "file" and scope ~= "all" then
    return say.warn("`:Magy %s %s` is not known: say nothing, `file` or `all`.", decision, scope)
  end
  local at = not scope and not args.range and here() or nil
  if not scope and not args.range and not at then
    return
  end
  with_reason(asks, function(reason)
    if args.range then
      decide_lines(decision, args.range, reason)
    elseif scope == "file" then
      decide_file(decision, reason)
    elseif scope == "all" then
      decide_everything(decision, reason)
    else
      resolve(projects.here(0), at.file, decision, { hunkIds = { at.hunk.hunkId } }, reason, nil, go_on)
    end
  end)
end

--- Says something about the change at the cursor to the agent; "" asks for the words.
function M.comment(text)
  local at = here()
  if not at then
    return
  end
  local project = projects.here(0)
  local function send(words)
    local params = {
      uri = at.file.uri,
      proposed = at.file.mode == "proposed",
      hunkId = at.hunk.hunkId,
      text = words,
      requestKey = say.id("comment"),
    }
    connection.ask(project, "magy/review/comment", params, function(result)
      remember(project, at.file, result, "Comment")
      data.take(project, at.file, result.file)
      say.info("The agent is told.")
    end)
  end
  if text ~= "" then
    send(text)
  else
    say.ask("Comment: ", send)
  end
end

--- Opens the new lines of the change at the cursor in a window of its own: writing it puts them there.
function M.amend()
  local at = here()
  if not at then
    return
  end
  local project, filetype, window = projects.here(0), vim.bo.filetype, api.nvim_get_current_win()
  local lines = vim.split(at.hunk.newText or "", "\n", { plain = true })
  local ends = lines[#lines] == ""
  if ends then
    table.remove(lines)
  end
  vim.cmd(("belowright %dsplit"):format(math.min(#lines + 2, 15)))
  local buf = api.nvim_create_buf(false, true)
  api.nvim_win_set_buf(0, buf)
  api.nvim_buf_set_name(buf, ("magy://amend/%s"):format(at.hunk.hunkId))
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].filetype = "acwrite", "wipe", filetype
  vim.bo[buf].modified = false
  vim.wo[0][0].winbar = " New lines of the change:  :w puts them there,  :q! leaves it as it is"
  vim.b[buf].magy_root = project.root
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = vim.schedule_wrap(function()
      if api.nvim_win_is_valid(window) then
        api.nvim_set_current_win(window)
      end
    end),
  })
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n") .. (ends and "\n" or "")
      resolve(project, at.file, "amend", { hunkIds = { at.hunk.hunkId } }, "", text, function(result)
        if stale(result) or not api.nvim_buf_is_valid(buf) then
          return -- what was written stays
        end
        vim.bo[buf].modified = false
        api.nvim_buf_delete(buf, { force = true })
      end)
    end,
  })
end

-- Taking back -----------------------------------------------------------------------------------

local function take_back(project, decision)
  local params = {
    decisionId = decision.id,
    uri = decision.uri,
    proposed = decision.proposed,
    requestKey = say.id("undo"),
  }
  connection.ask(project, "magy/review/undo", params, function(result)
    project.decisions = vim.tbl_filter(function(one)
      return one ~= decision
    end, project.decisions)
    local mode = decision.proposed and "proposed" or "applied"
    data.take(project, { uri = decision.uri, mode = mode }, result.file)
    say.info("%s", (result.message or "") ~= "" and result.message or "Taken back: " .. decision.words)
  end)
end

--- Takes back the last decision, then the one before; `choose`: one that the person picks.
function M.undo(choose)
  local project = projects.here(0)
  local decisions = project.decisions or {}
  if #decisions == 0 then
    return say.info("Nothing was decided in this Neovim.")
  elseif not choose then
    return take_back(project, decisions[#decisions])
  end
  local latest = vim.iter(decisions):rev():totable()
  vim.ui.select(latest, {
    prompt = "Take back",
    format_item = function(one)
      return one.words
    end,
  }, function(chosen)
    if chosen then
      take_back(project, chosen)
    end
  end)
end

return M
