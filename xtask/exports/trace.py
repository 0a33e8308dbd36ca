"""Reads a trace by Perfetto's own schema, and checks what every trace must be.

A `Trace` has the slices of all tracks, flows and counters. Making one checks that the file is whole: all fields are the
schema's, every slice has an end and lies inside the one around it, time goes forward, and nothing lacks its description.
"""

from dataclasses import dataclass, field

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

MONOTONIC = 3
CLEARED = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDED = schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
Event = schema.TrackEvent


@dataclass
class Slice:
    """A slice, or an instant, which ends when it begins."""

    track: int
    name: str
    begin: int
    end: int | None
    notes: dict
    flows: list
    ended_flows: list
    parent: "Slice | None" = field(repr=False)
    is_instant: bool
    children: list = field(default_factory=list, repr=False)


@dataclass
class Track:
    name: str
    parent: int
    tid: int | None
    is_counter: bool
    slices: list = field(default_factory=list, repr=False)
    values: list = field(default_factory=list, repr=False)
    depth: int = 0


def check_fields(message):
    """Checks that the schema knows every field, as this type."""
    unknown = [(entry.field_number, entry.wire_type) for entry in UnknownFieldSet(message)]
    assert not unknown, f"{message.DESCRIPTOR.full_name} has no such fields: {unknown}"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for inner in value if descriptor.is_repeated else [value]:
                check_fields(inner)


def note_value(note):
    kind = note.WhichOneof("value")
    assert kind is not None, note
    return getattr(note, kind)


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.size = len(data)
        trace = schema.Trace.FromString(data)
        self.tracks = {}
        self.process = None
        self.began = None
        self.all = []
        self._sequences = {}
        self._open = {}
        self._last = {}
        for packet in trace.packet:
            check_fields(packet)
            self._packet(packet)
        assert self.process is not None, "no process"
        assert self.began is not None, "no clocks"
        self._finish()

    def _packet(self, packet):
        kind = packet.WhichOneof("data")
        if kind == "clock_snapshot":
            snapshot = packet.clock_snapshot
            clocks = {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
            assert set(clocks) == {1, MONOTONIC, 6}, clocks
            assert snapshot.primary_trace_clock == MONOTONIC
            self.began = clocks[MONOTONIC]
        elif kind == "track_descriptor":
            self._describe(packet.track_descriptor)
        else:
            assert kind == "track_event", packet
            self._event(packet)

    def _describe(self, track):
        assert track.uuid != 0 and track.uuid not in self.tracks, f"described twice: {track}"
        if track.HasField("process"):
            assert self.process is None, "two processes"
            assert track.process.pid > 0 and track.process.process_name, track
            self.process = track.uuid
            self.pid = track.process.pid
            self.tracks[track.uuid] = Track(track.process.process_name, 0, None, False)
            return
        assert track.parent_uuid == self.process, f"not the process's: {track}"
        assert track.name, track
        tid = None
        if track.HasField("thread"):
            tid = track.thread.tid
            assert track.thread.pid == self.pid and tid > 0 and track.thread.thread_name == track.name, track
            assert all(of.tid != tid for of in self.tracks.values()), f"two tracks of one thread: {track}"
        self.tracks[track.uuid] = Track(track.name, track.parent_uuid, tid, track.HasField("counter"))

    def _event(self, packet):
        event, flags = packet.track_event, packet.sequence_flags
        sequence = packet.trusted_packet_sequence_id
        assert sequence != 0, packet
        if sequence not in self._sequences:
            assert flags & CLEARED, "a sequence that does not begin"
            assert packet.trace_packet_defaults.timestamp_clock_id == MONOTONIC, packet
            self._sequences[sequence] = {}
        else:
            assert not flags & CLEARED and not packet.HasField("trace_packet_defaults"), packet
        assert flags & NEEDED, packet
        names = self._sequences[sequence]
        for name in packet.interned_data.event_names:
            assert name.iid not in names and name.name, name
            names[name.iid] = name.name
        at, uuid = packet.timestamp, event.track_uuid
        assert uuid in self.tracks, f"a track that nothing was said of: {uuid}"
        assert self._last.get(uuid, 0) <= at, f"time goes back on {self.tracks[uuid].name}"
        self._last[uuid] = at
        track = self.tracks[uuid]
        if event.type == Event.TYPE_COUNTER:
            assert track.is_counter and event.HasField("counter_value"), packet
            track.values.append((at, event.counter_value))
            return
        assert not track.is_counter, packet
        stack = self._open.setdefault(uuid, [])
        if event.type == Event.TYPE_SLICE_END:
            assert stack, f"an end without a beginning on {track.name} at {at}"
            stack.pop().end = at
            return
        assert event.type in (Event.TYPE_SLICE_BEGIN, Event.TYPE_INSTANT), packet
        is_instant = event.type == Event.TYPE_INSTANT
        notes = {note.name: note_value(note) for note in event.debug_annotations}
        flows, ended = list(event.flow_ids), list(event.terminating_flow_ids)
        parent = stack[-1] if stack else None
        end = at if is_instant else None
        slice = Slice(uuid, names[event.name_iid], at, end, notes, flows, ended, parent, is_instant)
        if parent:
            parent.children.append(slice)
        track.slices.append(slice)
        self.all.append(slice)
        if not is_instant:
            stack.append(slice)
            track.depth = max(track.depth, len(stack))

    def _finish(self):
        for uuid, stack in self._open.items():
            assert not stack, f"{self.tracks[uuid].name}: {[slice.name for slice in stack]} have no end"
        for slice in self.all:
            assert slice.end is not None and slice.begin <= slice.end, slice
            if slice.parent:
                assert slice.parent.begin <= slice.begin and slice.end <= slice.parent.end, slice

    def named(self, name):
        """The slices of this name."""
        return [slice for slice in self.all if slice.name == name]

    def track(self, slice):
        return self.tracks[slice.track]

    def of_pool(self):
        """The tracks of the pool's threads."""
        return [track for track in self.tracks.values() if track.name.startswith("pool thread")]

    def of_loops(self):
        """The tracks of loops; their counters have other names."""
        return [track for track in self.tracks.values() if track.name.startswith("loop") and not track.is_counter]

    def lost(self):
        """How many events the trace says to be missing."""
        words = (slice.name.split(" ") for slice in self.all if slice.is_instant)
        return sum(int(word[0]) for word in words if word[1:] == ["events", "lost"])

    def check_times(self, begin, end):
        """Checks that all happened between two times of the monotonic clock."""
        assert begin <= self.began <= end, (begin, self.began, end)
        for slice in self.all:
            assert begin <= slice.begin and slice.end <= end, (begin, slice, end)
        for track in self.tracks.values():
            assert all(begin <= at <= end for at, _ in track.values), (begin, track, end)

    def check_flows(self, may_be_cut=False):
        """Checks each request's way: submitted by a loop, run by a thread of the pool, called back by that loop.

        Returns the flows: lists of submission, job and callback; a job is missing where the request was cancelled or had another
        way, and the last is an instant where the request was not over.
        """
        flows = {}
        for slice in self.all:
            assert len(slice.flows) + len(slice.ended_flows) <= 1, slice
            for flow in slice.flows + slice.ended_flows:
                flows.setdefault(flow, []).append(slice)
        for flow, way in flows.items():
            way.sort(key=lambda slice: (slice.begin, slice.end))
            first, last = way[0], way[-1]
            assert first.name.startswith("submit ") and first.flows and first.is_instant, way
            ends = [slice for slice in way if slice.ended_flows]
            assert may_be_cut or len(ends) == 1, f"flow {flow} has {len(ends)} ends: {way}"
            if not ends:
                continue
            assert ends == [last] and len(way) in (2, 3), way
            assert last.track == first.track, f"flow {flow} ends on {self.track(last).name}"
            if len(way) == 3:
                job = way[1]
                assert self.track(job).name.startswith("pool thread"), way
                assert first.name == f"submit {job.name}", way
                assert first.begin <= job.begin <= job.end <= last.begin, way
                assert first.notes["token"] == job.notes["token"], way
            assert last.name == "not finished" or first.notes["token"] == last.notes["token"], way
        return list(flows.values())

    def check_names(self):
        """Checks that everything has a name, and that callbacks of known code have one that is not an address."""
        for slice in self.all:
            assert slice.name, slice
            if not slice.is_instant and "kind" in slice.notes:
                assert slice.notes["kind"] != "none" and "turn" in slice.notes, slice
                assert not slice.name.startswith("?? (0x"), slice

    def check_phases(self):
        """Checks that a callback of a loop lies in its phase, and a phase in a run."""
        phases = {"timers", "pending", "idle", "prepare", "poll", "check", "closing"}
        for track in self.of_loops():
            for slice in track.slices:
                if slice.parent is None:
                    # Events that belong to no run are lost, a submission from outside, and what was not finished.
                    assert slice.name == "run" or slice.is_instant, slice
                elif slice.name in phases and "kind" not in slice.notes:
                    assert slice.parent.name == "run", slice
                elif "kind" in slice.notes and not slice.is_instant:
                    assert slice.parent.name in phases, (slice, slice.parent, slice.parent.parent)
                    assert slice.parent.notes["turn"] == slice.notes["turn"], slice
                elif slice.name == "run":
                    assert "kind" in slice.parent.notes, f"a run inside of what is no callback: {slice.parent}"

    def check_counters(self):
        """Checks that each counter has its last value once, and never a negative one."""
        counters = [track for track in self.tracks.values() if track.is_counter]
        assert counters, "no counters"
        for track in counters:
            assert track.values, track
            assert all(value >= 0 for _, value in track.values), track
            times = [at for at, _ in track.values]
            assert times == sorted(set(times)), track
            pairs = zip(track.values, track.values[1:])
            assert all(a != b for (_, a), (_, b) in pairs), f"a value twice: {track}"
        return {track.name for track in counters}
