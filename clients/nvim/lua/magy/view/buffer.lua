--- The buffer and the windows of a transcript: drawn as updates come, at its end only while one is there.

local config = require("magy.config")
local connection = require("magy.connection")
local events = require("magy.events")
local fold = require("magy.state.fold")
local look = require("magy.view.look")
local render = require("magy.view.render")
local session = require("magy.session")

local api = vim.api

local M = {}

local TICK = 20 -- milliseconds for which changes are collected, at least

local by_buf = {} -- buffer -> view

--- Returns the view that a buffer shows; 0: the current one. nil: it is no transcript.
function M.view_of(buf)
  return by_buf[buf == 0 and api.nvim_get_current_buf() or buf]
end

--- Returns the windows of all tab pages that show a view.
function M.windows(view)
  return view.buf and vim.fn.win_findbuf(view.buf) or {}
end

local function at_end(window, buf)
  return api.nvim_win_get_cursor(window)[1] >= api.nvim_buf_line_count(buf)
end

--- Scrolls a window so that what stands below the last line is seen, too.
local function show_tail(window)
  api.nvim_win_call(window, function()
    local room, first = vim.fn.getwininfo(window)[1].height, vim.fn.line("w0")
    local last = vim.fn.line("$")
    while first < last and api.nvim_win_text_height(window, { start_row = first - 1 }).all > room do
      first = first + 1
    end
    vim.fn.winrestview({ topline = first })
  end)
end

local function draw(view)
  view.due = false
  if not view.buf or not api.nvim_buf_is_loaded(view.buf) then
    return
  end
  local following = vim.tbl_filter(function(window)
    return view.follow or at_end(window, view.buf)
  end, M.windows(view))
  view.follow = false
  vim.bo[view.buf].modifiable = true
  local fine, problem = pcall(render.draw, view)
  vim.bo[view.buf].modifiable = false
  vim.bo[view.buf].modified = false
  for _, window in ipairs(following) do
    local last = api.nvim_buf_get_lines(view.buf, -2, -1, false)[1]
    api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(view.buf), #last })
    local below = #view.state.waiting > 0 or view.state.progress ~= "" or #session.on_its_way(view) > 0
    -- A line further up may have become longer: the cursor's own is out of sight then.
    if below or vim.fn.line("w$", window) < api.nvim_buf_line_count(view.buf) then
      show_tail(window)
    end
  end
  if not fine then
    error(problem, 0)
  end
  events.tell("drawn", view)
end

--- Draws what waits to be drawn, at once.
function M.flush(view)
  draw(view)
end

local function soon(view)
  if view.buf and not view.due then
    view.due = true
    -- A long answer takes longer to draw; most of the time is for the person and for what comes.
    vim.defer_fn(function()
      local before = vim.uv.hrtime()
      draw(view)
      view.pause = math.max(TICK, math.floor(3 * (vim.uv.hrtime() - before) / 1e6))
      vim.cmd.redrawstatus({ bang = true })
    end, view.pause or TICK)
  end
end

events.on("changed", soon)

--- Takes windows to the end of a view's transcript with what is drawn next.
function M.go_to_end(view)
  view.follow = true
  soon(view)
end

-- What is drawn in columns becomes rows where it does not fit.
api.nvim_create_autocmd("WinResized", {
  callback = function()
    for _, window in ipairs(vim.v.event.windows) do
      local view = by_buf[api.nvim_win_get_buf(window)]
      if view and not view.fresh then
        soon(view)
      end
    end
  end,
})

-- Folds -----------------------------------------------------------------------------------------

local function fold_block(view, block, open)
  view.opened = view.opened or {}
  if look.folding[block.kind] and render.is_open(view, block) ~= open then
    view.opened[block.id] = open
    view.state:touch(block)
  end
end

--- Shows all of the block at the cursor (true), its head alone (false), or the other of the two (nil).
function M.fold(open)
  local view = M.view_of(0)
  local block, start = nil, nil
  if view then
    block, start = render.block_at(view, api.nvim_win_get_cursor(0)[1] - 1)
  end
  if not block or not look.folding[block.kind] then
    return
  end
  if open == nil then
    open = not render.is_open(view, block)
  end
  fold_block(view, block, open)
  if not open then
    api.nvim_win_set_cursor(0, { start + 1 + look.folding[block.kind], 0 })
  end
  draw(view)
end

--- The same with all blocks.
function M.fold_all(open)
  local view = M.view_of(0)
  for _, block in ipairs(view and view.state.blocks or {}) do
    fold_block(view, block, open)
  end
  if view then
    draw(view)
  end
end

local function window_options(window, kind)
  local own = {
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    colorcolumn = "",
    foldenable = false,
    list = false,
    spell = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    fillchars = "eob: ",
    winfixbuf = false,
  }
  if kind == "transcript" then
    own.conceallevel, own.concealcursor = 2, "nc"
    own.winbar = "%{%v:lua.require'magy.status'.winbar()%}"
  end
  for name, value in pairs(own) do
    vim.wo[window][0][name] = value
  end
end

M.window_options = window_options

-- Buffers ---------------------------------------------------------------------------------------

local function name_of(view)
  local child = session.is_child(view) and "/" .. view.session:match("/(.*)$") or ""
  return ("magy://%s%s"):format(view.project.name, child)
end

local function free_name(wanted)
  local name, number = wanted, 1
  while vim.fn.bufexists(name) == 1 do
    number = number + 1
    name = ("%s<%d>"):format(wanted, number)
  end
  return name
end

--- Returns the buffer of a view, which is made if there is none.
function M.buffer(view)
  if view.buf and api.nvim_buf_is_loaded(view.buf) then
    return view.buf
  end
  local buf = api.nvim_create_buf(false, true)
  if view.buf then
    by_buf[view.buf] = nil
  end
  view.buf, by_buf[buf] = buf, view
  view.fresh = true
  api.nvim_buf_set_name(buf, free_name(name_of(view)))
  vim.b[buf].magy_root = view.project.root
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].undolevels = -1
  vim.bo[buf].filetype = "magy"
  vim.bo[buf].modifiable = false
  require("magy.view.keys").transcript(buf)
  api.nvim_create_autocmd("BufWinEnter", {
    buffer = buf,
    callback = function()
      window_options(api.nvim_get_current_win(), "transcript")
    end,
  })
  -- Who comes from a prompt may be writing still.
  api.nvim_create_autocmd("BufEnter", { buffer = buf, command = "stopinsert" })
  api.nvim_create_autocmd("CursorMoved", {
    buffer = buf,
    callback = function()
      if api.nvim_win_get_cursor(0)[1] == 1 and api.nvim_buf_line_count(buf) > 1 then
        M.older(view)
      end
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      by_buf[buf] = nil
      if view.buf == buf then
        view.buf = nil
      end
    end,
  })
  draw(view)
  return buf
end

--- Reads older turns, if there are any, and shows them above.
function M.older(view)
  if view.state.floor <= 1 or view.reading or view.attached ~= true then
    return
  end
  view.reading = true
  local params = { sessionId = view.session, before = view.state.floor, limit = 200 }
  local state = view.state
  connection.request(view.project, "magy/session/events", params, function(problem, result)
    view.reading = false
    if result and view.state == state then
      fold.older(view.state, result)
      events.tell("changed", view)
    elseif problem then
      require("magy.say").problem(problem)
    end
  end)
end

-- Windows ---------------------------------------------------------------------------------------

local function split_for(position, size)
  local columns = vim.o.columns
  if position == "auto" then
    position = columns >= 140 and "right" or "bottom"
  end
  if position == "tab" then
    return "tabnew"
  end
  local wide = position == "right" or position == "left"
  local count = math.max(wide and 30 or 8, math.floor((wide and columns or vim.o.lines) * size))
  local side = (position == "right" or position == "bottom") and "botright" or "topleft"
  return ("%s %d%s"):format(side, count, wide and "vsplit" or "split")
end

--- Returns a window of this tab page that shows the view, or nil.
function M.window(view)
  for _, window in ipairs(M.windows(view)) do
    if api.nvim_win_get_tabpage(window) == api.nvim_get_current_tabpage() then
      return window
    end
  end
end

--- Shows a view in a window, which is made if there is none, and returns it. The focus goes there.
function M.open(view)
  local buf = M.buffer(view)
  local window = M.window(view)
  if not window then
    local shown
    for _, one in ipairs(api.nvim_tabpage_list_wins(0)) do
      if by_buf[api.nvim_win_get_buf(one)] then
        shown = one -- a transcript of another session gives way
      end
    end
    if shown then
      window = shown
    else
      local options = config.get().window
      vim.cmd(split_for(options.position, options.size))
      window = api.nvim_get_current_win()
    end
    api.nvim_win_set_buf(window, buf)
    api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(buf), 0 })
    M.go_to_end(view) -- what comes while the windows find their sizes is seen, too
  end
  api.nvim_set_current_win(window)
  return window
end

return M
