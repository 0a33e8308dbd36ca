"""Checks of what the `blacklight` command writes for other tools, by these tools' own readers.

`checks.py BLACKLIGHT PROGRAM NODE DIRECTORY [CHECK…]`: each check runs the command on a real program, and reads what it has
written by Perfetto's schema, as a profile of the Firefox Profiler, or by Prometheus' parser of OpenMetrics.
"""

import collections
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from trace import Trace

BLACKLIGHT, PROGRAM, NODE, DIRECTORY = (os.path.abspath(path) for path in sys.argv[1:5])
HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "everything.js")
# What a step may take on a machine that is busy with other things.
PATIENCE = 120


def file(name):
    """A path that nothing is at."""
    path = os.path.join(DIRECTORY, name)
    if os.path.exists(path):
        os.remove(path)
    return path


class Command:
    """The command at work, or a program by itself."""

    def __init__(self, *words):
        self.words = [str(word) for word in words]
        self.child = subprocess.Popen(
            self.words,
            # What programs leave behind, they leave there.
            cwd=DIRECTORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # What it has printed: whole lines, how many of them were looked at, and the beginning of the next one.
        self.lines = []
        self.looked = 0
        self.begun = b""

    def read(self):
        """Takes what there is of the output, and waits until there is some."""
        data = os.read(self.child.stdout.fileno(), 1 << 16)
        if not data:
            raise AssertionError(f"{self.words} ended: {self.lines[-20:]} {self.child.stderr.read()}")
        *lines, self.begun = (self.begun + data).split(b"\n")
        self.lines += [line.decode() for line in lines]

    def line(self, wanted):
        """Reads lines of the output up to the one that is wanted."""
        while True:
            while self.looked < len(self.lines):
                self.looked += 1
                if self.lines[self.looked - 1] == wanted:
                    return
            self.read()

    def fresh(self):
        """Waits for a line that is written from now on, which a program writes at once or not at all."""
        output = self.child.stdout.fileno()
        os.set_blocking(output, False)
        try:
            while True:
                self.read()
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(output, True)
        self.looked = len(self.lines)
        while len(self.lines) == self.looked:
            self.read()
        self.looked += 1
        return self.lines[self.looked - 1]

    def signal(self, number):
        self.child.send_signal(number)

    def end(self, code=0):
        """Waits for the end. The output and what was said beside it."""
        output, said = self.child.communicate(timeout=PATIENCE)
        output = "".join(line + "\n" for line in self.lines) + self.begun.decode() + output
        assert self.child.returncode == code, f"{self.words}: {self.child.returncode}\n{output}{said}"
        return output, said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.communicate()


def counts(output):
    """What a program says in its last line."""
    return json.loads(output.splitlines()[-1])


def callbacks(trace):
    """How often functions of the program were called back, by their names."""
    slices = (slice for slice in trace.all if "kind" in slice.notes)
    return collections.Counter(slice.name.split(" (")[0] for slice in slices)


def check_all(trace, began, ended, may_be_cut=False):
    """What holds for each trace. Returns its flows."""
    trace.check_times(began, ended)
    trace.check_names()
    trace.check_phases()
    names = trace.check_counters()
    assert {"pool queued", "pool running"} <= names, names
    loops = {track.name.split(" (")[0] for track in trace.of_loops()}
    assert {f"{name} {what}" for name in loops for what in ("handles", "requests")} <= names, (loops, names)
    return trace.check_flows(may_be_cut)


def jobs_of(flows):
    """How many requests of each kind were submitted, run by the pool and called back."""
    return collections.Counter(way[1].name for way in flows if len(way) == 3)


def check_program_to_the_last_event():
    path = file("all.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--output", path, "--", PROGRAM, "wait") as command:
        command.line("done")
        # As Ctrl-C does, which everything in the terminal's group is told of.
        command.signal(signal.SIGINT)
        output, said = command.end()
    trace, said_counts = Trace(path), counts(output)
    flows = check_all(trace, began, time.monotonic_ns())
    assert "the trace ended because it was interrupted" in said, said
    assert f"{path} has {trace.size} bytes" in said, said
    assert "lost" not in said and trace.lost() == 0, said
    found = callbacks(trace)
    for name, count in said_counts["callbacks"].items():
        assert found[name] == count, f"{name}: {found[name]} in place of {count}"
    assert jobs_of(flows) == said_counts["jobs"], (jobs_of(flows), said_counts["jobs"])
    # What was cancelled has no job, and is called back all the same.
    cancelled = [way for way in flows if len(way) == 2]
    assert len(cancelled) == said_counts["cancelled"], cancelled
    assert all(way[1].name.startswith("on_cancelled") for way in cancelled), cancelled
    jobs = sum(len(track.slices) for track in trace.of_pool())
    assert jobs == sum(said_counts["jobs"].values()), jobs
    # The first four have run at the same time.
    assert len(trace.of_pool()) == 4 and len(trace.of_loops()) == 2, trace.tracks
    nested = [slice for slice in trace.named("run") if slice.parent]
    assert len(nested) == said_counts["nested_runs"], nested
    assert all(slice.parent.name.startswith("on_tick") for slice in nested), nested
    # The pool was blocked by the first four, so that the others were queued.
    queued = [track for track in trace.tracks.values() if track.name == "pool queued"]
    assert queued[0].values[-1][1] == 0, queued
    assert trace.named("sleep"), "the loops never slept"


def check_program_that_ends_by_itself():
    path = file("ended.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--output", path, "--", PROGRAM, "wait") as command:
        command.line("done")
        # Its loops have been seen when something of them is written. It ends when it likes to, and the trace learns of that.
        wait_for(lambda: os.path.getsize(path) > 0)
        os.kill(program_of(command), signal.SIGTERM)
        output, said = command.end()
    trace, said_counts = Trace(path), counts(output)
    check_all(trace, began, time.monotonic_ns(), may_be_cut=True)
    assert "the trace ended because the program has ended" in said, said
    assert trace.began <= said_counts["end"]
    # The loop of the other thread may be cut off where it was closed.
    found = callbacks(trace)
    for name in ("on_tick", "on_nested", "on_stat", "on_answer", "on_question", "on_worked", "on_cancelled"):
        assert found[name] == said_counts["callbacks"][name], f"{name}: {found[name]}"


def program_of(command):
    """The process that a command has started."""
    pid = command.child.pid
    children = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as text:
            children += text.read().split()
    [child] = children
    return int(child)


def check_node():
    path = file("node.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--output", path, "--", NODE, SCRIPT) as command:
        command.line("done")
        command.signal(signal.SIGINT)
        output, said = command.end()
    trace, said_counts = Trace(path), counts(output)
    flows = check_all(trace, began, time.monotonic_ns())
    jobs = jobs_of(flows)
    for kind, count in said_counts["jobs"].items():
        assert jobs[kind] >= count, f"{jobs[kind]} jobs {kind}, and the program has made {count}"
    assert jobs["getaddrinfo"] == said_counts["jobs"]["getaddrinfo"], jobs
    assert all(len(way) == 3 for way in flows), [way for way in flows if len(way) != 3]
    kinds = collections.Counter(slice.notes.get("kind") for slice in trace.all)
    # Each request is one connection, from both of its ends.
    assert kinds["connection"] == kinds["connect"] == said_counts["requests"], kinds
    assert kinds["read"] >= said_counts["requests"], kinds
    found = callbacks(trace)
    assert found["node::Environment::CheckImmediate"] > 0, found
    # What names functions for stacks leaves logs, and is not wanted here.
    assert not [name for name in os.listdir(DIRECTORY) if name.endswith(f"-{trace.pid}-v8.log")]
    # The loops of the program, of its worker, and Node's own.
    # A thread that was late has found nothing to run.
    assert len(trace.of_loops()) >= 3 and 1 <= len(trace.of_pool()) <= 4, [track.name for track in trace.tracks.values()]


def check_lost_events_are_said():
    """A command that is held while the program goes on loses events, and says how many."""
    path = file("lost.pftrace")
    with Command(BLACKLIGHT, "run", "--record", "--", PROGRAM, "flood") as program:
        program.line("20000")
        began = time.monotonic_ns()
        pid = program.child.pid
        with Command(BLACKLIGHT, "trace", "--for", "10m", "--max-size", "1G", "--output", path, pid) as command:
            # The trace has begun when its file has something.
            wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
            command.signal(signal.SIGSTOP)
            wait_for(lambda: state(command.child.pid) == "T")
            seen = int(program.fresh())
            program.line(str(seen + 60000))
            command.signal(signal.SIGCONT)
            command.signal(signal.SIGTERM)
            _, said = command.end()
        program.signal(signal.SIGKILL)
    trace = Trace(path)
    check_all(trace, began, time.monotonic_ns())
    number = re.search(r"; (\d+) events were lost", said)
    assert number and int(number[1]) >= 40000, said
    assert trace.lost() == int(number[1]), (trace.lost(), said)


def check_loops_that_come_and_go():
    """What was closed before anybody looked is not in the trace, and it is said how many loops that are."""
    path = file("loops.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--output", path, "--", PROGRAM, "loops") as command:
        command.line("done")
        command.signal(signal.SIGINT)
        _, said = command.end()
    trace = Trace(path)
    check_all(trace, began, time.monotonic_ns())
    number = re.search(r"; some or all events of (\d+) loops? are missing, closed between two readings", said)
    # Each loop that was seen has a counter.
    seen = {track.name for track in trace.tracks.values() if re.fullmatch(r"loop \d+ handles", track.name)}
    assert {"loop 1 handles", "loop 302 handles"} <= seen, seen
    # Of some that were seen, the last events are missing.
    unseen = 302 - len(seen)
    assert number and unseen <= int(number[1]) <= 300, (seen, said)


def state(pid):
    """The kernel's letter for what a process does."""
    with open(f"/proc/{pid}/stat") as text:
        return text.read().rpartition(")")[2].split()[0]


def wait_for(is_so):
    """Waits until something is so, and returns it."""
    began = time.monotonic()
    while not (found := is_so()):
        assert time.monotonic() - began < PATIENCE, "it never became so"
        time.sleep(0.005)
    return found


def check_size_ends_a_trace():
    path = file("size.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--max-size", "256K", "--output", path, "--", PROGRAM, "flood") as command:
        output, said = command.child.communicate(timeout=PATIENCE)
    trace = Trace(path)
    check_all(trace, began, time.monotonic_ns(), may_be_cut=True)
    assert "the trace ended because it has reached its size" in said, said
    assert 200 << 10 < trace.size <= 256 << 10, trace.size


def check_ring_keeps_the_newest():
    path = file("ring.pftrace")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--ring", "--max-size", "128K", "--output", path, "--", PROGRAM, "flood") as command:
        command.line("200000")
        stopped = time.monotonic_ns()
        # The program may not have a processor for a while.
        command.fresh()
        command.signal(signal.SIGINT)
        _, said = command.child.communicate(timeout=PATIENCE)
    trace = Trace(path)
    check_all(trace, began, time.monotonic_ns(), may_be_cut=True)
    assert "the trace ended because it was interrupted" in said, said
    assert 48 << 10 < trace.size <= 128 << 10, trace.size
    newest = max(slice.end for slice in trace.all)
    assert newest >= stopped, f"the newest events are missing: {stopped - newest} ns"
    # The size of the file is the limit on what is kept, so that the oldest are not there.
    oldest = min(slice.begin for slice in trace.all if "kind" in slice.notes)
    assert oldest > began and len(trace.all) < 10000, (oldest, len(trace.all))


def check_time_ends_a_trace():
    path = file("time.pftrace")
    with Command(BLACKLIGHT, "run", "--record", "--", PROGRAM, "wait") as program:
        program.line("done")
        began = time.monotonic_ns()
        with Command(BLACKLIGHT, "trace", "--for", "300ms", "--output", path, program.child.pid) as command:
            _, said = command.end()
        took = time.monotonic_ns() - began
        trace = Trace(path)
        check_all(trace, began, time.monotonic_ns())
        assert "the trace ended because its time is over" in said, said
        assert took >= 300_000_000, f"not longer than {took} ns"
        # What was before is not in it: the program slept.
        assert not callbacks(trace), callbacks(trace)
        assert program.child.poll() is None, "the program was ended with a trace of it"
        program.signal(signal.SIGTERM)
        program.end()


def check_process_that_is_killed():
    path = file("killed.pftrace")
    with Command(BLACKLIGHT, "run", "--record", "--", PROGRAM, "flood") as program:
        program.line("20000")
        began = time.monotonic_ns()
        with Command(BLACKLIGHT, "trace", "--for", "10m", "--output", path, "--max-size", "1G", program.child.pid) as command:
            wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
            # There is something of what comes from now on.
            program.fresh()
            program.signal(signal.SIGKILL)
            program.child.communicate()
            _, said = command.end()
    assert "the trace ended because the process has ended" in said, said
    trace = Trace(path)
    check_all(trace, began, time.monotonic_ns(), may_be_cut=True)
    assert callbacks(trace)["on_idle"] > 0, callbacks(trace)


def check_callback_that_has_not_returned():
    path = file("running.pftrace")
    with Command(BLACKLIGHT, "trace", "--output", path, "--", PROGRAM, "stall") as command:
        command.line("computing")
        command.signal(signal.SIGINT)
        _, said = command.child.communicate(timeout=PATIENCE)
    assert "the trace ended because it was interrupted" in said, said
    [running] = [slice for slice in Trace(path).all if slice.name.startswith("on_crunch")]
    assert running.notes["kind"] == "timer" and running.end > running.begin, running


class Profile:
    """A profile of the Firefox Profiler: the functions of samples, and the markers."""

    def __init__(self, path):
        with open(path) as file:
            self.whole = json.load(file)
        self.threads = {thread["name"]: thread for thread in self.whole["threads"]}

    def strings(self, thread):
        return self.whole.get("shared", thread).get("stringArray") or thread["stringArray"]

    def stack(self, thread, at):
        """The functions from the innermost one, with whether they are JavaScript."""
        strings, functions, stacks, frames = (
            self.strings(thread), thread["funcTable"], thread["stackTable"], thread["frameTable"])
        found = []
        while at is not None:
            function = frames["func"][stacks["frame"][at]]
            found.append((strings[functions["name"][function]], functions["isJS"][function]))
            at = stacks["prefix"][at]
        return found

    def samples(self, thread):
        return [self.stack(thread, at) for at in thread["samples"]["stack"] if at is not None]

    def stalls(self, thread):
        """Name, kind, callback, milliseconds, and the stack of each marker."""
        strings, markers = self.strings(thread), thread["markers"]
        found = []
        for at, data in enumerate(markers["data"]):
            text = {key: strings[data[key]] for key in ("doing", "callback", "phase", "kind")}
            took = markers["endTime"][at] - markers["startTime"][at]
            cause = self.stack(thread, data["cause"]["stack"]) if "cause" in data else []
            found.append((strings[markers["name"][at]], text, took, cause))
        return found


def check_stalls_of_a_program():
    path, profile = file("stall.pftrace"), file("stall.json")
    began = time.monotonic_ns()
    with Command(BLACKLIGHT, "trace", "--output", path, "--stalls", profile, "--", PROGRAM, "stall") as command:
        _, said = command.end()
    check_all(Trace(path), began, time.monotonic_ns())
    assert f"{profile} has 2 stalls of 100 ms or more, and" in said, said
    profile = Profile(profile)
    [(name, thread)] = profile.threads.items()
    assert name == "loop 1", name
    computing, waiting = profile.stalls(thread)
    for stall, doing, callback in ((computing, "computing", "on_crunch"), (waiting, "waiting in read", "on_wait")):
        name, text, took, cause = stall
        assert name == "stall" and text["doing"] == doing, stall
        assert text["callback"].startswith(callback) and text["phase"] == "timers" and text["kind"] == "timer", stall
        assert took >= 2000, stall
        assert any(function.startswith(callback) for function, _ in cause), stall
    samples = profile.samples(thread)
    of = lambda name: [stack for stack in samples if any(function.startswith(name) for function, _ in stack)]
    assert of("crunch") and of("on_wait"), samples
    # A thread that was held is ready to run for a moment before it waits again.
    assert any(stack[0][0] == "read (system call)" for stack in of("on_wait")), of("on_wait")
    times = list(profile_times(thread))
    assert times == sorted(times) and len(times) == len(thread["samples"]["stack"]), times


def profile_times(thread):
    """The times of samples, which are written as differences."""
    at = 0
    for delta in thread["samples"]["timeDeltas"]:
        at += delta
        yield at


def check_stalls_of_node():
    path, profile = file("node-stall.pftrace"), file("node-stall.json")
    with Command(BLACKLIGHT, "trace", "--output", path, "--stalls", profile, "--", NODE, SCRIPT, "stall") as command:
        command.line("done")
        command.signal(signal.SIGINT)
        _, said = command.end()
    profile = Profile(profile)
    stalls = [(thread, stall) for thread in profile.threads.values() for stall in profile.stalls(thread)]
    line = next(at for at, text in enumerate(open(SCRIPT), 1) if text.startswith("function crunch"))
    crunch = re.compile(rf"crunch \(.*everything\.js:{line}\)")
    found = [
        (thread, stall)
        for thread, stall in stalls
        if any(crunch.fullmatch(function) and is_js for function, is_js in stall[3])
    ]
    assert len(found) == 1, (stalls, said)
    thread, (_, text, took, cause) = found[0]
    assert text["doing"] == "computing" and text["kind"] == "read" and took >= 2000, (text, took)
    assert any(not is_js for _, is_js in cause), "native frames too"
    js = [stack for stack in profile.samples(thread) if any(crunch.fullmatch(name) and is_js for name, is_js in stack)]
    assert js, profile.samples(thread)


def check_no_stalls_is_a_profile_too():
    path, profile = file("none.pftrace"), file("none.json")
    words = ["--stall", "10m", "--stalls", profile, "--output", path]
    with Command(BLACKLIGHT, "trace", *words, "--", PROGRAM, "stall") as command:
        _, said = command.end()
    assert "no stall: no callback took 10 min" in said, said
    assert Profile(profile).threads == {}


def check_mistakes_are_said():
    """A sentence for each mistake, and nothing left behind."""
    path = file("mistake.pftrace")
    missing = os.path.join(DIRECTORY, "no such folder", "trace")
    for words, sentence in (
        (["--for", "soon"], "expected a time such as"),
        (["--for", "0s"], "expected a time that is not zero"),
        (["--max-size", "1K"], "expected a size of at least 64K"),
        (["--max-size", "many"], "expected a size such as"),
        (["--stall", "1s"], "--stalls"),
        (["--output", missing], f"cannot write {missing}: No such file or directory"),
        (["--stalls", missing], f"cannot write {missing}: No such file or directory"),
        (["--stalls", path], "must be two files"),
        (["--output", "/dev/full"], "cannot write /dev/full: No space left on device"),
        (["--stalls", "/dev/full"], "cannot write /dev/full: No space left on device"),
    ):
        words = words if "--output" in words else ["--output", path, *words]
        with Command(BLACKLIGHT, "trace", *words, "--", PROGRAM, "stall") as command:
            _, said = command.child.communicate(timeout=PATIENCE)
            assert command.child.returncode in (1, 2), (words, said)
        assert sentence in said, f"{words}: {said}"
        if "/dev/full" not in words:
            assert not os.path.exists(path), f"{words} left a file"
        elif os.path.exists(path):
            os.remove(path)
    # What was there stays if there is nothing to write in its place.
    with open(path, "w") as other:
        other.write("precious")
    with Command(BLACKLIGHT, "trace", "--output", path, "4194304") as command:
        _, said = command.end(code=1)
    assert "there is no process 4194304" in said, said
    with open(path) as other:
        assert other.read() == "precious"


def check_program_that_does_not_end():
    """A program that ignores what asks it to end is ended all the same, after its trace was written."""
    path = file("stubborn.pftrace")
    words = ["env", "--ignore-signal=TERM", PROGRAM, "flood"]
    with Command(BLACKLIGHT, "trace", "--for", "10m", "--max-size", "256K", "--output", path, "--", *words) as command:
        _, said = command.child.communicate(timeout=PATIENCE)
        assert command.child.returncode == 0, said
    assert "the trace ended because" in said, said
    trace = Trace(path)
    assert callbacks(trace)["on_idle"] > 0 and not os.path.exists(f"/proc/{trace.pid}"), said


def check_trace_to_a_pipe():
    pipe, path = file("pipe"), file("piped.pftrace")
    os.mkfifo(pipe)
    with Command(BLACKLIGHT, "trace", "--output", pipe, "--", PROGRAM, "wait") as command:
        with open(pipe, "rb") as reader, open(path, "wb") as copy:
            command.line("done")
            command.signal(signal.SIGINT)
            copy.write(reader.read())
        command.end()
    Trace(path)
    # A reader that has seen enough.
    with Command(BLACKLIGHT, "trace", "--output", pipe, "--", PROGRAM, "flood") as command:
        with open(pipe, "rb") as reader:
            reader.read(1)
        _, said = command.child.communicate(timeout=PATIENCE)
        assert command.child.returncode == 1, said
    assert f"cannot write {pipe}: Broken pipe" in said, said


def ask(name, origin):
    """Asks for a file as a page of that origin does: the status, and the answer."""
    request = urllib.request.Request(f"http://127.0.0.1:9001/{name}", headers={"Origin": origin})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == origin, answer.headers
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def check_hand_over():
    path = file("handed over.pftrace")
    words = [BLACKLIGHT, "trace", "--open", "--output", path, "--", PROGRAM, "wait"]
    page = "https://ui.perfetto.dev"
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 9001))
            other.listen()
            is_ours = True
        except OSError:
            is_ours = False
        # The only port that the page may ask is taken; the trace is there all the same.
        with Command(*words) as command:
            command.line("done")
            command.signal(signal.SIGINT)
            _, said = command.end(code=1)
        assert "cannot serve the trace on 127.0.0.1:9001" in said, said
        Trace(path)
    if not is_ours:
        return
    with Command(*words) as command:
        command.line("done")
        command.signal(signal.SIGINT)
        said = iter(command.child.stderr.readline, "")
        wanted = f"opening {page}/#!/?url=http://127.0.0.1:9001/handed_over.pftrace"
        assert any(wanted in line for line in said), "the page is not opened"
        assert ask("handed_over.pftrace", "https://evil.example") == (403, b"")
        assert ask("passwd", page) == (404, b"")
        status, trace = ask("handed_over.pftrace", page)
        command.end()
    with open(path, "rb") as written:
        assert status == 200 and trace == written.read()


def families(text):
    """The metrics of a text, as Prometheus' parser of OpenMetrics has them: families by their names."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.name not in found, f"{family.name} is there twice"
        found[family.name] = family
    return found


def documented():
    """The table of the documentation: type, unit and labels by name."""
    with open(os.path.join(HERE, "../../docs/METRICS.md")) as text:
        rows = [line.strip(" |\n").split("|") for line in text if line.startswith("| `")]
    rows = [[cell.strip().replace("`", "") for cell in row] for row in rows]
    return {name: (kind, unit, {label for label in labels.split(", ") if label}) for name, kind, unit, labels, _ in rows}


def values(family, suffix=""):
    """The values of a family's samples, by their labels but for that of the loop, summed over loops."""
    found = collections.Counter()
    for sample in family.samples:
        if sample.name == family.name + suffix and "le" not in sample.labels:
            labels = sorted((name, value) for name, value in sample.labels.items() if name != "loop")
            found[tuple(value for _, value in labels)] += sample.value
    return found


def check_metrics_text(text, is_node):
    """What holds for each text. Returns its families."""
    found, known = families(text), documented()
    expected = {name for name in known if is_node or not name.startswith("nodejs_")}
    assert set(found) == expected, set(found) ^ expected
    for name, family in found.items():
        kind, unit, labels = known[name]
        assert (family.type, family.unit) == (kind, unit) and family.documentation, family
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == labels, sample
            assert sample.value >= 0, sample
            for label, value in sample.labels.items():
                # Numbers of loops and names of kinds, and nothing that there may be any number of.
                assert label in ("le", "name") or re.fullmatch(r"\d{1,4}|[a-z_ ]{2,20}", value), sample
    return found


def metrics_at_rest(pid):
    """The metrics of a Node.js, or nothing while threads of its pool run something."""
    with Command(BLACKLIGHT, "metrics", pid) as command:
        text, _ = command.end()
    found = check_metrics_text(text, is_node=True)
    return None if sum(values(found["libuv_pool_running"]).values()) else found


def check_metrics_of_node():
    with Command(BLACKLIGHT, "run", "--record", "--", NODE, SCRIPT) as program:
        program.line("done")
        # A thread of the pool tells that a request is done before it rests.
        first = wait_for(lambda: metrics_at_rest(program.child.pid))
        with Command(BLACKLIGHT, "metrics", program.child.pid, "--listen", "0") as server:
            said = server.child.stderr.readline()
            address = re.search(r"serving (http://\S+)", said)[1]
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                kind = answer.headers["Content-Type"]
                served = answer.read().decode()
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
        second = check_metrics_text(served, is_node=True)
        program.signal(signal.SIGTERM)
        output, _ = program.end()
    counted = counts(output)
    for name, family in first.items():
        if family.type in ("counter", "histogram"):
            before = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in family.samples}
            after = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in second[name].samples}
            assert all(after[key] >= value for key, value in before.items()), f"{name} has gone back"
    # The program waits with a server, and with nothing in progress in the pool.
    assert values(first["libuv_handles"])[("true", "tcp")] >= 1, values(first["libuv_handles"])
    assert sum(values(first["libuv_pool_queued"]).values()) == 0
    assert sum(values(first["libuv_pool_running"]).values()) == 0
    assert values(first["libuv_pool_threads"])[()] == 4
    for name in ("libuv_pool_wait_seconds", "libuv_pool_run_seconds"):
        jobs = values(first[name], "_count")
        assert jobs[("getaddrinfo",)] == counted["jobs"]["getaddrinfo"], jobs
        assert jobs[("fs",)] >= counted["jobs"]["fs"] and jobs[("work",)] >= counted["jobs"]["work"], jobs
    stalls = values(first["libuv_loop_stalls"], "_total")
    assert stalls[("read",)] >= 1, stalls
    kinds = values(first["libuv_callback_kind_duration_seconds"], "_count")
    phases = values(first["libuv_callback_duration_seconds"], "_count")
    assert sum(kinds.values()) == sum(phases.values()) > 0, (kinds, phases)
    assert kinds[("connection",)] == counted["requests"], kinds
    assert len(first["libuv_loop"].samples) >= 3, first["libuv_loop"]
    check_node_figures(first)


def check_node_figures(found):
    """Checks each loop's figures against each other, and against its histogram."""
    of = lambda name, loop: next(
        (sample.value for sample in found[name].samples if sample.labels.get("loop") == loop and "le" not in sample.labels), None)
    loops = [sample.labels["loop"] for sample in found["libuv_loop"].samples]
    seen = 0
    for loop in loops:
        delays = found["libuv_loop_delay_seconds"].samples
        count = next(s.value for s in delays if s.name.endswith("_count") and s.labels["loop"] == loop)
        total = next(s.value for s in delays if s.name.endswith("_sum") and s.labels["loop"] == loop)
        figures = ("min", "mean", "max", "p50", "p90", "p99", "stddev")
        least, mean, most, p50, p90, p99, deviation = (of(f"nodejs_eventloop_delay_{name}_seconds", loop) for name in figures)
        if count == 0:
            assert least is None and deviation is None
        else:
            seen += 1
            assert least <= mean <= most and p50 <= p90 <= p99 <= most, (least, mean, most, p50, p90, p99)
            assert abs(mean - total / count) < 1e-8 and deviation <= most, (mean, total, count, deviation)
        share = of("nodejs_eventloop_utilization_ratio", loop)
        times = {s.labels["nodejs_eventloop_state"]: s.value
                 for s in found["nodejs_eventloop_time_seconds"].samples if s.labels["loop"] == loop}
        states = {s.labels["state"]: s.value for s in found["libuv_loop_time_seconds"].samples if s.labels["loop"] == loop}
        assert set(times) == {"active", "idle"}, times
        assert abs(times["idle"] - states["asleep"] - states["spinning"]) < 1e-6, (times, states)
        assert abs(sum(times.values()) - sum(states.values())) < 1e-6, (times, states)
        turns = of("libuv_loop_iterations", loop)
        assert (share is None) == (turns == 0), (loop, share, turns)
        assert share is None or abs(share - times["active"] / sum(times.values())) < 1e-5, (share, times)
    assert seen >= 2, loops


def check_metrics_of_another_program():
    with Command(BLACKLIGHT, "run", "--record", "--", PROGRAM, "wait") as program:
        program.line("done")
        with Command(BLACKLIGHT, "metrics", program.child.pid) as command:
            text, _ = command.end()
        found = check_metrics_text(text, is_node=False)
        program.signal(signal.SIGTERM)
        output, _ = program.end()
    jobs = values(found["libuv_pool_run_seconds"], "_count")
    expected = {(kind,): count for kind, count in counts(output)["jobs"].items()}
    assert jobs == expected, (jobs, expected)
    kinds = values(found["libuv_callback_kind_duration_seconds"], "_count")
    assert kinds[("timer",)] == 24 and kinds[("connection",)] == 1, kinds
    assert len(found["libuv_loop"].samples) == 2, found["libuv_loop"]


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items())
          if name.startswith("check_") and check.__code__.co_argcount == 0}


def main():
    chosen = sys.argv[5:] or list(CHECKS)
    failed = 0
    # A process may have the number of one of another day.
    for name in os.listdir(DIRECTORY):
        if name.endswith("-v8.log"):
            os.remove(os.path.join(DIRECTORY, name))
    for name in chosen:
        try:
            CHECKS[name]()
            print(f"{name}: ok", flush=True)
        except Exception:
            failed += 1
            text = traceback.format_exc()
            print(f"{name}: FAILED\n{text[-3000:]}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
