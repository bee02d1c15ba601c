--- What the parts of this client tell each other: names with listeners.
---
--- Names: every notification of the server (`magy/...`), with (project, params); and "ready" and "died",
--- with (project), "changed", "drawn" and "shown" with (view), "questions" and "children" with (project), "review" with
--- (project, uri), "refused" with (view, blocks, why).

local M = {}

local listeners = {}

--- Has `listen` called whenever `name` is told.
function M.on(name, listen)
  listeners[name] = listeners[name] or {}
  table.insert(listeners[name], listen)
end

--- Tells all listeners. One that fails is logged, and the others hear it all the same.
function M.tell(name, ...)
  for _, listen in ipairs(listeners[name] or {}) do
    local fine, problem = xpcall(listen, debug.traceback, ...)
    if not fine then
      vim.lsp.log.error("Magy: " .. name, problem)
      vim.notify_once("Magy: a fault of the client's: " .. problem:match("^[^\n]*"), vim.log.levels.ERROR)
    end
  end
end

return M
