--- What other code may use of Magy: `require("magy")`.

local M = {}

--- Overrides options; `:help magy-options` lists them. Magy works without a call of it.
function M.setup(options)
  local config = require("magy.config")
  config.set(options)
  local prefix = config.get().prefix
  if prefix then
    require("magy.maps").set(prefix)
  end
end

--- Asks; without a text, opens the prompt. The text is sent with what is around the cursor.
function M.ask(text)
  require("magy.commands").run({ fargs = text and { "ask", text } or { "ask" }, range = 0 })
end

--- Opens the transcript and the prompt of the project.
function M.open()
  require("magy.prompt").here()
end

--- Returns how the project of a buffer (the current one) is, as a table: see |magy-status|.
function M.status(buf)
  if not package.loaded["magy.connection"] then
    return { server = "stopped", state = "idle", questions = 0, review = 0, agents = 0, waiting = 0 }
  end
  return require("magy.status").status(buf)
end

--- Returns a short text for a statusline; "" where Magy does not run.
function M.statusline(buf)
  if not package.loaded["magy.connection"] then
    return ""
  end
  return require("magy.status").statusline(buf)
end

return M
