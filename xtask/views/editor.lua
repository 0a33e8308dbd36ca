-- Neovim with a timer and a job.
vim.fn.timer_start(1000, function() end, { ["repeat"] = -1 })
local job = vim.fn.jobstart({ "sleep", "1000" })
io.stdout:write("ready ", vim.fn.jobpid(job), "\n")
io.stdout:flush()
