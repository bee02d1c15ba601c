--- `:checkhealth magy`.

local config = require("magy.config")

local M = {}

local health = vim.health

local function neovim()
  local version = tostring(vim.version())
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. version)
  else
    health.error("Neovim " .. version .. " is too old.", "Install Neovim 0.11 or newer.")
  end
  local fine = pcall(vim.treesitter.language.inspect, "markdown")
  if fine then
    health.ok("There is a parser of Markdown.")
  else
    health.warn("There is no parser of Markdown: answers are shown plain.", "Use a Neovim that brings its parsers.")
  end
end

local function help()
  local doc = vim.api.nvim_get_runtime_file("doc/magy.txt", false)[1]
  if #vim.fn.getcompletion("magy-commands", "help") > 0 then
    health.ok("`:help magy` is there.")
  else
    health.warn("`:help magy` finds nothing.", ("Run `:helptags %s`."):format(vim.fs.dirname(doc or "")))
  end
end

local function options()
  local wrong = config.wrong()
  if #wrong == 0 then
    health.ok("All options are known.")
  end
  for _, problem in ipairs(wrong) do
    health.error(problem)
  end
end

local function program()
  local cmd = vim.lsp.config.magy and vim.lsp.config.magy.cmd
  if type(cmd) ~= "table" then
    return health.info("`cmd` of the server is a function of yours.")
  end
  if vim.fn.executable(cmd[1]) == 0 then
    return health.error(
      ("There is no program `%s`."):format(cmd[1]),
      'Install Magy, or name it: vim.lsp.config("magy", { cmd = { "/path/to/magy", "lsp" } })'
    )
  end
  local done = vim.system({ cmd[1], "--version" }, { text = true, timeout = 20000 }):wait()
  if done.code == 0 then
    health.ok(("%s: %s"):format(vim.fn.exepath(cmd[1]), vim.trim(done.stdout)))
  else
    health.error(("`%s --version` fails."):format(cmd[1]), vim.split(vim.trim(done.stderr or ""), "\n"))
  end
end

local function projects()
  local some = false
  for _, project in ipairs(require("magy.project").all()) do
    some = true
    local status = require("magy.status")
    local words = ("%s: the server is %s"):format(project.root, project.state)
    if project.problem ~= "" then
      health.error(words .. ". " .. project.problem, "`:Magy log` has what it said.")
    else
      health.ok(("%s; %d questions are open"):format(words, #status.questions(project)))
    end
  end
  if not some then
    health.info("Magy runs in no project; the first `:Magy` starts it.")
  end
end

--- Writes one check of the server's own doctor.
local function told(check)
  local words = ("%s: %s"):format(check.name, check.summary)
  local advice = check.fix ~= "" and { check.fix } or nil
  if check.status == "ok" then
    health.ok(words)
  elseif check.status == "warn" then
    health.warn(words, advice)
  elseif check.status == "fail" then
    health.error(words, advice)
  else
    health.info(words)
  end
end

local function doctor()
  local all = require("magy.project")
  local project = all.here(0)
  if not all.alive(project) then
    return health.info("The server can say more once it runs: `:Magy`, then `:checkhealth magy` again.")
  end
  local result, problem
  require("magy.connection").request(project, "magy/doctor/run", { cwd = project.root }, function(wrong, report)
    problem, result = wrong, report
  end)
  vim.wait(100000, function()
    return result ~= nil or problem ~= nil
  end, 50)
  for _, check in ipairs(result and result.checks or {}) do
    told(check)
  end
  if not result then
    health.error("The server's own report failed: " .. (problem and problem.message or "it does not answer") .. ".")
  end
end

function M.check()
  health.start("Magy: Neovim")
  neovim()
  help()
  options()
  health.start("Magy: server")
  program()
  projects()
  health.info("The log of vim.lsp: " .. vim.lsp.log.get_filename())
  health.start("Magy: what the server finds")
  doctor()
end

return M
