--- Projects: each root has a server of its own, and one session that its transcript shows.

local M = {}

local MARKERS = { ".magy", ".git" }

local all = {}

--- Returns the root that a buffer belongs to; 0: the current one. Without one, the working directory.
function M.root_of(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  local own = vim.b[buf].magy_root
  if own then
    return own
  end
  local name = vim.api.nvim_buf_get_name(buf)
  local at = vim.bo[buf].buftype == "" and name ~= "" and vim.fs.root(name, MARKERS) or nil
  return vim.uv.fs_realpath(at or vim.fs.root(vim.fn.getcwd(), MARKERS) or vim.fn.getcwd()) or vim.fn.getcwd()
end

--- Returns the project of that root, which is made if there is none.
function M.of(root)
  if not all[root] then
    all[root] = {
      root = root,
      name = vim.fs.basename(root) ~= "" and vim.fs.basename(root) or root,
      state = "stopped", -- stopped | starting | running | silent | dead
      problem = "",
      views = {}, -- session id -> view of a child
      ready = {}, -- what is done once the server is there
    }
  end
  return all[root]
end

--- Returns the project of a buffer; 0: of the current one.
function M.here(buf)
  return M.of(M.root_of(buf or 0))
end

--- Returns the project that has this client of vim.lsp, or nil.
function M.of_client(id)
  for _, project in pairs(all) do
    if project.client and project.client.id == id then
      return project
    end
  end
end

--- Returns all projects.
function M.all()
  return vim.tbl_values(all)
end

--- Returns whether the server is there, answering or not.
function M.alive(project)
  return project.state == "running" or project.state == "silent"
end

--- Returns the path from the root on, or the whole path of what lies elsewhere.
function M.short(project, path)
  return vim.fs.relpath(project.root, path) or path
end

return M
