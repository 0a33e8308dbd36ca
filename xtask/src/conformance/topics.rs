//! Sorts the names of tests into topics, for the table.

/// Prefixes and their topics; the first that fits decides.
const TOPICS: [(&str, &str); 68] = [
    ("fs_event", "fs_event"),
    ("fs_poll", "fs_poll"),
    ("fs_", "fs"),
    ("tcp", "tcp"),
    ("pipe", "pipe"),
    ("udp", "udp"),
    ("ipc_", "ipc"),
    ("stdio_over_pipes", "ipc"),
    ("timer", "timer"),
    ("hrtime", "time"),
    ("clock_gettime", "time"),
    ("gettimeofday", "time"),
    ("loop_", "loop"),
    ("run_", "loop"),
    ("default_loop_close", "loop"),
    ("walk_handles", "loop"),
    ("embed", "loop"),
    ("active", "loop"),
    ("close_order", "loop"),
    ("callback_stack", "streams"),
    ("idle", "watchers"),
    ("check_ref", "watchers"),
    ("prepare_ref", "watchers"),
    ("queue_foreach_delete", "watchers"),
    ("unref_in_prepare_cb", "watchers"),
    ("watcher_cross_stop", "poll"),
    ("poll_", "poll"),
    ("iouring_pollhup", "poll"),
    ("closed_fd_events", "poll"),
    ("async", "async"),
    ("metrics_", "metrics"),
    ("spawn_", "process"),
    ("process_", "process"),
    ("kill", "process"),
    ("stdio_emulate_iocp", "process"),
    ("eintr_handling", "process"),
    ("fork_", "fork"),
    ("signal_", "signal"),
    ("we_get_signal", "signal"),
    ("tty", "tty"),
    ("threadpool_", "threadpool"),
    ("random_", "threadpool"),
    ("thread_", "threads"),
    ("barrier_", "threads"),
    ("condvar_", "threads"),
    ("semaphore_", "threads"),
    ("getaddrinfo", "dns"),
    ("getnameinfo", "dns"),
    ("idna", "names"),
    ("ip4_", "addresses"),
    ("ip6_", "addresses"),
    ("ip_name", "addresses"),
    ("getsockname_tcp", "tcp"),
    ("getsockname_udp", "udp"),
    ("connect", "tcp"),
    ("delayed_accept", "tcp"),
    ("multiple_listen", "tcp"),
    ("emfile", "tcp"),
    ("shutdown_", "streams"),
    ("close_fd", "streams"),
    ("readable_on_eof", "streams"),
    ("not_readable", "streams"),
    ("not_writable", "streams"),
    ("socket_buffer_size", "streams"),
    ("get_", "system"),
    ("gethostname", "system"),
    ("homedir", "system"),
    ("uname", "system"),
];

/// What a test is about.
pub(crate) fn topic(name: &str) -> &'static str {
    let found = TOPICS.iter().find(|(prefix, _)| name.starts_with(prefix));
    found.map_or_else(|| topic_of_odd_name(name), |(_, topic)| topic)
}

fn topic_of_odd_name(name: &str) -> &'static str {
    match name {
        "cwd_and_chdir" | "env_vars" | "platform_output" | "tmpdir" => "system",
        "handle_fileno" | "handle_type_name" | "req_type_name" | "getters_setters" | "has_ref"
        | "ref" => "handles",
        _ => "misc",
    }
}

#[cfg(test)]
mod tests {
    use super::topic;

    #[test]
    fn longer_prefixes_go_before_shorter_ones() {
        assert_eq!(topic("fs_event_watch_dir"), "fs_event");
        assert_eq!(topic("fs_poll"), "fs_poll");
        assert_eq!(topic("fs_readdir_file"), "fs");
        assert_eq!(topic("threadpool_cancel_fs"), "threadpool");
        assert_eq!(topic("thread_mutex"), "threads");
    }

    #[test]
    fn names_without_a_telling_prefix() {
        assert_eq!(topic("we_get_signals"), "signal");
        assert_eq!(topic("connection_fail"), "tcp");
        assert_eq!(topic("getsockname_udp"), "udp");
        assert_eq!(topic("kill_invalid_signum"), "process");
        assert_eq!(topic("ref"), "handles");
        assert_eq!(topic("sizeof"), "misc");
    }
}
