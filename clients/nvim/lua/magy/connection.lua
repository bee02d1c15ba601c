--- The server of a project: starting and ending it, requests to it, and what it says.

local config = require("magy.config")
local events = require("magy.events")
local projects = require("magy.project")
local say = require("magy.say")

local M = {}

M.PROTOCOL = 1
M.VERSION = "0.1.0"

-- These answer when their work is done, which may take long.
local LONG = { ["magy/child/wait"] = true, ["magy/doctor/run"] = true, ["magy/session/summarize"] = true }

local NOTIFICATIONS = {
  "magy/session/update",
  "magy/session/listChanged",
  "magy/interaction/changed",
  "magy/child/changed",
  "magy/review/changed",
  "magy/rewrite/draft",
  "magy/completion/changed",
}

local answers = {} -- method -> what answers it, with (project, params)

--- Has requests of the server's of this method answered by `answer(project, params)`.
function M.answer(method, answer)
  answers[method] = answer
end

local function handlers()
  local made = {}
  for _, method in ipairs(NOTIFICATIONS) do
    made[method] = function(_, params, ctx)
      local project = projects.of_client(ctx.client_id)
      if project then
        events.tell(method, project, params or {})
      end
    end
  end
  made["window/showMessage"] = function(_, params, ctx)
    local project = projects.of_client(ctx.client_id)
    if project then
      say.told(project, params)
    end
  end
  for method in pairs(answers) do
    made[method] = function(_, params, ctx)
      local project = projects.of_client(ctx.client_id)
      if not project then
        return nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.InternalError, "The project is not there.")
      end
      return answers[method](project, params)
    end
  end
  return made
end

local function adopt(client)
  local root = client.root_dir or (client.workspace_folders or {})[1] and client.workspace_folders[1].name
  local project = projects.of(vim.uv.fs_realpath(root or vim.fn.getcwd()) or root)
  project.client = client
  return project
end

local function version_problem(client)
  local about = (client.server_capabilities.experimental or {}).magy or {}
  if about.protocol == M.PROTOCOL then
    return nil
  end
  local server = about.version or "of unknown version"
  if (about.protocol or 0) < M.PROTOCOL then
    return ("Update the server (%s): this plugin (%s) is newer."):format(server, M.VERSION)
  end
  return ("Update this plugin (%s): the server (%s) is newer."):format(M.VERSION, server)
end

local function ready(client)
  local project = adopt(client)
  local problem = version_problem(client)
  if problem then
    project.state, project.problem = "dead", problem
    say.warn("%s", problem)
    project.ready = {}
    project.ending = true
    return client:stop()
  end
  project.state, project.problem, project.ending = "running", "", false
  events.tell("ready", project)
  local waiting = project.ready
  project.ready = {}
  for _, next in ipairs(waiting) do
    next()
  end
end

local function fail_all(project, why)
  local open = project.open or {}
  project.open = {}
  for _, done in pairs(open) do
    done({ message = why, gone = true }, nil)
  end
end

local function ended(code, signal, id)
  local project = projects.of_client(id)
  if not project then
    return
  end
  local began = project.state == "starting"
  local how = signal ~= 0 and ("signal " .. signal) or ("status " .. code)
  local asked = project.ending
  project.client, project.ending, project.ready = nil, false, {}
  if asked then
    project.state = project.problem ~= "" and "dead" or "stopped"
    fail_all(project, "Magy's server was stopped before it answered.")
  else
    project.state = "dead"
    project.problem = ("Magy's server ended %s (%s)."):format(began and "as it started" or "unexpectedly", how)
    local next_step = began and "`:checkhealth magy` says more." or "The next command starts it again and goes on."
    say.warn("%s %s", project.problem, next_step)
    fail_all(project, project.problem)
  end
  events.tell("died", project, not asked)
end

--- Returns the configuration for vim.lsp (`lsp/magy.lua`).
function M.lsp_config()
  require("magy.parts")
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.general.positionEncodings = { "utf-8" }
  capabilities.workspace.workspaceEdit.documentChanges = true
  return {
    cmd = { "magy", "lsp" },
    root_dir = function(buf, start)
      if vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= "" then
        start(projects.root_of(buf))
      end
    end,
    capabilities = capabilities,
    flags = { debounce_text_changes = 50 },
    handlers = handlers(),
    before_init = function(params)
      params.initializationOptions = {
        magy = {
          client = { name = "Neovim", version = M.VERSION },
          capabilities = {
            interactions = true,
            review = true,
            editor = { save = true, diagnostics = true, definition = true, references = true, symbols = true },
          },
          settings = next(config.get().settings) and config.get().settings or vim.empty_dict(),
        },
      }
    end,
    on_init = vim.schedule_wrap(ready),
    on_exit = vim.schedule_wrap(ended),
  }
end

local function missing(cmd)
  if type(cmd) ~= "table" or vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  return ("There is no program `%s`. Install Magy, or name it: "):format(cmd[1])
    .. 'vim.lsp.config("magy", { cmd = { "/path/to/magy", "lsp" } })'
end

local function start(project)
  local wanted = vim.lsp.config.magy
  local problem = missing(wanted.cmd)
  if problem then
    project.state, project.problem, project.ready = "dead", problem, {}
    say.warn("%s", problem)
    events.tell("died", project, true)
    return
  end
  project.state, project.ending = "starting", false
  local folder = { uri = vim.uri_from_fname(project.root), name = project.root }
  local own =
    vim.tbl_extend("force", wanted, { name = "magy", root_dir = project.root, workspace_folders = { folder } })
  local before = vim.api.nvim_get_proc_children(vim.fn.getpid())
  local id = vim.lsp.start(own, { attach = false })
  project.process = vim.iter(vim.api.nvim_get_proc_children(vim.fn.getpid())):find(function(pid)
    return not vim.tbl_contains(before, pid)
  end)
  local client = id and vim.lsp.get_client_by_id(id)
  if not client then
    project.state, project.ready = "dead", {}
    project.problem = "Magy's server could not be started; `:checkhealth magy` says more."
    events.tell("died", project, true)
  elseif client.initialized then
    ready(client)
  else
    project.client = client
  end
end

--- Calls `next` when the server of the project is there, which is started if needed.
function M.when_ready(project, next)
  if projects.alive(project) then
    return next()
  end
  table.insert(project.ready, next)
  if project.state ~= "starting" then
    start(project)
  end
end

local function watch(project, method)
  if LONG[method] then
    return nil
  end
  local timer = assert(vim.uv.new_timer())
  local patience = config.get().patience
  timer:start(
    math.floor(patience * 1000),
    0,
    vim.schedule_wrap(function()
      if project.state == "running" then
        project.state = "silent"
        say.warn("no answer for %s s; `:Magy restart` loses nothing.", patience)
        vim.cmd.redrawstatus({ bang = true })
      end
    end)
  )
  return timer
end

--- Sends a request to a server that is there; `done(problem, result)` gets the answer, once. Returns what
--- `cancel` takes, or nil.
function M.request(project, method, params, done)
  local client = project.client
  if not projects.alive(project) or not client then
    done({ message = project.problem ~= "" and project.problem or "Magy's server does not run.", gone = true }, nil)
    return nil
  end
  local timer, token = watch(project, method), {}
  project.open = project.open or {}
  local function answered(problem, result)
    if not project.open[token] then
      return
    end
    project.open[token] = nil
    if timer then
      timer:close()
    end
    if project.state == "silent" and not (problem and problem.gone) then
      project.state = "running"
    end
    done(problem, result)
  end
  project.open[token] = answered
  for buf in pairs(client.attached_buffers) do
    require("vim.lsp._changetracking").flush(client, buf)
  end
  local sent, id = client:request(method, params, answered)
  if not sent then
    answered({ message = "Magy's server has just ended.", gone = true }, nil)
  end
  return sent and id or nil
end

--- The same for a command whose answer shows in no window yet: that the server starts is said.
function M.awaited(project, next)
  if not projects.alive(project) then
    say.info("Magy starts in %s; it goes on then.", project.name)
  end
  M.when_ready(project, next)
end

--- Starts the server if needed, and sends a request; a problem is said unless `failed` takes it.
function M.ask(project, method, params, done, failed)
  M.awaited(project, function()
    M.request(project, method, params, function(problem, result)
      if problem then
        (failed or say.problem)(problem)
      elseif done then
        done(result)
      end
    end)
  end)
end

--- Withdraws a request.
function M.cancel(project, id)
  if id and project.client then
    project.client:cancel_request(id)
  end
end

local ENDING = 5000 -- milliseconds that a server which was asked to end may take

--- Ends a server that does not end by itself. vim.lsp can only ask it to.
local function kill(project, client)
  client:stop(true)
  if project.process then
    vim.uv.kill(project.process, "sigkill")
  end
end

--- Ends the server, one that hangs at once; `done` is called when it has gone.
function M.stop(project, done)
  local client, waited = project.client, 0
  if not client then
    return done and done()
  end
  local hangs = project.state ~= "running"
  project.ending, project.problem = true, ""
  client:stop()
  local timer = assert(vim.uv.new_timer())
  local function look()
    if project.client == client and waited == (hangs and 500 or ENDING) then
      kill(project, client)
    elseif project.client ~= client and not timer:is_closing() then
      timer:close()
      if done then
        done()
      end
    end
    waited = waited + 50
  end
  timer:start(0, 50, vim.schedule_wrap(look))
end

--- Ends the server, even one that hangs, and starts it again. Sessions go on where they were.
function M.restart(project)
  M.stop(project, function()
    M.when_ready(project, function()
      say.info("The server runs again.")
    end)
  end)
end

return M
