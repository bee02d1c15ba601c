--- Completes prompts: a language server in this process, so that omnifunc, `vim.lsp.completion` and every
--- completion plugin that knows of vim.lsp offer what Magy's server does.

local connection = require("magy.connection")
local problems = require("magy.problems")
local projects = require("magy.project")

local M = {}

local KINDS = { file = 17, directory = 19, symbol = 6, skill = 9, action = 3, agent = 7, command = 14 }

-- What is offered first: what one names in a prompt, then what does something; a skill whose name one has begun
-- to type before all others. `@clear` is the last of all.
local ORDER = { file = 1, directory = 2, symbol = 3, agent = 4, skill = 5, action = 6, command = 7 }

local capabilities = {
  positionEncoding = "utf-8",
  textDocumentSync = { openClose = true, change = 0 },
  completionProvider = { triggerCharacters = { "@", "/", ":" } },
}

local function items_of(result, params)
  local prefix = result.prefix
  local place = params.position
  local range = { start = { line = place.line, character = place.character - #prefix }, ["end"] = place }
  return {
    isIncomplete = true,
    items = vim.tbl_map(function(item)
      local order = item.label:find("^@?clear") and 9 or ORDER[item.kind] or 8
      order = item.kind == "skill" and #prefix > 2 and 0 or order
      return {
        label = item.label,
        sortText = order .. item.label,
        kind = KINDS[item.kind],
        detail = item.detail,
        data = item.kind,
        filterText = prefix,
        textEdit = { range = range, newText = item.text },
      }
    end, result.items),
  }
end

local function complete(params, done)
  local buf = vim.uri_to_bufnr(params.textDocument.uri)
  local place = params.position
  local before = vim.api.nvim_buf_get_text(buf, 0, 0, place.line, place.character, {})
  local project = projects.here(buf)
  if not projects.alive(project) then
    return done(nil, { isIncomplete = true, items = {} })
  end
  local asked = { cwd = project.root, before = table.concat(before, "\n") }
  connection.request(project, "magy/prompt/complete", asked, function(problem, result)
    local now = vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_buf_get_lines(buf, place.line, place.line + 1, false)[1]
    if problem or result.prefix == "" or not vim.startswith(now or "", before[#before]) then
      return done(nil, { isIncomplete = true, items = {} })
    end
    table.insert(result.items, problems.completion(asked.before))
    done(nil, items_of(result, params))
  end)
end

--- The server, as `cmd` of a client of vim.lsp.
local function server(dispatchers)
  local closing, count = false, 0
  return {
    request = function(method, params, done)
      count = count + 1
      if method == "initialize" then
        done(nil, { capabilities = capabilities })
      elseif method == "textDocument/completion" then
        complete(params, done)
      else
        done(nil, nil)
      end
      return true, count
    end,
    notify = function(method)
      if method == "exit" then
        dispatchers.on_exit(0, 0)
      end
      return true
    end,
    is_closing = function()
      return closing
    end,
    terminate = function()
      closing = true
    end,
  }
end

--- Returns whether a completion plugin shows here what language servers offer. Two menus would get in each
--- other's way: blink.cmp hides its own when Neovim's is there, and nvim-cmp closes both.
local function has_menu()
  if package.loaded["cmp"] then
    local set = require("cmp").get_config()
    local on = type(set.enabled) == "function" and set.enabled() or set.enabled == true
    return on and vim.iter(set.sources):any(function(source)
      return source.name == "nvim_lsp"
    end)
  end
  return package.loaded["blink.cmp"] ~= nil and require("blink.cmp.config").enabled()
end

--- Has a prompt buffer completed. Whether Neovim's own menu comes up is decided once a person writes: many a
--- completion plugin is loaded only then.
function M.attach(buf)
  local root = vim.b[buf].magy_root
  local id = vim.lsp.start({ name = "magy-prompt", cmd = server, root_dir = root }, { bufnr = buf, silent = true })
  if not id then
    return
  end
  local convert = function(item)
    return { kind = item.data, menu = "", info = item.detail }
  end
  vim.api.nvim_create_autocmd("InsertEnter", {
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_get_current_buf() == buf then
        vim.lsp.completion.enable(true, id, buf, { autotrigger = not has_menu(), convert = convert })
      end
    end),
  })
end

return M
