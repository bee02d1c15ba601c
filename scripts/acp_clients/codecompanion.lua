-- CodeCompanion's chat with Magy, set up as the page says. Run by `python -m scripts.acp_clients`.

for directory in vim.gsplit(vim.env.PLUGINS, ":") do
  vim.opt.rtp:prepend(directory)
end
vim.cmd("runtime! plugin/plenary.vim plugin/codecompanion.lua")
dofile(vim.env.GUIDE)

local chat

local function shown()
  return table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), "\n")
end

local function until_true(what, condition)
  if not vim.wait(30000, condition, 20) then
    io.stderr:write("not seen: " .. what .. "\n" .. (chat and shown() or "") .. "\n")
    os.exit(1)
  end
  print("seen: " .. what)
end

local function says(text)
  return function()
    return shown():find(text, 1, true) ~= nil
  end
end

local function ask(text)
  until_true("the chat is ready", function()
    return vim.bo[chat.bufnr].modifiable
  end)
  vim.api.nvim_buf_set_lines(chat.bufnr, -1, -1, false, { text })
  chat:submit()
end

local function press(key)
  for _, map in ipairs(vim.api.nvim_buf_get_keymap(chat.bufnr, "n")) do
    if map.lhs == key then
      return map.callback()
    end
  end
  error("there is no key " .. key)
end

vim.cmd.edit(vim.env.FILE)
local file = vim.api.nvim_get_current_buf()
vim.api.nvim_buf_set_lines(file, -1, -1, false, { "# not saved" })

chat = require("codecompanion").chat()
ask("be polite")
until_true("a question with the diff", says('+    print("good morning")'))
until_true("its keys", says("Accept"))
press("g2")
until_true("the end of the turn", says("Done."))
until_true("the edit on disk", function()
  return table.concat(vim.fn.readfile(vim.env.FILE), "\n"):find("good morning", 1, true) ~= nil
end)
until_true("the unsaved text", function()
  local lines = vim.api.nvim_buf_get_lines(file, 0, -1, false)
  return lines[#lines] == "# not saved" and vim.bo[file].modified
end)

ask("slow")
until_true("a reply that streams", says("This is"))
chat:stop()
until_true("a turn that was stopped", function()
  return vim.bo[chat.bufnr].modifiable and not shown():find("more is to come", 1, true)
end)

vim.wait(1000) -- the stop is a notification: nothing says that it has arrived
local session = chat.acp_connection.session_id
local pid = chat.acp_connection._state.handle.pid
vim.uv.kill(pid, "sigkill")
until_true("the agent is gone", function()
  return not chat.acp_connection:is_ready()
end)

chat = require("codecompanion").chat()
until_true("a connection anew", function()
  return chat.acp_connection and chat.acp_connection:is_connected()
end)
local updates = {}
local loaded = chat.acp_connection:load_session(session, {
  on_session_update = function(update)
    table.insert(updates, update)
  end,
})
until_true("the session loaded anew", function()
  return loaded and #updates > 0
end)
require("codecompanion.interactions.chat.acp.render").restore_session(chat, updates)
until_true("what was said before", says("I will greet politely."))
ask("again")
until_true("a turn in the session of before", says("Here again."))
vim.cmd("qall!")
