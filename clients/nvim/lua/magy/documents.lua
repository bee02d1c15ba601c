--- The files that are open here: the server reads and edits them as the person sees them.

local connection = require("magy.connection")
local events = require("magy.events")
local projects = require("magy.project")

local M = {}

local group = vim.api.nvim_create_augroup("magy.documents", {})

local function is_file(buf)
  return vim.api.nvim_buf_is_loaded(buf)
    and vim.bo[buf].buftype == ""
    and vim.api.nvim_buf_get_name(buf) ~= ""
    and not vim.api.nvim_buf_get_name(buf):find("^%a[%w+.-]*://")
end

-- What the file was when its text was read or saved: another program may write it later.

local function stamp(buf)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf))
  return stat and ("%d.%d %d"):format(stat.mtime.sec, stat.mtime.nsec, stat.size) or "none"
end

local function note(buf)
  vim.b[buf].magy_stamp = stamp(buf)
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufWritePost" }, {
  group = group,
  callback = function(event)
    if vim.b[event.buf].magy_stamp then
      note(event.buf)
    end
  end,
})

--- Has Neovim look at the file itself: text that nobody changed is read again.
local function look(buf)
  if not vim.bo[buf].modified then
    vim.cmd.checktime({ args = { tostring(buf) }, mods = { silent = true } })
  end
end

local function attach(project, buf)
  if not is_file(buf) or project.client == nil or vim.lsp.buf_is_attached(buf, project.client.id) then
    return
  end
  if projects.root_of(buf) == project.root then
    if not vim.b[buf].magy_stamp then
      look(buf)
      note(buf)
    end
    vim.lsp.buf_attach_client(buf, project.client.id)
  end
end

events.on("ready", function(project)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    attach(project, buf)
  end
end)

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "BufWritePost" }, {
  group = group,
  callback = function(event)
    if not is_file(event.buf) then
      return
    end
    local project = projects.here(event.buf)
    if projects.alive(project) then
      attach(project, event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd("LspAttach", {
  group = group,
  callback = function(event)
    if projects.of_client(event.data.client_id) and not vim.b[event.buf].magy_stamp then
      note(event.buf)
    end
  end,
})

local canonical = {} -- buffer -> {name, path without links}: looked up once for each name

local function path_of(buf, name)
  local known = canonical[buf]
  if not known or known[1] ~= name then
    known = { name, vim.uv.fs_realpath(name) or name }
    canonical[buf] = known
  end
  return known[2]
end

vim.api.nvim_create_autocmd("BufWipeout", {
  group = group,
  callback = function(event)
    canonical[event.buf] = nil
  end,
})

--- Returns the loaded buffer of a file, or nil. None is made.
function M.buffer_of(uri)
  local fine, path = pcall(vim.uri_to_fname, uri)
  for _, buf in ipairs(fine and vim.api.nvim_list_bufs() or {}) do
    if is_file(buf) then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or path_of(buf, name) == path then
        return buf
      end
    end
  end
end

--- Returns why a buffer cannot take an edit that was made for `version`, or nil if it can.
local function refusal(buf, version)
  if not buf then
    return "The file is not open in Neovim."
  end
  local name, now = vim.fs.basename(vim.api.nvim_buf_get_name(buf)), vim.lsp.util.buf_versions[buf]
  if version and now and version ~= now then
    return ("%s is at version %d, the edit is for %d."):format(name, now, version)
  elseif not vim.bo[buf].modifiable or vim.bo[buf].readonly then
    return ("%s is read-only in Neovim."):format(name)
  elseif vim.b[buf].magy_stamp and vim.b[buf].magy_stamp ~= stamp(buf) then
    return ("%s was changed on disk; read it again first (:edit)."):format(name)
  end
end

--- Ends the step of undo that the person may be in.
local function new_step(buf)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("let &l:undolevels = &l:undolevels")
  end)
end

--- Makes edits of one buffer: one step of undo, and one with those of the same turn before it, if nothing
--- else changed the buffer in between.
local function apply(project, buf, edits)
  local step = vim.b[buf].magy_step or {}
  local joins = project.turn and step.turn == project.turn and step.tick == vim.b[buf].changedtick
  if joins then
    vim.api.nvim_buf_call(buf, function()
      joins = pcall(vim.cmd.undojoin)
    end)
  end
  if not joins then
    new_step(buf)
  end
  vim.lsp.util.apply_text_edits(edits, buf, project.client.offset_encoding)
  vim.b[buf].magy_step = { turn = project.turn or vim.NIL, tick = vim.b[buf].changedtick }
end

connection.answer("workspace/applyEdit", function(project, params)
  local all = {}
  for _, change in ipairs(params.edit.documentChanges or {}) do
    if change.kind then
      return { applied = false, failureReason = ("Neovim does not %s files for Magy."):format(change.kind) }
    end
    local buf = M.buffer_of(change.textDocument.uri)
    local why = refusal(buf, change.textDocument.version)
    if why then
      return { applied = false, failureReason = why }
    end
    table.insert(all, { buf = buf, edits = change.edits })
  end
  for _, one in ipairs(all) do
    local fine, problem = pcall(apply, project, one.buf, one.edits)
    if not fine then
      return { applied = false, failureReason = tostring(problem) }
    end
  end
  return { applied = true }
end)

connection.answer("magy/editor/save", function(_, params)
  local buf = M.buffer_of(params.uri)
  if not buf or refusal(buf, params.version) then
    return { saved = false }
  end
  local tick = vim.b[buf].changedtick
  local fine = pcall(vim.api.nvim_buf_call, buf, function()
    vim.fn.mkdir(vim.fs.dirname(vim.api.nvim_buf_get_name(buf)), "p")
    vim.cmd("silent write")
  end)
  -- Saving counts as a change of the buffer, but is none of the text: the turn's next edit joins the last.
  local step = vim.b[buf].magy_step
  if step and step.tick == tick then
    vim.b[buf].magy_step = { turn = step.turn, tick = vim.b[buf].changedtick }
  end
  return { saved = fine and not vim.bo[buf].modified }
end)

--- Has Neovim look at the files that a call changed: one that another editor's buffer was edited for, or
--- that the server wrote itself.
local function look_at_changed(news)
  for _, part in ipairs(news.status == "completed" and news.content or {}) do
    for _, change in ipairs(part.type == "diff" and part.changes or {}) do
      local buf = M.buffer_of(vim.uri_from_fname(change.path))
      if buf then
        look(buf)
      end
    end
  end
end

events.on("magy/session/update", function(project, params)
  local news = params.update or {}
  if news.sessionUpdate == "tool_call_update" then
    look_at_changed(news)
  end
  local turn = news.sessionUpdate == "state_update" and vim.tbl_get(news, "_meta", "magy", "turnId")
  if turn then
    project.turn = news.state == "running" and turn or nil
  end
end)

return M
