-- Neovim with a callback that reads a named pipe into which nobody writes.
local path = vim.env.FIFO
local timer = vim.loop.new_timer()
timer:start(10, 0, function()
  local fd = vim.loop.fs_open(path, "r", 0)
  vim.loop.fs_read(fd, 16, -1)
end)
io.stdout:write("ready\n")
io.stdout:flush()
