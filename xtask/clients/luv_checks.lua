-- Drives Lua with luv on the libuv under test: `lua5.1 luv_checks.lua CHECK`.
local uv = require("luv")

local checks = {}

local function equal(got, wanted, what)
  if got ~= wanted then
    error(("%s: %s instead of %s"):format(what or "value", tostring(got), tostring(wanted)), 2)
  end
end

local function scratch()
  return assert(uv.fs_mkdtemp((os.getenv("TMPDIR") or "/tmp") .. "/luv-check-XXXXXX"))
end

function checks.timers()
  local order, beats = {}, 0
  for _, ms in ipairs({ 30, 10, 20 }) do
    local timer = uv.new_timer()
    timer:start(ms, 0, function() order[#order + 1] = ms; timer:close() end)
  end
  local repeating = uv.new_timer()
  repeating:start(5, 5, function()
    beats = beats + 1
    if beats == 5 then repeating:close() end
  end)
  uv.run()
  equal(table.concat(order, " "), "10 20 30", "order")
  equal(beats, 5, "beats")
end

function checks.loop_watchers()
  local said = {}
  local prepare, check, idle = uv.new_prepare(), uv.new_check(), uv.new_idle()
  idle:start(function() said[#said + 1] = "idle" end)
  prepare:start(function() said[#said + 1] = "prepare"; prepare:stop() end)
  check:start(function() said[#said + 1] = "check"; check:stop(); idle:stop() end)
  uv.run()
  equal(table.concat(said, " "), "idle prepare check", "phases")
  local walked = 0
  uv.walk(function(handle) walked = walked + 1; handle:close() end)
  uv.run()
  assert(walked >= 3)
end

local function echo_on(server, connect)
  server:listen(128, function(err)
    assert(not err, err)
    local peer = getmetatable(server) == getmetatable(uv.new_tcp()) and uv.new_tcp() or uv.new_pipe(false)
    server:accept(peer)
    peer:read_start(function(err, data)
      assert(not err, err)
      if data then peer:write(data) else peer:shutdown(function() peer:close() end) end
    end)
  end)
  local body, got, open = ("blacklight"):rep(100000), {}, 3
  for n = 1, 3 do
    got[n] = {}
    local client
    client = connect(function(err)
      assert(not err, err)
      client:read_start(function(err, data)
        assert(not err, err)
        if data then table.insert(got[n], data) return end
        client:close()
        open = open - 1
        if open == 0 then server:close() end
      end)
      client:write(body)
      client:shutdown()
    end)
  end
  uv.run()
  for n = 1, 3 do equal(#table.concat(got[n]), #body, "echo") end
end

function checks.tcp()
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  echo_on(server, function(connected)
    local client = uv.new_tcp()
    client:connect("127.0.0.1", server:getsockname().port, connected)
    return client
  end)
end

function checks.pipe()
  local dir = scratch()
  local server = uv.new_pipe(false)
  server:bind(dir .. "/socket")
  echo_on(server, function(connected)
    local client = uv.new_pipe(false)
    client:connect(dir .. "/socket", connected)
    return client
  end)
  uv.fs_rmdir(dir)
end

function checks.udp()
  local server, client, seen = uv.new_udp(), uv.new_udp(), 0
  server:bind("127.0.0.1", 0)
  server:recv_start(function(err, data, from)
    assert(not err, err)
    if data then server:send(data, from.ip, from.port, function() end) end
  end)
  local port = server:getsockname().port
  client:bind("127.0.0.1", 0)
  local function send() client:send(("%d"):format(seen):rep(100), "127.0.0.1", port, function() end) end
  client:recv_start(function(err, data)
    assert(not err, err)
    if not data then return end
    equal(data, ("%d"):format(seen):rep(100), "datagram")
    seen = seen + 1
    if seen == 50 then client:close() server:close() else send() end
  end)
  send()
  uv.run()
  equal(seen, 50, "datagrams")
end

function checks.processes()
  local stdin, stdout = uv.new_pipe(false), uv.new_pipe(false)
  local status, out = nil, {}
  local handle
  handle = assert(uv.spawn("sh", { args = { "-c", "cat; pwd; echo $COLOUR; exit 7" },
    stdio = { stdin, stdout, 2 }, cwd = "/", env = { "COLOUR=ultraviolet", "PATH=/usr/bin:/bin" } },
    function(code, signal) status = code .. " " .. signal; handle:close() end))
  stdout:read_start(function(err, data)
    assert(not err, err)
    if data then table.insert(out, data) else stdout:close() end
  end)
  stdin:write(("x"):rep(200000))
  stdin:shutdown(function() stdin:close() end)
  uv.run()
  equal(status, "7 0", "status")
  equal(table.concat(out), ("x"):rep(200000) .. "/\nultraviolet\n", "output")
  local killed
  local sleeper
  sleeper = uv.spawn("sleep", { args = { "1000" } }, function(_, signal) killed = signal; sleeper:close() end)
  sleeper:kill("sigterm")
  uv.run()
  equal(killed, 15, "signal")
  local none, message = uv.spawn("/nonexistent/program", { args = {} }, function() end)
  assert(not none and message:match("^ENOENT"), message)
  -- luv closes the handle behind our back, and does not outlive a loop that had no time for it.
  uv.run()
end

function checks.signals()
  local seen = 0
  local watcher = uv.new_signal()
  watcher:start("sigusr1", function(name)
    equal(name, "sigusr1")
    seen = seen + 1
    if seen == 3 then watcher:close() else uv.kill(uv.getpid(), "sigusr1") end
  end)
  uv.kill(uv.getpid(), "sigusr1")
  uv.run()
  equal(seen, 3, "signals")
end

function checks.fs()
  local dir = scratch()
  local file = dir .. "/a"
  local fd = assert(uv.fs_open(file, "w+", 420))
  equal(uv.fs_write(fd, "hello world", 0), 11, "written")
  equal(uv.fs_read(fd, 5, 6), "world", "read")
  local finished = 0
  uv.fs_fstat(fd, function(err, stat)
    assert(not err, err)
    equal(stat.size, 11, "size")
    equal(stat.type, "file", "type")
    finished = finished + 1
  end)
  uv.fs_stat(dir .. "/none", function(err) assert(err:match("^ENOENT"), err) finished = finished + 1 end)
  uv.run()
  equal(finished, 2, "requests")
  uv.fs_close(fd)
  uv.fs_symlink("a", dir .. "/link")
  equal(uv.fs_readlink(dir .. "/link"), "a")
  uv.fs_rename(file, dir .. "/b")
  local names = {}
  local request = uv.fs_scandir(dir)
  for name, kind in function() return uv.fs_scandir_next(request) end do names[#names + 1] = name .. ":" .. kind end
  table.sort(names)
  equal(table.concat(names, " "), "b:file link:link", "scandir")
  uv.fs_unlink(dir .. "/b")
  uv.fs_unlink(dir .. "/link")
  assert(uv.fs_rmdir(dir))
end

function checks.fs_event()
  local dir = scratch()
  local seen = {}
  local watcher = uv.new_fs_event()
  watcher:start(dir, {}, function(err, name, events)
    assert(not err, err)
    seen[#seen + 1] = name .. (events.rename and " rename" or "") .. (events.change and " change" or "")
    if #seen == 2 then watcher:close() end
  end)
  local timer = uv.new_timer()
  timer:start(10, 0, function()
    timer:close()
    local fd = uv.fs_open(dir .. "/new", "w", 420)
    uv.fs_write(fd, "x", 0)
    uv.fs_close(fd)
  end)
  uv.run()
  equal(seen[1], "new rename", "first")
  equal(seen[2], "new change", "second")
  uv.fs_unlink(dir .. "/new")
  uv.fs_rmdir(dir)
end

function checks.work_and_async()
  local results, woken = {}, 0
  local async
  async = uv.new_async(function(word)
    equal(word, "hello")
    woken = woken + 1
    async:close()
  end)
  local work = uv.new_work(function(n) return n * n end, function(n) results[#results + 1] = n end)
  for n = 1, 20 do work:queue(n) end
  local thread = uv.new_thread(function(handle) handle:send("hello") end, async)
  uv.run()
  thread:join()
  table.sort(results)
  equal(results[20], 400, "largest")
  equal(#results, 20, "results")
  equal(woken, 1, "wake-ups")
end

function checks.getaddrinfo()
  local found
  uv.getaddrinfo("localhost", nil, { socktype = "stream" }, function(err, list)
    assert(not err, err)
    found = list[1].addr
  end)
  uv.run()
  assert(found == "127.0.0.1" or found == "::1", found)
end

function checks.os()
  assert(#uv.cpu_info() > 0)
  assert(uv.get_total_memory() > uv.get_free_memory())
  equal(uv.os_gethostname(), uv.os_uname() and io.open("/proc/sys/kernel/hostname"):read("*l"), "host name")
  equal(uv.interface_addresses().lo[1].ip, "127.0.0.1", "loopback")
  assert(uv.exepath():match("lua"))
  uv.os_setenv("LAMP", "on")
  equal(os.getenv("LAMP"), "on")
  assert(uv.resident_set_memory() > 100000)
  assert(uv.hrtime() > 0)
  equal(uv.version_string(), uv.version_string():match("^%d+%.%d+%.%d+$"), "version")
end

checks[arg[1]]()
