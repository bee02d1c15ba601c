-- Stock vim.lsp with what the guide says to put into init.lua, and a person who picks by title.
-- Run by test_plain_clients.py: nvim --headless --clean -l nvim.lua; writes what was seen as JSON.

local seen = { progress = {}, questions = {} }
local answers = {}
local tokens = {}

vim.ui.select = function(items, opts, on_choice)
  local titles = vim.tbl_map(opts.format_item or tostring, items)
  table.insert(seen.questions, { prompt = opts.prompt, items = titles })
  for index, title in ipairs(titles) do
    if title == answers[1] then
      table.remove(answers, 1)
      return on_choice(items[index], index)
    end
  end
  error("nothing to pick among " .. vim.inspect(titles))
end

vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local value = event.data.params.value
    table.insert(seen.progress, value.kind)
    table.insert(tokens, event.data.params.token)
  end,
})

local function wait(what, holds)
  if not vim.wait(60000, holds, 20) then
    error("waited in vain for " .. what .. ": " .. vim.inspect(seen))
  end
end

local function ended(count)
  local ends = vim.tbl_filter(function(kind) return kind == "end" end, seen.progress)
  return #ends >= count
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

-- The text of a window that shows a transcript, its buffer's name, and whether its cursor is in the
-- last line.
local function transcript()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    local name = vim.api.nvim_buf_get_name(buffer)
    if name:match("/transcripts/.*%.md$") then
      local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
      local last = #vim.trim(table.concat(lines, "\n")):gsub("[^\n]", "") + 1
      return table.concat(lines, "\n"), name, vim.api.nvim_win_get_cursor(window)[1] == last
    end
  end
end

local function main()
  dofile(vim.env.GUIDE)
  vim.cmd.edit(vim.env.FILE)
  vim.bo.filetype = "python"
  wait("the client", function()
    local client = vim.lsp.get_clients({ name = "magy" })[1]
    return client and client.initialized and vim.lsp.buf_is_attached(0, client.id)
  end)
  local client = vim.lsp.get_clients({ name = "magy" })[1]
  local here = vim.api.nvim_get_current_buf()

  -- Explain: the answer is in a window, and the cursor stays where it was.
  vim.api.nvim_win_set_cursor(0, { 2, 4 })
  answers = { "Magy: Explain this code" }
  vim.lsp.buf.code_action()
  wait("the explanation", function() return ended(1) and transcript() end)
  seen.explained, seen.transcript, seen.at_end = transcript()
  seen.stayed = vim.api.nvim_get_current_buf() == here

  -- Fix what another tool reports: asked, edited, reviewed.
  local namespace = vim.api.nvim_create_namespace("checker")
  vim.diagnostic.set(namespace, 0, {
    { lnum = 1, col = 11, end_lnum = 1, end_col = 18, message = "greets nobody", severity = 1 },
  })
  answers = { "Magy: Fix this problem", "Allow once" }
  vim.api.nvim_feedkeys(vim.keycode("<leader>mf"), "x", false)
  wait("the fix", function() return ended(2) end)
  seen.fixed = text()
  wait("lenses", function()
    vim.lsp.codelens.refresh({ bufnr = 0 })
    vim.wait(50)
    return #vim.lsp.codelens.get(0) > 0
  end)
  wait("the transcript of both", function()
    local both, _, at_end = transcript()
    seen.at_end_again = at_end
    return at_end and both:find("It was a slip.", 1, true)
  end)
  seen.lenses = vim.tbl_map(function(lens) return lens.command.title end, vim.lsp.codelens.get(0))
  answers = { "Reject this change of build" }
  vim.lsp.buf.code_action()
  wait("the rejection", function() return text() ~= seen.fixed end)
  seen.rejected = text()

  -- Tab completes what a prompt may begin with; Escape asks nothing.
  local function typed(keys)
    local line
    vim.keymap.set("c", "<F2>", function() line = vim.fn.getcmdline() end)
    vim.api.nvim_feedkeys(vim.keycode("<leader>mm" .. keys .. "<F2><Esc>"), "xt", false)
    return line
  end
  seen.completed = { typed("/exp<Tab>"), typed("see @ap<Tab>"), typed("@explo<Tab>") }

  -- Ask with words of one's own, and stop it by its progress.
  vim.ui.input = function(_, on_confirm) on_confirm("Take your time") end
  local begun = #tokens
  vim.api.nvim_feedkeys(vim.keycode("<leader>mm"), "x", false)
  wait("the progress", function() return #tokens > begun end)
  client:notify("window/workDoneProgress/cancel", { token = tokens[#tokens] })
  wait("the end", function() return ended(3) end)
  seen.last = vim.deepcopy(seen.progress)[#seen.progress]
  client:stop()
  wait("the server's end", function() return client:is_stopped() end)
end

local fine, problem = xpcall(main, debug.traceback)
seen.problem = not fine and problem or nil
vim.fn.writefile({ vim.json.encode(seen) }, vim.env.SEEN)
vim.cmd.quitall({ bang = true })
