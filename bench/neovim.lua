-- nvim --clean --headless --cmd "set runtimepath^=CLIENT" -c "luafile neovim.lua" -c qall!
-- Writes to $BENCH_RESULT the seconds of processor time in which the transcript of a session of
-- $BENCH_TURNS turns takes $BENCH_DELTAS deltas of one answer and shows them in a window, 25 between one
-- drawing and the next.

local turns, deltas = tonumber(vim.env.BENCH_TURNS), tonumber(vim.env.BENCH_DELTAS)
local buffers = require("magy.view.buffer")
local fold = require("magy.state.fold")
local session = require("magy.session")

local view = session.main(require("magy.project").of(vim.fn.getcwd()))
session.show(view, "s")
buffers.open(view)

local function text(words)
  return { type = "text", text = words }
end

local seq = 0
local function entry(update)
  seq = seq + 1
  update._meta = { magy = { seq = seq, at = seq } }
  fold.update(view.state, update)
end

for turn = 1, turns do
  local id, reply = "p" .. turn, tostring(turn)
  entry({ sessionUpdate = "user_message", messageId = id, content = { text("And now?") } })
  entry({ sessionUpdate = "agent_message", messageId = reply, content = { text("A **line**.\n\n- one\n- two") } })
  entry({ sessionUpdate = "tool_call_update", toolCallId = reply .. ".0", title = "Read a.py", status = "completed" })
end
buffers.flush(view)
collectgarbage()

local before = os.clock()
for at = 1, deltas do
  local words = at % 12 == 0 and ("of a **line** %d.\n\n"):format(at) or ("word %d "):format(at)
  fold.update(view.state, { sessionUpdate = "agent_message_chunk", messageId = "900000", content = text(words) })
  if at % 25 == 0 then
    buffers.flush(view)
    vim.cmd.redraw()
  end
end
local took = os.clock() - before
local last = vim.api.nvim_buf_get_lines(view.buf, -3, -1, false)
assert(table.concat(last):find("word " .. deltas, 1, true), "the stream is shown")
vim.fn.writefile({ tostring(took) }, vim.env.BENCH_RESULT)
