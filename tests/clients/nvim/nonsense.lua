-- nvim --clean --headless -l nonsense.lua CLIENT RECORDING
-- Prints as JSON the blocks of a recorded session before and after it was told what is no update.

package.path = vim.fs.dirname(arg[0]) .. "/?.lua;" .. package.path
local recording = require("recording")
local fold = require("magy.state.fold")

local t = recording.recorded(recording.read(arg[2]))
local before = recording.shown(t)
for _, news in ipairs({
  { sessionUpdate = "_from_the_future", content = { x = 1 } },
  { sessionUpdate = "plan_update" },
  { sessionUpdate = "_magy_mail" },
  { sessionUpdate = 7 },
  {},
  "nonsense",
  false,
}) do
  fold.update(t, news)
end
io.write(vim.json.encode({ before, recording.shown(t) }))
