--- What agents may ask Neovim: diagnostics, and what other language servers know of names.

local connection = require("magy.connection")
local documents = require("magy.documents")
local projects = require("magy.project")

local M = {}

local MOST = 200 -- results of one answer
local PATIENCE = 5000 -- milliseconds for another language server

--- Returns a diagnostic of Neovim's as LSP has it; columns are bytes, as negotiated.
function M.diagnostic(one)
  return {
    uri = vim.uri_from_bufnr(one.bufnr),
    range = {
      start = { line = one.lnum, character = one.col },
      ["end"] = { line = one.end_lnum or one.lnum, character = one.end_col or one.col },
    },
    severity = one.severity,
    message = one.message,
    source = one.source,
    code = one.code,
  }
end

local function in_project(project, buf)
  return vim.api.nvim_buf_is_valid(buf) and projects.root_of(buf) == project.root
end

connection.answer("magy/editor/diagnostics", function(project, params)
  local found = {}
  local buf = params.uri and documents.buffer_of(params.uri) or nil
  if not params.uri or buf then
    for _, one in ipairs(vim.diagnostic.get(buf)) do
      if one.bufnr and in_project(project, one.bufnr) then
        table.insert(found, M.diagnostic(one))
      end
    end
  end
  return { diagnostics = vim.list_slice(found, 1, MOST), truncated = #found > MOST }
end)

local function others(filter)
  return vim.tbl_filter(function(client)
    return client.name ~= "magy" and client.name ~= "magy-prompt"
  end, vim.lsp.get_clients(filter))
end

--- Asks all other servers of the buffer, and waits for what they say. Must run in a coroutine, as answers
--- to a server do. Returns a list of {client, result}.
local function ask_others(clients, method, params_of, buf)
  local waiting, results, co = #clients, {}, coroutine.running()
  if waiting == 0 then
    return results
  end
  local over = false
  local function go_on()
    if not over then
      over = true
      coroutine.resume(co)
    end
  end
  for _, client in ipairs(clients) do
    local sent = client:request(method, params_of(client), function(_, result)
      if result then
        table.insert(results, { client = client, result = result })
      end
      waiting = waiting - 1
      if waiting == 0 then
        vim.schedule(go_on)
      end
    end, buf)
    if not sent then
      waiting = waiting - 1
    end
  end
  vim.defer_fn(go_on, waiting == 0 and 0 or PATIENCE)
  coroutine.yield()
  return results
end

--- Returns a position of ours (bytes) in the encoding of another server.
local function position_for(client, buf, position)
  local line = vim.api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1] or ""
  local at = math.min(position.character, #line)
  return { line = position.line, character = vim.str_utfindex(line, client.offset_encoding, at, false) }
end

--- Returns the line of a file that is open or on disk, or nil.
local function line_at(uri, number)
  local buf = documents.buffer_of(uri)
  if buf then
    return vim.api.nvim_buf_get_lines(buf, number, number + 1, false)[1]
  end
  local fine, lines = pcall(vim.fn.readfile, vim.uri_to_fname(uri), "", number + 1)
  return fine and lines[number + 1] or nil
end

--- Returns a range of another server's in bytes.
local function range_from(client, uri, range)
  local function place(position)
    local line = line_at(uri, position.line)
    local at = line and vim.str_byteindex(line, client.offset_encoding, position.character, false)
    return { line = position.line, character = at or position.character }
  end
  return { start = place(range.start), ["end"] = place(range["end"]) }
end

local function locations(client, result, into)
  result = (vim.islist(result) and result) or { result }
  for _, one in ipairs(result) do
    local uri, range = one.uri or one.targetUri, one.range or one.targetSelectionRange
    if uri and range and vim.startswith(uri, "file:") then
      local text = line_at(uri, range.start.line) or ""
      table.insert(into, { uri = uri, range = range_from(client, uri, range), text = text })
    end
  end
end

local function places(method, more)
  return function(_, params)
    local buf, found = documents.buffer_of(params.uri), {}
    if buf then
      local clients = others({ bufnr = buf, method = method })
      local function params_of(client)
        local own = { textDocument = { uri = params.uri }, position = position_for(client, buf, params.position) }
        return vim.tbl_extend("force", own, more)
      end
      for _, one in ipairs(ask_others(clients, method, params_of, buf)) do
        locations(one.client, one.result, found)
      end
    end
    return { locations = vim.list_slice(found, 1, MOST), truncated = #found > MOST }
  end
end

connection.answer("magy/editor/definition", places("textDocument/definition", {}))
connection.answer(
  "magy/editor/references",
  places("textDocument/references", { context = { includeDeclaration = true } })
)

local function kind_of(symbol)
  return (vim.lsp.protocol.SymbolKind[symbol.kind] or ""):lower()
end

local function add_symbols(client, uri, symbols, container, query, into)
  for _, one in ipairs(symbols) do
    local at = one.location and one.location.uri or uri
    local range = one.location and one.location.range or one.range
    if at and range and (query == "" or one.name:lower():find(query:lower(), 1, true)) then
      local where = one.containerName or container
      local place = range_from(client, at, range)
      table.insert(into, { name = one.name, kind = kind_of(one), uri = at, range = place, container = where })
    end
    add_symbols(client, uri, one.children or {}, one.name, query, into)
  end
end

connection.answer("magy/editor/symbols", function(project, params)
  local found, buf = {}, nil
  local method, filter = "workspace/symbol", { method = "workspace/symbol" }
  if params.uri then
    buf = documents.buffer_of(params.uri)
    method, filter = "textDocument/documentSymbol", { bufnr = buf, method = "textDocument/documentSymbol" }
  end
  if params.uri and not buf then
    return { symbols = {} }
  end
  local clients = vim.tbl_filter(function(client)
    return buf or client.root_dir == project.root
  end, others(filter))
  local asked = buf and { textDocument = { uri = params.uri } } or { query = params.query }
  local results = ask_others(clients, method, function()
    return asked
  end, buf or 0)
  for _, one in ipairs(results) do
    add_symbols(one.client, params.uri, one.result, nil, params.query or "", found)
  end
  return { symbols = vim.list_slice(found, 1, MOST), truncated = #found > MOST }
end)

return M
