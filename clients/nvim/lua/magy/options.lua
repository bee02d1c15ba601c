--- The options of a session: agent, model, what happens to edits, bypass, title.

local connection = require("magy.connection")
local fold = require("magy.state.fold")
local events = require("magy.events")
local say = require("magy.say")
local session = require("magy.session")

local M = {}

local NAMES = { agent = "Agent", model = "Model", review = "Edits", bypass = "Answer all questions by yes" }

--- Sets an option of the view's session.
function M.set(view, option, value, done)
  session.ensure(view, function()
    local params = { sessionId = view.session, configId = option, value = value }
    connection.ask(view.project, "magy/session/set_config_option", params, function(result)
      fold.begins(view.state, result.configOptions)
      events.tell("changed", view)
      if done then
        done()
      else
        say.info("%s: %s", NAMES[option] or option, value)
      end
    end)
  end)
end

--- Lets the person choose one of these values.
local function offer(view, option, offered)
  if #offered == 0 then
    return say.warn("There is nothing to choose: %s.", NAMES[option])
  end
  local now = view.state.options[option]
  vim.ui.select(offered, {
    prompt = NAMES[option],
    format_item = function(one)
      return one .. (one == now and "  (now)" or "")
    end,
  }, function(chosen)
    if chosen then
      M.set(view, option, chosen)
    end
  end)
end

--- The known models, then what each provider says that it has. Says why one does not.
local function models(known, providers)
  local all, seen = {}, {}
  local function add(list)
    for _, model in ipairs(list) do
      if not seen[model] then
        seen[model] = true
        all[#all + 1] = model
      end
    end
  end
  add(known)
  for _, one in ipairs(providers) do
    add(one.models)
    if one.problem ~= "" then
      say.warn("%s", one.problem)
    end
  end
  return all
end

--- Sets an option to a value, or lets the person choose one where `value` is "".
function M.choose(view, option, value)
  if value ~= "" then
    return M.set(view, option, value)
  end
  session.ensure(view, function()
    if option == "bypass" then
      return M.set(view, option, view.state.options.bypass == "on" and "off" or "on")
    end
    local known = view.state.choices[option] or {}
    if option ~= "model" then
      return offer(view, option, known)
    end
    connection.ask(view.project, "magy/model/list", { cwd = view.project.root }, function(result)
      offer(view, option, models(known, result.providers))
    end)
  end)
end

return M
