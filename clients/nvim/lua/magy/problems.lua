--- `@problems` in a prompt: what the diagnostics of Neovim say about the files of a project.

local harmless = require("magy.state.harmless").harmless
local projects = require("magy.project")

local M = {}

local MOST = 200 -- problems that one prompt takes along
local SEVERITIES = { "error", "warning", "information", "hint" }

--- Returns whether a prompt names the problems.
function M.named(text)
  return (" " .. text .. " "):find("[^%w_@]@problems[^%w_]") ~= nil
end

--- Returns what completes "@" and a beginning of the name, as an item of the server's, or nil.
function M.completion(before)
  local typed = (" " .. before):match("[^%w_.@/\\+-]@(%l*)$")
  if not typed or not vim.startswith("problems", typed) then
    return nil
  end
  return { label = "@problems", text = "@problems", kind = "command", detail = "what the diagnostics of Neovim say" }
end

--- Returns the problems as a content block of a prompt.
function M.block(project)
  local lines = {}
  for _, one in ipairs(vim.diagnostic.get()) do
    if vim.api.nvim_buf_is_valid(one.bufnr) and projects.root_of(one.bufnr) == project.root then
      local path = projects.short(project, vim.api.nvim_buf_get_name(one.bufnr))
      local source = one.source and (" (%s)"):format(one.source) or ""
      local words = ("%s:%d: %s: %s%s"):format(path, one.lnum + 1, SEVERITIES[one.severity], one.message, source)
      table.insert(lines, harmless(words))
    end
  end
  local text = #lines == 0 and "The editor shows no problems." or "Problems that the editor shows:\n"
  if #lines > MOST then
    lines = vim.list_extend(vim.list_slice(lines, 1, MOST), { ("... and %d more"):format(#lines - MOST) })
  end
  return { type = "resource", resource = { uri = "magy:editor/problems", text = text .. table.concat(lines, "\n") } }
end

return M
