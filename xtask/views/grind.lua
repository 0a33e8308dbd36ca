-- Neovim with a timer whose callback computes for 300 ms.
local function grind(milliseconds)
  local till = vim.loop.hrtime() + milliseconds * 1e6
  while vim.loop.hrtime() < till do end
end

local timer = vim.loop.new_timer()
timer:start(10, 20, function() grind(300) end)
io.stdout:write("ready\n")
io.stdout:flush()
