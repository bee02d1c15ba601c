--- What is under review in a project: which files, and the hunks of those that are open here.
---
--- `project.review` has the entries of the server by key, `project.hunks` whole files by key. A key is a
--- URI, with "#proposed" behind it for what is only proposed.

local connection = require("magy.connection")
local documents = require("magy.documents")
local events = require("magy.events")
local projects = require("magy.project")
local say = require("magy.say")

local M = {}

--- Returns the key of an entry or a file.
function M.key(file)
  return file.uri .. (file.mode == "proposed" and "#proposed" or "")
end

--- Asks for the hunks of a file; `done` gets the file, or nil if nothing of it is under review.
function M.get(project, entry, done)
  local params = { uri = entry.uri, proposed = entry.mode == "proposed" }
  connection.request(project, "magy/review/get", params, function(problem, result)
    if not problem then
      done(result.file)
    end
  end)
end

--- Takes a file as the server has it now, and has it drawn; nil: it has left the review.
function M.take(project, entry, file)
  project.hunks = project.hunks or {}
  project.hunks[M.key(entry)] = file
  events.tell("review", project, entry.uri)
end

local function refresh(project, entry)
  if documents.buffer_of(entry.uri) then
    M.get(project, entry, function(file)
      M.take(project, entry, file)
    end)
  end
end

local function told(project, entries)
  project.review = project.review or {}
  for _, entry in ipairs(entries) do
    local key = M.key(entry)
    if entry.pending == 0 then
      project.review[key] = nil
      M.take(project, entry, nil)
    else
      project.review[key] = entry
      refresh(project, entry)
    end
  end
  vim.cmd.redrawstatus({ bang = true })
  say.event("MagyReviewChanged", { root = project.root, files = entries })
end

events.on("magy/review/changed", function(project, params)
  told(project, params.files or {})
end)

--- Asks which files are under review; `done` is called once all are known.
function M.list(project, done)
  local found = {}
  local function page(cursor)
    connection.request(project, "magy/review/list", { cwd = project.root, cursor = cursor }, function(problem, result)
      if problem then
        return say.problem(problem)
      end
      vim.list_extend(found, result.files)
      if result.nextCursor then
        return page(result.nextCursor)
      end
      project.review = {}
      told(project, found)
      if done then
        done(found)
      end
    end)
  end
  page(nil)
end

--- Says, the first time that the server is there, how many changes an earlier day or another editor left.
local function greet(project, entries)
  local count = 0
  for _, entry in ipairs(entries) do
    count = count + entry.pending
  end
  if count > 0 and not project.greeted then
    local words = count == 1 and "1 change waits" or ("%d changes wait"):format(count)
    say.info("In %s %s for a decision: `:Magy review`.", project.name, words)
  end
  project.greeted = true
end

events.on("ready", function(project)
  M.list(project, function(entries)
    greet(project, entries)
  end)
end)

events.on("died", function(project)
  local uris = {}
  for _, entry in pairs(project.review or {}) do
    uris[entry.uri] = true
  end
  project.review, project.hunks = {}, {}
  for uri in pairs(uris) do
    events.tell("review", project, uri)
  end
end)

vim.api.nvim_create_autocmd("LspAttach", {
  group = vim.api.nvim_create_augroup("magy.review", {}),
  callback = function(event)
    local project = projects.of_client(event.data.client_id)
    for _, entry in pairs(project and project.review or {}) do
      if documents.buffer_of(entry.uri) == event.buf then
        refresh(project, entry)
      end
    end
  end,
})

--- Returns the files under review of a project, sorted by path.
function M.entries(project)
  local list = vim.tbl_values(project.review or {})
  table.sort(list, function(a, b)
    return a.path < b.path
  end)
  return list
end

--- Returns the files with hunks of a buffer: what is applied, then what is proposed.
function M.files_of(project, buf)
  local found = vim.tbl_filter(function(file)
    return documents.buffer_of(file.uri) == buf
  end, vim.tbl_values(project.hunks or {}))
  table.sort(found, function(a, b)
    return a.mode < b.mode
  end)
  return found
end

return M
