-- avante's sidebar with Magy, set up as the page says. Run by `python -m scripts.acp_clients`.

for directory in vim.gsplit(vim.env.PLUGINS, ":") do
  vim.opt.rtp:prepend(directory)
end
-- Avante's own library of prompts is built with Rust; agents by ACP get none of its prompts.
package.preload.avante_templates = function()
  return {
    initialize = function() end,
    render = function()
      return ""
    end,
  }
end
vim.cmd("runtime! plugin/plenary.vim plugin/avante.lua")
vim.cmd.edit(vim.env.FILE)
local file = vim.api.nvim_get_current_buf()
local code = vim.api.nvim_get_current_win()
dofile(vim.env.GUIDE)

local function sidebar()
  return require("avante").get()
end

local function shown()
  local bar = sidebar()
  local result = bar and bar.containers.result
  return result and table.concat(vim.api.nvim_buf_get_lines(result.bufnr, 0, -1, false), "\n") or ""
end

local function until_true(what, condition)
  if not vim.wait(tonumber(vim.env.LONGEST) or 30000, condition, 20) then
    io.stderr:write("not seen: " .. what .. "\n" .. shown() .. "\n")
    io.stderr:write(vim.fn.execute("messages") .. "\n")
    os.exit(1)
  end
  print("seen: " .. what)
end

local function says(text)
  return function()
    return shown():find(text, 1, true) ~= nil
  end
end

local function connected()
  local client = sidebar() and sidebar().acp_client
  return client and client.config_options ~= nil -- it has them with its session
end

local function ask(text)
  vim.api.nvim_set_current_win(code)
  -- Who asks before it is connected has two agents: avante starts one for each.
  require("avante.api").ask()
  until_true("a connection", connected)
  vim.api.nvim_exec_autocmds("User", { pattern = "AvanteInputSubmitted", data = { request = text } })
end

local function press(name)
  until_true("the button " .. name, function()
    return sidebar().permission_handler ~= nil
  end)
  for _, button in ipairs(sidebar().permission_button_options) do
    if button.name:find(name, 1, true) then
      return sidebar().permission_handler(button.id)
    end
  end
  error("there is no button " .. name .. ": " .. vim.inspect(sidebar().permission_button_options))
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(file, 0, -1, false), "\n")
end

ask("be polite")
press("once")
until_true("the end of the turn", says("Done."))
until_true("the edit in the buffer", function()
  return text():find("good morning", 1, true) ~= nil and not vim.bo[file].modified
end)

ask("slow")
until_true("a reply that streams", says("This is"))
require("avante.api").stop()
until_true("a turn that was stopped", says("cancelled by user"))

vim.wait(1000) -- the stop is a notification: nothing says that it has arrived
local client = sidebar().acp_client
local session = sidebar().chat_history.acp_session_id
client.transport.process:kill(9)
until_true("the agent is gone", function()
  return not client:is_connected()
end)
sidebar().acp_client = nil -- as in a Neovim that was started anew: avante does not connect again
sidebar():close()
ask("again")
until_true("a turn in the session of before", says("Here again."))
assert(sidebar().chat_history.acp_session_id == session, "another session")
vim.cmd("qall!")
