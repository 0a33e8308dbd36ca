//! What the recorder tells of handles.

use super::Called;
use crate::engine::Engine;
use crate::handle::{HandleKind, Kind};
use blacklight_record::HandleInfo;
use blacklight_record::layout::{
    ACTIVE, CLOSING, CONNECTING, HANDLES, LISTENING, PARTS, REFERENCED, SHUTTING_DOWN,
};

/// The number of a handle's kind in the record.
fn number_of_handle(kind: HandleKind) -> u32 {
    match kind {
        HandleKind::Timer => 1,
        HandleKind::Idle => 2,
        HandleKind::Prepare => 3,
        HandleKind::Check => 4,
        HandleKind::Async => 5,
        HandleKind::Poll => 6,
        HandleKind::Tcp => 7,
        HandleKind::Pipe => 8,
        HandleKind::Tty => 9,
        HandleKind::FsEvent => 10,
        HandleKind::Udp => 11,
        HandleKind::Custom => 12,
        HandleKind::Signal => 13,
        HandleKind::Process => 14,
    }
}

impl Engine {
    /// Tells the record of all handles.
    pub(super) fn record_handles(&mut self, now_ns: u64, turn: u64) {
        let Some(recorder) = self.driver.recorder() else {
            return;
        };
        let Some(mut writer) = recorder.writer.take() else {
            return;
        };
        let callback_of = recorder.offered.front.callback_of;
        // What the record has no room for is not looked at: there may be millions.
        let capacity = self.handles.capacity();
        let described = capacity.min((PARTS * HANDLES) as u32);
        let (mut found, mut lost) = (0, 0);
        for index in 0..described {
            match self.handle_info(index, callback_of) {
                Some(info) => {
                    found += 1;
                    lost += u32::from(!writer.set_handle(index, &info, now_ns));
                }
                None => writer.remove_handle(index),
            }
        }
        lost += self.handles.len().saturating_sub(found);
        let after_ns = self.driver.clock_ns();
        writer.walked(after_ns, lost);
        if let Some(recorder) = self.driver.recorder() {
            recorder.writer = Some(writer);
            recorder.walks.walked(now_ns, after_ns, turn);
        }
    }

    /// What the record is told of the handle at this place of the table.
    fn handle_info(
        &self,
        index: u32,
        callback_of: fn(Called<'_>) -> u64,
    ) -> Option<HandleInfo<'_>> {
        let key = self.handles.visible(index)?;
        let kind = self.kind(key)?;
        let token = self.handles[index].token;
        let mut info = HandleInfo {
            what: number_of_handle(kind),
            token: token.0,
            // A handle that was never started may have none.
            callback: match self.is_active(key) {
                true => callback_of(Called::For(kind, token)),
                false => 0,
            },
            number: -1,
            ..HandleInfo::default()
        };
        set(&mut info, ACTIVE, self.is_active(key));
        set(&mut info, REFERENCED, self.has_reference(key));
        set(&mut info, CLOSING, self.is_closing(key));
        self.describe(self.handles[index].kind, &mut info);
        Some(info)
    }

    /// Adds what only handles of this kind have.
    fn describe<'a>(&'a self, kind: Kind, info: &mut HandleInfo<'a>) {
        match kind {
            Kind::Timer(timer) => {
                if timer.start != 0 {
                    info.due_ns = timer.due_ns;
                    // Timers count from the cached time too.
                    info.left_ns = timer.due_ns.saturating_sub(self.driver.now_ns());
                }
                info.repeat_ns = timer.repeat_ns();
            }
            Kind::Poll(watcher) => info.number = self.driver.fd(watcher),
            Kind::Stream(stream) => {
                let stream = self.stream(stream);
                info.number = stream.fd.as_ref().map_or(-1, |fd| fd.raw());
                let requests = stream.requests();
                set(info, LISTENING, stream.is_listening());
                set(info, CONNECTING, requests.connects);
                set(info, SHUTTING_DOWN, requests.shuts_down);
                (info.writes, info.queued_bytes) = (requests.writes, requests.queued_bytes as u64);
            }
            Kind::Udp(udp) => {
                let udp = &self.udps.slab[udp];
                let (sends, queued_bytes) = udp.sends();
                info.number = udp.descriptor();
                (info.writes, info.queued_bytes) = (sends, queued_bytes as u64);
            }
            Kind::Signal(watcher) => info.number = self.driver.sources.signals.signum(watcher),
            Kind::Process(process) => info.number = self.driver.sources.processes.pid(process),
            Kind::FsEvent(monitor) => info.text = self.fs_events.path(monitor),
            _ => {}
        }
    }
}

/// Sets a flag of a handle.
fn set(info: &mut HandleInfo<'_>, flag: u32, is_set: bool) {
    info.what |= if is_set { flag } else { 0 };
}
