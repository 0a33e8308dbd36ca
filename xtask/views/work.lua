-- Neovim whose thread pool reads a named pipe into which nobody writes.
local work = vim.loop.new_work(function(path) io.open(path):read() end, function() end)
for _ = 1, 7 do work:queue(vim.env.FIFO) end
io.stdout:write("ready\n")
io.stdout:flush()
