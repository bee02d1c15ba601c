-- nvim --clean --headless -l blocks.lua CLIENT RECORDING...
-- Prints as JSON, for each recorded session, its blocks as [kind, text].

package.path = vim.fs.dirname(arg[0]) .. "/?.lua;" .. package.path
local recording = require("recording")

io.write(vim.json.encode(vim.tbl_map(function(path)
  return recording.shown(recording.recorded(recording.read(path)))
end, vim.list_slice(arg, 2))))
