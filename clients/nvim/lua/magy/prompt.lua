--- The buffer in which a prompt is written: below the transcript, with what goes along above it.

local buffers = require("magy.view.buffer")
local config = require("magy.config")
local connection = require("magy.connection")
local context = require("magy.context")
local events = require("magy.events")
local one_line = require("magy.state.harmless").one_line
local projects = require("magy.project")
local left = require("magy.left")
local say = require("magy.say")
local session = require("magy.session")
local special = require("magy.special")

local api = vim.api

local M = {}

-- buffer -> prompt {view, buf, items, looking, pending, ...}: `looking` while the server is asked what goes
-- along, `pending` what was sent meanwhile, as {text, delivery, sent}
local by_buf = {}

--- Returns the prompt that a buffer is; 0: the current one. nil: it is none.
function M.of(buf)
  return by_buf[buf == 0 and api.nvim_get_current_buf() or buf]
end

local function text_of(prompt)
  return table.concat(api.nvim_buf_get_lines(prompt.buf, 0, -1, false), "\n")
end

local keys_ns = api.nvim_create_namespace("magy.prompt")

--- Says in an empty prompt which keys there are.
local function say_keys(prompt)
  api.nvim_buf_clear_namespace(prompt.buf, keys_ns, 0, -1)
  if text_of(prompt) == "" then
    local keys = { "(<C-s> sends, @ names files and skills, / acts; <Esc>g? helps)", "MagyMeta" }
    api.nvim_buf_set_extmark(prompt.buf, keys_ns, 0, 0, { virt_text = { keys }, virt_text_pos = "overlay" })
  end
end

local function set_text(prompt, text)
  api.nvim_buf_set_lines(prompt.buf, 0, -1, false, vim.split(text, "\n", { plain = true }))
  say_keys(prompt)
  for _, window in ipairs(vim.fn.win_findbuf(prompt.buf)) do
    local last = api.nvim_buf_line_count(prompt.buf)
    local line = api.nvim_buf_get_lines(prompt.buf, last - 1, last, false)[1]
    api.nvim_win_set_cursor(window, { last, #line })
  end
end

-- What goes along -------------------------------------------------------------------------------

--- 'winbar' of prompts: what goes along, each with its number and + or -.
function M.winbar()
  local prompt = by_buf[api.nvim_win_get_buf(vim.g.statusline_winid or 0)]
  local words = {}
  for number, item in ipairs(prompt and prompt.items or {}) do
    table.insert(words, ("%s%d %s"):format(item.on and "+" or "-", number, one_line(item.label)))
  end
  local line = table.concat(words, "  ")
  if prompt and prompt.looking then
    line = "what is around the cursor is looked at"
  elseif #words == 0 then
    line = "what you write goes alone"
  end
  return " " .. line:gsub("%%", "%%%%") .. "%<" -- where there is no room, the end is cut off
end

local function look_around(prompt, range)
  local project, window = prompt.view.project, context.window()
  prompt.asked = (prompt.asked or 0) + 1
  local mine = prompt.asked
  prompt.items = {}
  if not context.belongs(project, window) then
    return
  end
  prompt.looking = true
  connection.when_ready(project, function()
    context.get(project, window, range, function(items)
      if prompt.asked == mine then
        prompt.items, prompt.looking = items, false
        vim.cmd.redrawstatus({ bang = true })
        M.send_pending(prompt)
      end
    end)
  end)
end

--- Takes the thing of that number out of what goes along, or puts it in.
function M.toggle(number)
  local prompt = M.of(0)
  local item = prompt and prompt.items[number]
  if not item then
    return say.info("Nothing of the number %d goes along.", number)
  end
  item.on = not item.on
  vim.cmd.redrawstatus({ bang = true })
end

-- History ---------------------------------------------------------------------------------------

local histories = {} -- root -> prompts, the latest last

local function remember(project, text)
  local history = histories[project.root] or {}
  if history[#history] ~= text then
    table.insert(history, text)
  end
  histories[project.root] = history
end

--- Goes back (-1) or forward (1) in what was sent, from the first and the last line.
function M.history(step)
  local prompt = M.of(0)
  local row = api.nvim_win_get_cursor(0)[1]
  local edge = step < 0 and 1 or api.nvim_buf_line_count(0)
  if not prompt or row ~= edge then
    return vim.cmd.normal({ step < 0 and "k" or "j", bang = true })
  end
  local history = histories[prompt.view.project.root] or {}
  local place = (prompt.place or #history + 1) + step
  if place < 1 or place > #history + 1 then
    return
  end
  if (prompt.place or #history + 1) == #history + 1 then
    prompt.draft = text_of(prompt)
  end
  prompt.place = place
  set_text(prompt, history[place] or prompt.draft or "")
end

-- Sending ---------------------------------------------------------------------------------------

local function deliver(prompt, text, delivery)
  local blocks = context.blocks(prompt.view.project, text, prompt.items)
  if not special.done(prompt.view, text, blocks) then
    session.prompt(prompt.view, blocks, delivery)
  end
end

--- Sends what the person sent before it was known what goes along.
function M.send_pending(prompt)
  local pending = prompt.pending
  prompt.pending = {}
  for _, one in ipairs(pending) do
    one.sent()
    deliver(prompt, one.text, one.delivery)
  end
  if #pending > 0 then
    look_around(prompt)
  end
end

--- Sends what is written; `delivery`: auto, queue or interrupt.
function M.send(delivery, prompt)
  prompt = prompt or M.of(0)
  if not prompt then
    return say.warn("There is no prompt here; `:Magy ask` opens one.")
  end
  local text = vim.trim(text_of(prompt))
  if text == "" then
    return say.info("Nothing is written yet.")
  end
  remember(prompt.view.project, text)
  prompt.place, prompt.draft = nil, nil
  if vim.fn.pumvisible() == 1 then
    vim.fn.complete(vim.fn.col("."), {}) -- what was offered is for the text that goes
  end
  set_text(prompt, "")
  M.fit(prompt)
  buffers.go_to_end(prompt.view)
  local sent = session.announce(prompt.view, text)
  table.insert(prompt.pending, { text = text, delivery = delivery, sent = sent })
  -- Who is faster than the server sends what it would have proposed.
  if not prompt.looking then
    M.send_pending(prompt)
  end
end

local function give_back(prompt, text)
  if api.nvim_buf_is_valid(prompt.buf) and vim.trim(text_of(prompt)) == "" then
    set_text(prompt, text)
  end
end

events.on("died", function(project)
  for _, prompt in pairs(by_buf) do
    if prompt.view.project == project then
      local texts = vim.tbl_map(function(one)
        return one.text
      end, prompt.pending)
      prompt.looking, prompt.pending = false, {}
      give_back(prompt, table.concat(texts, "\n"))
    end
  end
end)

events.on("refused", function(view, blocks)
  if view.prompt then
    give_back(view.prompt, blocks[1] and blocks[1].text or "")
  end
end)

-- Buffer and window -----------------------------------------------------------------------------

local function make(view)
  local buf = api.nvim_create_buf(false, true)
  local prompt = { view = view, buf = buf, items = {}, pending = {} }
  by_buf[buf], view.prompt = prompt, prompt
  local name = api.nvim_buf_get_name(buffers.buffer(view)) .. "/prompt"
  if vim.fn.bufexists(name) == 0 then
    api.nvim_buf_set_name(buf, name)
  end
  vim.b[buf].magy_root = view.project.root
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].filetype = "magy-prompt"
  require("magy.view.keys").prompt(buf)
  -- What is offered while one types is inserted only once it is chosen.
  vim.bo[buf].completeopt = "menuone,noselect,popup"
  require("magy.complete").attach(buf)
  pcall(vim.treesitter.start, buf, "markdown")
  if view == session.main(view.project) then
    set_text(prompt, left.draft(view.project.root))
  end
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      M.send("auto", prompt)
      vim.bo[buf].modified = false
    end,
  })
  say_keys(prompt)
  api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false -- leaving Neovim asks nothing about a prompt: it is kept
      say_keys(prompt)
      M.fit(prompt)
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      by_buf[buf] = nil
      if view.prompt == prompt then
        view.prompt = nil
      end
    end,
  })
  api.nvim_create_autocmd("BufWinEnter", {
    buffer = buf,
    callback = function()
      local window = api.nvim_get_current_win()
      buffers.window_options(window, "prompt")
      vim.wo[window][0].winbar = "%{%v:lua.require'magy.prompt'.winbar()%}"
      vim.wo[window][0].winfixheight = true
    end,
  })
  return prompt
end

--- Makes the window as high as what is written, up to `prompt_height`. Half of the room is the transcript's.
function M.fit(prompt)
  local transcript = buffers.window(prompt.view)
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(window) == prompt.buf then
      local room = api.nvim_win_get_height(window) + (transcript and api.nvim_win_get_height(transcript) or 0)
      local most = math.min(config.get().prompt_height, math.floor(room / 2) - 1)
      local wanted = math.max(2, math.min(api.nvim_buf_line_count(prompt.buf), most))
      api.nvim_win_set_height(window, wanted + 1) -- the winbar counts
    end
  end
end

local function prompt_window(prompt)
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(window) == prompt.buf then
      return window
    end
    if by_buf[api.nvim_win_get_buf(window)] then
      api.nvim_win_set_buf(window, prompt.buf)
      return window
    end
  end
end

local function prompt_of(view)
  return view.prompt and api.nvim_buf_is_valid(view.prompt.buf) and view.prompt or make(view)
end

--- Has the windows of a view's transcript and prompt on this tab page; returns the prompt and its window.
local function place(view, range)
  local prompt = prompt_of(view)
  look_around(prompt, range)
  buffers.open(view)
  local window = prompt_window(prompt)
  if not window then
    vim.cmd("belowright 3split")
    window = api.nvim_get_current_win()
    api.nvim_win_set_buf(window, prompt.buf)
  end
  M.fit(prompt)
  return prompt, window
end

--- Opens the transcript of a view and its prompt below; the focus goes to the prompt. `range`: lines that
--- were marked; `text`: what to begin with.
function M.open(view, range, text)
  local prompt, window = place(view, range)
  api.nvim_set_current_win(window)
  if text and text ~= "" then
    set_text(prompt, text)
  end
  vim.cmd.startinsert({ bang = true })
  return prompt
end

--- The same, but the focus goes to the transcript, in Normal mode.
function M.show(view)
  place(view)
  api.nvim_set_current_win(buffers.window(view))
  vim.cmd.stopinsert()
end

--- Puts a text into the prompt of a view, without opening it, unless something is written there.
--- Returns whether it is there now.
function M.put(view, text)
  local prompt = prompt_of(view)
  if vim.trim(text_of(prompt)) ~= "" then
    return false
  end
  set_text(prompt, text)
  return true
end

--- Opens the project's transcript and prompt.
function M.here(range, text)
  local project = projects.here(0)
  local shown = buffers.view_of(0)
  return M.open(shown or session.main(project), range, text)
end

--- Sends a text at once, without the prompt buffer, with what is around the cursor.
function M.ask(view, text, range)
  local window = context.window()
  local project = view.project
  local sent = session.announce(view, text)
  buffers.go_to_end(view)
  if not buffers.window(view) then
    local now = projects.alive(project) and "Asked" or "Magy starts and is asked then"
    say.info("%s; `:Magy` shows the answer.", now)
  end
  connection.when_ready(project, function()
    local function send(items)
      sent()
      local blocks = context.blocks(project, text, items)
      remember(project, text)
      if not special.done(view, text, blocks) then
        session.prompt(view, blocks, "auto")
      end
    end
    if context.belongs(project, window) then
      context.get(project, window, range, send)
    else
      send({})
    end
  end)
end

api.nvim_create_autocmd("ExitPre", {
  group = api.nvim_create_augroup("magy.prompt", {}),
  callback = function()
    for _, project in ipairs(projects.all()) do
      local prompt = session.main(project).prompt
      local draft = prompt and api.nvim_buf_is_valid(prompt.buf) and text_of(prompt) or left.unread(project.root)
      left.keep(project, draft)
    end
  end,
})

--- Closes the windows of the transcript and the prompt that are on this tab page.
function M.close()
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    local buf = api.nvim_win_get_buf(window)
    if (by_buf[buf] or buffers.view_of(buf)) and #api.nvim_tabpage_list_wins(0) > 1 then
      api.nvim_win_close(window, true)
    end
  end
end

return M
