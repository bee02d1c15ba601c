--- What is said to the person, and asked of them.

local one_line = require("magy.state.harmless").one_line

local M = {}

local width = vim.fn.strdisplaywidth

--- Returns as much of a text as there is room for on the command line, and says where all of it is.
local function cut(text)
  local rest = "… (`:Magy log`)"
  local room = math.max(0, vim.v.echospace - width(rest))
  text = vim.fn.strcharpart(text, 0, room)
  while width(text) > room do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text .. rest
end

--- Shows a text. Neovim's own `vim.notify` asks for ENTER after more than one line; what is `unasked`, or comes
--- while something is typed, is cut to one.
local function show(text, level, unasked)
  text = "Magy: " .. text
  local own = debug.getinfo(vim.notify, "S").source:find("^@vim/")
  local typing = vim.fn.mode():find("^[iR]")
  if own and (unasked or typing) and width(text) > vim.v.echospace then
    vim.lsp.log.warn(text)
    text = cut(text)
  end
  vim.notify(text, level)
end

local function formatted(text, ...)
  return one_line(select("#", ...) > 0 and text:format(...) or text)
end

function M.info(text, ...)
  show(formatted(text, ...), vim.log.levels.INFO)
end

function M.warn(text, ...)
  show(formatted(text, ...), vim.log.levels.WARN)
end

--- Says what the server tells the person.
function M.told(project, params)
  local text =
    one_line(params.message):gsub(vim.pesc(project.root .. "/"), ""):gsub(vim.pesc(project.root), project.name)
  show(text, params.type <= 2 and vim.log.levels.WARN or vim.log.levels.INFO, true)
end

--- Says what a request was refused for, and nothing if `problem` is nil.
function M.problem(problem)
  if problem then
    M.warn("%s", problem.message or tostring(problem))
  end
end

--- Fires the `User` event of that name, with what it is about as `data`.
function M.event(name, data)
  vim.api.nvim_exec_autocmds("User", { pattern = name, data = data, modeline = false })
end

--- Returns an id that no other message or session has.
function M.id(prefix)
  local bytes = vim.uv.random(8)
  return prefix .. "-" .. bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
end

--- Has the person write something; `done` gets it unless they gave up or wrote nothing.
function M.ask(prompt, done, default)
  vim.ui.input({ prompt = prompt, default = default }, function(text)
    if text and vim.trim(text) ~= "" then
      done(text)
    end
  end)
end

return M
