-- Drives Neovim on the libuv under test:
-- `CHECK=… nvim --headless --clean -c 'luafile neovim_checks.lua'`.
--
-- Neovim runs its own loop; a check waits with vim.wait, which turns it.
local uv = vim.loop
local checks = {}

local function equal(got, wanted, what)
  if not vim.deep_equal(got, wanted) then
    error(("%s: %s instead of %s"):format(what or "value", vim.inspect(got), vim.inspect(wanted)), 2)
  end
end

local function await(what, condition)
  if not vim.wait(20000, condition, 5) then error("waited in vain for " .. what, 2) end
end

function checks.jobs()
  local out, code = {}, nil
  local job = vim.fn.jobstart({ "sh", "-c", "cat; echo $COLOUR; pwd; exit 7" }, {
    cwd = "/", env = { COLOUR = "ultraviolet" }, stdout_buffered = true,
    on_stdout = function(_, data) out = data end,
    on_exit = function(_, status) code = status end,
  })
  assert(job > 0)
  vim.fn.chansend(job, ("x"):rep(100000) .. "\n")
  vim.fn.chanclose(job, "stdin")
  await("the job's end", function() return code ~= nil and #out > 0 end)
  equal(code, 7, "exit code")
  equal(#out[1], 100000, "echo")
  equal({ out[2], out[3] }, { "ultraviolet", "/" }, "environment")
  local stopped
  local sleeper = vim.fn.jobstart({ "sleep", "1000" }, { on_exit = function(_, status) stopped = status end })
  vim.fn.jobstop(sleeper)
  await("the stopped job", function() return stopped end)
  equal(stopped, 143, "stopped job")
  equal(vim.fn.system({ "cat" }, "through system()"), "through system()")
  equal(vim.fn.systemlist("echo a; echo b"), { "a", "b" })
  equal(pcall(vim.fn.jobstart, { "/nonexistent/program" }), false, "missing program")
end

function checks.timers()
  local order = {}
  for _, ms in ipairs({ 30, 10, 20 }) do vim.fn.timer_start(ms, function() table.insert(order, ms) end) end
  local beats = 0
  vim.fn.timer_start(5, function() beats = beats + 1 end, { ["repeat"] = 5 })
  local deferred = false
  vim.defer_fn(function() deferred = true end, 10)
  await("timers", function() return #order == 3 and beats == 5 and deferred end)
  equal(order, { 10, 20, 30 }, "order")
end

function checks.terminal()
  vim.cmd("enew")
  local code
  local job = vim.fn.termopen({ "sh", "-c", "stty size; read line; echo got:$line; exit 3" },
    { on_exit = function(_, status) code = status end })
  local text = function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") end
  await("the size", function() return text():match("%d+ %d+") end)
  vim.fn.chansend(job, "hello\n")
  await("the answer", function() return text():match("got:hello") end)
  await("the end", function() return code ~= nil end)
  equal(code, 3, "exit code")
end

-- With its first job on a terminal Neovim begins to watch SIGCHLD, and calls waitpid for all of its
-- children whenever it hears of one. The loop must have taken the status of its own by then.
function checks.exits_after_a_pty_job()
  local in_terminal
  local job = vim.fn.jobstart({ "sh", "-c", "exit 3" },
    { pty = true, on_exit = function(_, status) in_terminal = status end })
  assert(job > 0)
  await("the pty job", function() return in_terminal ~= nil end)
  equal(in_terminal, 3, "exit code of the pty job")
  for round = 1, 5 do
    local code = 6 + round
    equal(vim.fn.system("echo said; exit " .. code), "said\n", "output of system()")
    equal(vim.v.shell_error, code, "v:shell_error after system()")
    equal(vim.fn.systemlist({ "sh", "-c", "cat; exit " .. code }, { "a", "b" }), { "a", "b" }, "output of systemlist()")
    equal(vim.v.shell_error, code, "v:shell_error after systemlist()")
    vim.cmd("silent !exit " .. code)
    equal(vim.v.shell_error, code, "v:shell_error after :!")
    local codes, told, left = {}, {}, 8
    for at = 1, 8 do
      codes[at] = code + at
      vim.fn.jobstart({ "sh", "-c", "exit " .. codes[at] },
        { on_exit = function(_, status) told[at], left = status, left - 1 end })
    end
    await("all exits", function() return left == 0 end)
    equal(told, codes, "on_exit")
    local waited_for = vim.fn.jobstart({ "sh", "-c", "exit " .. code })
    equal(vim.fn.jobwait({ waited_for }, 20000), { code }, "jobwait()")
  end
  local status, signal, handle
  handle = uv.spawn("sh", { args = { "-c", "exit 4" } },
    function(code, number) status, signal = code, number; handle:close() end)
  await("a child of the loop", function() return status ~= nil end)
  equal({ status, signal }, { 4, 0 }, "child of the loop")
  checks.jobs()
  checks.terminal()
  checks.rpc()
  checks.loop_processes_and_work()
  checks.files()
end

function checks.rpc()
  -- A second Neovim as a child over its standard streams, and a third way in: its own socket.
  local child = vim.fn.jobstart({ vim.v.progpath, "--embed", "--headless", "--clean" }, { rpc = true })
  equal(vim.fn.rpcrequest(child, "nvim_eval", "6 * 7"), 42, "request")
  vim.fn.rpcnotify(child, "nvim_command", "let g:told = 'yes'")
  equal(vim.fn.rpcrequest(child, "nvim_eval", "g:told"), "yes", "notification")
  local big = ("z"):rep(1000000)
  equal(#vim.fn.rpcrequest(child, "nvim_exec_lua", "return ...", { big }), #big, "large message")
  local address = vim.fn.rpcrequest(child, "nvim_eval", "serverstart('127.0.0.1:0')")
  local tcp = vim.fn.sockconnect("tcp", address, { rpc = true })
  equal(vim.fn.rpcrequest(tcp, "nvim_eval", "1 + 1"), 2, "over TCP")
  local pipe = vim.fn.sockconnect("pipe", vim.fn.rpcrequest(child, "nvim_eval", "serverstart()"), { rpc = true })
  equal(vim.fn.rpcrequest(pipe, "nvim_eval", "2 + 2"), 4, "over a pipe")
  vim.fn.rpcnotify(child, "nvim_command", "qall!")
  equal(vim.fn.jobwait({ child }, 10000)[1], 0, "exit of the child")
end

function checks.loop_tcp()
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  server:listen(16, function(err)
    assert(not err, err)
    local peer = uv.new_tcp()
    server:accept(peer)
    peer:read_start(function(_, data)
      if data then peer:write(data) else peer:close() end
    end)
  end)
  local body, got, ended = ("blacklight"):rep(100000), {}, false
  local client = uv.new_tcp()
  client:connect("127.0.0.1", server:getsockname().port, function(err)
    assert(not err, err)
    client:read_start(function(_, data)
      if data then table.insert(got, data) else ended = true end
    end)
    client:write(body, function() client:shutdown() end)
  end)
  await("the echo", function() return ended end)
  equal(#table.concat(got), #body, "echo")
  client:close()
  server:close()
end

function checks.loop_fs_event()
  local dir = uv.fs_mkdtemp("/tmp/nvim-check-XXXXXX")
  local seen = {}
  local watcher = uv.new_fs_event()
  watcher:start(dir, {}, function(err, name) assert(not err, err) seen[name] = true end)
  vim.fn.writefile({ "x" }, dir .. "/new")
  await("a new file", function() return seen.new end)
  uv.fs_rename(dir .. "/new", dir .. "/moved")
  await("a moved file", function() return seen.moved end)
  watcher:close()
  local changed = false
  local poll = uv.new_fs_poll()
  poll:start(dir .. "/moved", 20, function(err) assert(not err, err) changed = true end)
  vim.wait(60)
  vim.fn.writefile({ "longer than before" }, dir .. "/moved")
  await("a changed file", function() return changed end)
  poll:close()
  vim.fn.delete(dir, "rf")
end

function checks.loop_processes_and_work()
  local out, status = "", nil
  local stdout = uv.new_pipe(false)
  local handle
  handle = uv.spawn("sh", { args = { "-c", "echo out; exit 4" }, stdio = { nil, stdout, nil } },
    function(code) status = code; handle:close() end)
  stdout:read_start(function(_, data) if data then out = out .. data else stdout:close() end end)
  local squares = 0
  local work = uv.new_work(function(n) return n * n end, function(n) squares = squares + n end)
  for n = 1, 10 do work:queue(n) end
  await("child and work", function() return status and out == "out\n" and squares == 385 end)
  equal(status, 4, "status")
end

function checks.files()
  local dir = uv.fs_mkdtemp("/tmp/nvim-check-XXXXXX")
  local lines = {}
  for n = 1, 20000 do lines[n] = "line " .. n end
  vim.cmd("edit " .. dir .. "/text")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.cmd("write")
  vim.cmd("bwipeout")
  equal(#vim.fn.readfile(dir .. "/text"), 20000, "lines")
  vim.fn.mkdir(dir .. "/a/b", "p")
  equal(vim.fn.isdirectory(dir .. "/a/b"), 1)
  vim.o.autoread = true
  vim.cmd("edit " .. dir .. "/text")
  vim.fn.system("echo other > " .. dir .. "/text; touch -d '1 hour' " .. dir .. "/text")
  vim.cmd("checktime")
  equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), { "other" }, "after a change from outside")
  vim.fn.delete(dir, "rf")
end

local ok, message = xpcall(checks[vim.env.CHECK], debug.traceback)
if not ok then
  io.stderr:write(message, "\n")
  vim.cmd("cquit 1")
end
vim.cmd("qall!")
