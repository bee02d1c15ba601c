--- What is said to the person, and asked of them.

local one_line = require("magy.state.harmless").one_line

local M = {}

function M.info(text, ...)
  vim.notify("Magy: " .. one_line(select("#", ...) > 0 and text:format(...) or text), vim.log.levels.INFO)
end

function M.warn(text, ...)
  vim.notify("Magy: " .. one_line(select("#", ...) > 0 and text:format(...) or text), vim.log.levels.WARN)
end

--- Says what the server tells the person, on one line: Neovim asks for ENTER after more. The log has all of it.
function M.told(project, params)
  local text = "Magy: "
    .. one_line(params.message):gsub(vim.pesc(project.root .. "/"), ""):gsub(vim.pesc(project.root), project.name)
  local rest = "… (`:Magy log`)"
  if vim.fn.strdisplaywidth(text) > vim.v.echospace then
    vim.lsp.log.warn(text)
    text = vim.fn.strcharpart(text, 0, math.max(0, vim.v.echospace - vim.fn.strchars(rest))) .. rest
  end
  vim.notify(text, params.type <= 2 and vim.log.levels.WARN or vim.log.levels.INFO)
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
