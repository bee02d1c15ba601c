--- What a person left when Neovim ended: the prompt that was not sent, and how many changes waited. It is
--- kept in a file for each project, which only the person can read.

local projects = require("magy.project")
local say = require("magy.say")

local M = {}

local function path_of(root)
  return vim.fs.joinpath(M.folder(), vim.fn.sha256(root):sub(1, 32) .. ".json")
end

--- Returns the directory of the files.
function M.folder()
  return vim.fs.joinpath(vim.fn.stdpath("state"), "magy", "left")
end

local function read(root)
  local file = io.open(path_of(root))
  if not file then
    return {}
  end
  local fine, kept = pcall(vim.json.decode, file:read("*a"))
  file:close()
  return fine and type(kept) == "table" and kept or {}
end

local taken = {} -- roots whose draft a prompt has

--- Returns the prompt that was not sent, once; "" if there is none.
function M.draft(root)
  local draft = M.unread(root)
  taken[root] = true
  return draft
end

--- Returns the prompt that was not sent as long as no prompt buffer has it; "" if there is none.
function M.unread(root)
  local draft = not taken[root] and read(root).draft
  return type(draft) == "string" and draft or ""
end

--- Returns how many changes waited.
function M.waiting(root)
  local waiting = read(root).waiting
  return type(waiting) == "number" and waiting or 0
end

--- Keeps a draft and the number of changes that wait for when Neovim is in this project again.
function M.keep(project, draft)
  local path, waiting = path_of(project.root), 0
  if not projects.alive(project) then
    waiting = M.waiting(project.root)
  end
  for _, entry in pairs(project.review or {}) do
    waiting = waiting + entry.pending
  end
  if vim.trim(draft) == "" and waiting == 0 then
    os.remove(path)
    return
  end
  vim.fn.mkdir(M.folder(), "p", tonumber("700", 8))
  local fd, problem = vim.uv.fs_open(path, "w", tonumber("600", 8))
  if not fd then
    return say.warn("What is written in the prompt could not be kept: %s", problem)
  end
  vim.uv.fs_write(fd, vim.json.encode({ draft = draft, waiting = waiting }))
  vim.uv.fs_close(fd)
end

--- Says what waits in the project of the current buffer.
function M.greet()
  local project, words = projects.here(0), {}
  local waiting = M.waiting(project.root)
  if waiting > 0 then
    local many = waiting == 1 and "" or "s"
    table.insert(words, ("%d change%s waited for a decision (`:Magy review`)"):format(waiting, many))
  end
  if M.unread(project.root) ~= "" then
    table.insert(words, "a prompt was not sent")
  end
  if #words > 0 then
    say.info("In %s %s; `:Magy` shows it.", project.name, table.concat(words, ", and "))
  end
end

return M
