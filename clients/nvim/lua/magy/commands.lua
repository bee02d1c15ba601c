--- `:Magy` and its subcommands. Each is {run, words, complete}: `run(args)` gets {text, words, range, bang}.

local buffers = require("magy.view.buffer")
local connection = require("magy.connection")
local projects = require("magy.project")
local prompt = require("magy.prompt")
local say = require("magy.say")
local session = require("magy.session")

require("magy.parts")

local M = {}

--- Returns the view that is meant: that of the current buffer, or the project's own.
local function view_here()
  local own = prompt.of(0)
  return buffers.view_of(0) or (own and own.view) or session.main(projects.here(0))
end

M.view_here = view_here

--- Returns what calls a function of a module that is loaded then.
local function late(module, name, ...)
  local given = { ... }
  return function()
    require("magy." .. module)[name](unpack(given))
  end
end

--- The same for a function that is about the view that is meant, and the text of the command.
local function of_view(module, name)
  return function(args)
    require("magy." .. module)[name](view_here(), args.text)
  end
end

local function decide(decision)
  return function(args)
    require("magy.review.decide").decide(decision, args)
  end
end

local function choose_option(option)
  return function(args)
    require("magy.options").choose(view_here(), option, args.text)
  end
end

local function option_values(option)
  return function()
    return view_here().state.choices[option] or {}
  end
end

--- The subcommands, by name.
M.all = {
  open = {
    words = "open the transcript and the prompt",
    run = function(args)
      prompt.here(args.range)
    end,
  },
  close = { words = "close the windows of transcript and prompt", run = late("prompt", "close") },
  ask = {
    words = "ask; the text, or the prompt without one, goes with what is around the cursor",
    run = function(args)
      if args.text == "" then
        return prompt.here(args.range)
      end
      prompt.ask(view_here(), args.text, args.range)
    end,
  },
  send = {
    words = "send what is written in the prompt: auto, queue or interrupt",
    complete = { "auto", "queue", "interrupt" },
    run = function(args)
      prompt.send(args.words[1] or "auto")
    end,
  },
  context = {
    words = "take the thing of that number out of what goes along, or put it in",
    run = function(args)
      prompt.toggle(tonumber(args.words[1]) or 0)
    end,
  },
  mention = {
    words = "choose a file, symbol, skill or agent to name in the prompt; the text is a part of its name",
    run = of_view("mention", "choose"),
  },
  skills = {
    words = "choose a skill, to use it in a prompt or to read it",
    run = of_view("mention", "skills"),
  },
  stop = {
    words = "stop what runs in the session, or the rewriting here",
    run = function()
      if require("magy.rewrite").stop_here() then
        return
      end
      local view = view_here()
      if not view.session or not projects.alive(view.project) then
        return say.info("Nothing runs.")
      end
      connection.ask(view.project, "magy/session/cancel", { sessionId = view.session }, function(result)
        say.info(result.cancelled and "Stopped." or "Nothing runs.")
      end)
    end,
  },
  answer = { words = "go to the question, where keys answer", run = late("panel", "answer") },
  allow = {
    words = "allow what is asked: once, session or project",
    complete = { "once", "session", "project" },
    run = function(args)
      require("magy.panel").allow(args.words[1] or "once")
    end,
  },
  refuse = {
    words = "refuse what is asked; the text is the reason",
    run = function(args)
      require("magy.panel").refuse(args.text)
    end,
  },
  later = { words = "take the panel of the question away; it stays open", run = late("panel", "hide") },
  agent = {
    words = "choose the agent of this session",
    run = choose_option("agent"),
    complete = option_values("agent"),
  },
  model = {
    words = "choose the model of this session",
    run = choose_option("model"),
    complete = option_values("model"),
  },
  mode = {
    words = "choose what happens to edits: review, propose or auto",
    run = choose_option("review"),
    complete = { "review", "propose", "auto" },
  },
  bypass = {
    words = "have questions answered by yes: on or off",
    run = choose_option("bypass"),
    complete = { "on", "off" },
  },
  new = {
    words = "begin a new session; the old one goes on",
    run = function()
      local project = projects.here(0)
      connection.when_ready(project, function()
        session.new(project, function()
          say.info("A new session; `:Magy resume` goes back to the old one.")
        end)
      end)
    end,
  },
  resume = {
    words = "choose a session, this project's first, and go on with it; last: with the one before",
    complete = { "last" },
    run = of_view("sessions", "resume"),
  },
  fork = { words = "copy this session, and show the copy", run = of_view("sessions", "fork") },
  rename = { words = "give the session a title", run = of_view("sessions", "rename") },
  export = { words = "write the whole session to a file, as Markdown", run = of_view("sessions", "export") },
  delete = { words = "choose a session and delete it for good", run = late("sessions", "delete") },
  compact = {
    words = "sum up the older part of the session; the text says what to keep",
    run = function(args)
      require("magy.special").done(view_here(), vim.trim("@compact " .. args.text), {})
    end,
  },
  queue = { words = "take a prompt back that waits, or put it first", run = of_view("waiting", "choose") },
  trust = { words = "say whether you trust the project's own configuration", run = late("waiting", "trust") },
  permissions = {
    words = "list what was allowed for good, and withdraw it",
    run = of_view("sessions", "permissions"),
  },
  children = { words = "show the agents below the session", run = late("children", "open") },
  spawn = {
    words = "give an agent a task: AGENT [--worktree] TASK; what is left out is asked for",
    run = function(args)
      local agent, task = args.text:match("^(%S+)%s*(.*)$")
      require("magy.children").spawn(view_here(), nil, agent, task)
    end,
  },
  magi = {
    words = "have three agents judge a question; their votes come to a ruling",
    run = of_view("magi", "deliberate"),
  },
  rulings = { words = "read a ruling of the session, worked out again", run = of_view("magi", "rulings") },
  feelings = {
    words = "read what CASPER remembers in this project",
    run = of_view("magi", "emotional_log"),
  },
  actions = {
    words = "choose what to do here: explain, fix, refactor, document, ...",
    run = function(args)
      require("magy.actions").choose(args.range)
    end,
  },
  rewrite = {
    words = "rewrite the range, or the paragraph here, as the text says",
    run = function(args)
      require("magy.rewrite").start(args.range, args.text)
    end,
  },
  review = {
    words = "list all changes that wait for a decision in the quickfix list",
    run = late("review.lists", "quickfix"),
  },
  diff = { words = "show the file beside what it was before", run = late("review.lists", "diff") },
  next = { words = "go to the next change, in whatever file", run = late("review.decide", "go", "next") },
  previous = { words = "go to the previous change", run = late("review.decide", "go", "previous") },
  accept = {
    words = "accept the change here, those in the range, of the file, or all",
    complete = { "file", "all" },
    run = decide("accept"),
  },
  reject = {
    words = "reject the same; with ! you say why, and the agent is told",
    complete = { "file", "all" },
    run = decide("reject"),
  },
  amend = { words = "write the new lines of the change here yourself", run = late("review.decide", "amend") },
  comment = {
    words = "say something about the change here to the agent",
    run = function(args)
      require("magy.review.decide").comment(args.text)
    end,
  },
  unreview = {
    words = "take back the last decision; with ! choose which",
    run = function(args)
      require("magy.review.decide").undo(args.bang)
    end,
  },
  undo = { words = "undo the last turn, after a look at what would change", run = of_view("checkpoints", "undo") },
  redo = { words = "redo the turn that was undone last", run = of_view("checkpoints", "redo") },
  checkpoints = { words = "go back to where a turn began", run = of_view("checkpoints", "list") },
  older = {
    words = "show older turns",
    run = function()
      buffers.older(view_here())
    end,
  },
  restart = {
    words = "end the server, even one that hangs, and start it again",
    run = function()
      connection.restart(projects.here(0))
    end,
  },
  shutdown = {
    words = "end the project's server; nothing is lost",
    run = function()
      connection.stop(projects.here(0), function()
        say.info("The server has ended.")
      end)
    end,
  },
  log = {
    words = "show the log of vim.lsp, which has what the server says",
    run = function()
      vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
    end,
  },
  help = {
    words = "show the help",
    run = function()
      vim.cmd.help("magy-commands")
    end,
  },
}

--- What `<Plug>` maps of Magy's own buffers do, beside the subcommands.
local PLUGS = {
  ["send-queue"] = function()
    prompt.send("queue")
  end,
  ["send-interrupt"] = function()
    prompt.send("interrupt")
  end,
  fold = function()
    buffers.fold(nil)
  end,
  ["fold-open"] = function()
    buffers.fold(true)
  end,
  ["fold-close"] = function()
    buffers.fold(false)
  end,
  ["fold-open-all"] = function()
    buffers.fold_all(true)
  end,
  ["fold-close-all"] = function()
    buffers.fold_all(false)
  end,
  visit = function()
    require("magy.visit").here()
  end,
  parent = function()
    require("magy.visit").parent()
  end,
  ["prompt-next"] = function()
    require("magy.visit").prompt(1)
  end,
  ["prompt-previous"] = function()
    require("magy.visit").prompt(-1)
  end,
  ["history-previous"] = function()
    prompt.history(-1)
  end,
  ["history-next"] = function()
    prompt.history(1)
  end,
}

local function run(name, args)
  local fine, problem = xpcall(M.all[name].run, debug.traceback, args)
  if not fine then
    vim.lsp.log.error("Magy: " .. name, problem)
    say.warn("`:Magy %s` failed: %s (`:Magy log` has more.)", name, problem:match("^[^\n]*"))
  end
end

--- Runs `:Magy ...`; `command` is what a user command gets.
function M.run(command)
  local name, bang = (command.fargs[1] or "open"):match("^(.-)(!?)$")
  if not M.all[name] then
    return say.warn("There is no `:Magy %s`. `:Magy help` lists what there is.", name)
  end
  local words = vim.list_slice(command.fargs, 2)
  local whole = command.args or table.concat(command.fargs, " ")
  local text = vim.trim((whole:gsub("^%s*%S+", "", 1)))
  local range = (command.range or 0) > 0 and { command.line1, command.line2 } or nil
  run(name, { words = words, text = text, range = range, bang = command.bang or bang == "!" })
end

--- Runs what `<Plug>(magy-NAME)` stands for; in visual mode, about the lines that are selected.
function M.plug(name)
  local range
  if vim.fn.mode():find("^[vV\22]") then
    local first, last = vim.fn.line("v"), vim.fn.line(".")
    range = { math.min(first, last), math.max(first, last) }
    vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  if PLUGS[name] then
    return PLUGS[name]()
  end
  run(name, { words = {}, text = "", range = range, bang = false })
end

--- Completes `:Magy ...`.
function M.complete(lead, line, place)
  local before = line:sub(1, place):gsub("^.-Magy!?%s+", "")
  local name = before:match("^(%S+)%s")
  local offered = vim.tbl_keys(M.all)
  if name then
    local complete = M.all[name] and M.all[name].complete or {}
    offered = type(complete) == "function" and complete() or complete
  end
  table.sort(offered)
  return vim.tbl_filter(function(one)
    return vim.startswith(one, lead)
  end, offered)
end

return M
