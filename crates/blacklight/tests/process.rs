//! Child processes.

use blacklight::process::{Child, Command, Stdio};
use blacklight::{Loop, Mode, SignalKind, fs::TempDir};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use std::cell::Cell;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn output(command: &mut Command) -> String {
    let lp = Loop::new().unwrap();
    let output = lp.block_on(command.output()).unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A child that runs until it is killed, and has begun to.
async fn long_lived() -> Child {
    let mut command = sh("echo; exec sleep 1000");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0];
    let stdout = child.stdout.as_mut().unwrap();
    assert_eq!(stdout.read(&mut line).await.unwrap(), 1);
    child
}

#[test]
fn the_exit_is_called_back_with_the_code() {
    let lp = Loop::new().unwrap();
    let child = sh("exit 3").spawn().unwrap();
    assert!(child.is_active() && child.id() > 0);
    let code = Rc::new(Cell::new(None));
    let tell = code.clone();
    child.on_exit(move |_, status| tell.set(status.unwrap().code()));
    assert!(child.try_wait().unwrap().is_none());
    assert!(!lp.run(Mode::Default));
    assert_eq!(code.get(), Some(3));
    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
    // It is known for good, and there is nobody to kill any more.
    let mut child = child;
    assert_eq!(lp.block_on(child.wait()).unwrap().code(), Some(3));
    assert!(child.kill(SignalKind::SIGTERM).is_err());
    child.on_exit(|_, _| panic!("that was told already"));
    drop(child);
    lp.run(Mode::Default);
}

#[test]
fn what_cannot_be_run_is_an_error_at_once() {
    let lp = Loop::new().unwrap();
    for program in ["no such program", "/no/such/program"] {
        let error = Command::new(program).spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let mut command = Command::new(program);
        command.stdin(Stdio::piped());
        let error = lp.block_on(command.output()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let directory = TempDir::new_blocking("program").unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    let error = Command::new(&file).spawn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    for command in [
        Command::new("true").current_dir("/no/such/directory"),
        Command::new("true").env_clear().env("PATH", "/nowhere"),
    ] {
        assert_eq!(command.spawn().unwrap_err().kind(), ErrorKind::NotFound);
    }
    for command in [
        Command::new("tr\0ue").arg("-"),
        Command::new("true").arg("a\0b"),
        Command::new("true").env("a", "\0"),
        Command::new("true").current_dir("\0"),
        Command::new("true").fd(2, std::fs::File::open("/dev/null").unwrap()),
        Command::new("true").fd(u32::MAX, std::fs::File::open("/dev/null").unwrap()),
    ] {
        let error = command.spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert!(!lp.run(Mode::Default), "nothing is left");
}

#[test]
fn a_killed_child_says_by_what() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        for kind in [SignalKind::SIGKILL, SignalKind::SIGTERM] {
            let mut child = long_lived().await;
            child.kill(kind).unwrap();
            let status = child.wait().await.unwrap();
            assert_eq!(
                (status.code(), status.signal()),
                (None, Some(kind.as_raw()))
            );
        }
    });
}

#[test]
fn arguments_environment_and_directory_are_the_childs() {
    let mut command = sh("echo \"$0 $1 $A $B ${HOME-none}\"; pwd");
    command
        .args(["zero", "one"])
        .envs([("A", "a"), ("B", "b")])
        .env_remove("HOME")
        .current_dir("/usr");
    assert_eq!(output(&mut command), "zero one a b none\n/usr\n");
    let mut command = Command::new("/usr/bin/env");
    command.env("GONE", "x").env_clear().env("KEPT", "y");
    assert_eq!(output(&mut command), "KEPT=y\n");
    let mut command = Command::new("sh");
    command.arg0("another").args(["-c", "echo $0"]);
    assert_eq!(output(&mut command), "another\n");
}

#[test]
fn standard_streams_are_what_was_asked_for() {
    let lp = Loop::new().unwrap();
    let mut command = sh("cat; echo out; echo err >&2");
    let output = lp.block_on(command.output()).unwrap();
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    let (mut reader, writer) = std::io::pipe().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap());
    command.stderr(Stdio::from_fd(writer));
    assert!(lp.block_on(command.status()).unwrap().success());
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "out\nerr\n");
}

#[test]
fn more_than_a_pipe_holds_goes_through_both_ways() {
    let lp = Loop::new().unwrap();
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let data: Vec<u8> = (0..1_000_000u32).map(|number| number as u8).collect();
    let mut stdin = child.stdin.take().unwrap();
    let sent = data.clone();
    let received = lp.block_on(async {
        blacklight::spawn(async move {
            stdin.write_all(&sent).await.unwrap();
            AsyncWriteExt::close(&mut stdin).await.unwrap();
            let closed = stdin.write_all(b"more").await.unwrap_err();
            assert_eq!(closed.kind(), ErrorKind::BrokenPipe);
        });
        let mut received = Vec::new();
        let stdout = child.stdout.as_mut().unwrap();
        AsyncReadExt::read_to_end(stdout, &mut received)
            .await
            .unwrap();
        assert!(child.wait().await.unwrap().success());
        received
    });
    assert!(received == data);
}

#[test]
fn writing_to_a_child_that_is_gone_is_a_broken_pipe() {
    let lp = Loop::new().unwrap();
    let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    lp.block_on(async {
        assert!(child.wait().await.unwrap().success());
        // A child that another thread starts just now has the other end, too, until it runs its
        // program. So there may be room at first, but not for more than a pipe holds.
        let error = stdin.write_all(&[0; 1_000_000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn children_are_put_into_a_pipeline() {
    let lp = Loop::new().unwrap();
    let mut first = sh("echo light").stdout(Stdio::piped()).spawn().unwrap();
    let fd = first.stdout.take().unwrap();
    let fd = fd.as_fd().try_clone_to_owned().unwrap();
    let mut second = Command::new("tr");
    second.args(["a-z", "A-Z"]).stdin(fd);
    let output = lp.block_on(second.output()).unwrap();
    assert_eq!(output.stdout, b"LIGHT\n");
    assert!(lp.block_on(first.wait()).unwrap().success());
}

#[test]
fn further_descriptors_are_passed() {
    let lp = Loop::new().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = sh("echo five >&5; ls /proc/self/fd >&5");
    command.fd(5, writer);
    lp.block_on(command.status()).unwrap();
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("five\n"), "{text}");
    assert!(!text.contains("\n4\n"), "{text}");
}

#[test]
fn a_detached_child_leads_a_session() {
    let session = |detached| {
        let mut command = sh("cut -d' ' -f1,6 /proc/$$/stat");
        let line = output(command.detached(detached));
        let (pid, session) = line.trim().split_once(' ').unwrap();
        pid == session
    };
    assert!(session(true));
    assert!(!session(false));
}

#[test]
fn user_and_group_are_changed_by_root_only() {
    let is_root = output(Command::new("id").arg("-u")) == "0\n";
    let lp = Loop::new().unwrap();
    let mut command = sh("id -u; id -g");
    command.uid(65534).gid(65534);
    let output = lp.block_on(command.output());
    match is_root {
        true => assert_eq!(output.unwrap().stdout, b"65534\n65534\n"),
        false => assert_eq!(output.unwrap_err().kind(), ErrorKind::PermissionDenied),
    }
}

/// Waits for the end of a process that nobody has a handle for.
async fn until_gone(pid: u32) {
    while Path::new(&format!("/proc/{pid}")).exists() {
        blacklight::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_dropped_child_leaves_no_zombie() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        // One that ends by itself after it was dropped, one that has ended before, and one
        // that is killed for it.
        let child = long_lived().await;
        let pid = child.id();
        child.on_exit(|_, _| panic!("the handle is gone"));
        drop(child);
        blacklight::process::kill(pid, SignalKind::SIGTERM).unwrap();
        until_gone(pid).await;

        let child = sh("exit 0").stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let stdout = child.stdout.as_ref().unwrap();
        assert_eq!(stdout.read(&mut [0]).await.unwrap(), 0);
        drop(child);
        until_gone(pid).await;

        let mut command = Command::new("sleep");
        let child = command.arg("1000").kill_on_drop(true).spawn().unwrap();
        let pid = child.id();
        drop(child);
        until_gone(pid).await;
    });
}

#[test]
fn a_dropped_child_does_not_keep_the_loop_running_and_a_detached_one_does() {
    let lp = Loop::new().unwrap();
    let child = lp.block_on(async { long_lived().await });
    let pid = child.id();
    drop(child);
    assert!(!lp.run(Mode::Default));
    blacklight::process::kill(pid, SignalKind::SIGKILL).unwrap();
    let told = Rc::new(Cell::new(false));
    let tell = told.clone();
    let child = sh("exit 0").spawn().unwrap();
    child.on_exit(move |_, _| tell.set(true));
    child.detach();
    assert!(!lp.run(Mode::Default));
    assert!(told.get());
}

#[test]
fn a_child_outlives_its_loop() {
    let lp = Loop::new().unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    child.on_exit(move |_, _| drop(owned));
    let dropped = Command::new("sleep").arg("1000").kill_on_drop(true).spawn();
    drop(dropped.unwrap());
    drop(lp);
    assert!(weak.upgrade().is_none(), "callbacks go with the loop");
    child.kill(SignalKind::SIGKILL).unwrap();
    let other = Loop::new().unwrap();
    assert!(
        other.block_on(child.wait()).is_err(),
        "nobody will ever tell"
    );
}

#[test]
fn a_dropped_wait_can_be_repeated() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let mut child = long_lived().await;
        let early = blacklight::timeout(Duration::from_millis(1), child.wait()).await;
        assert!(early.is_err());
        child.kill(SignalKind::SIGINT).unwrap();
        assert_eq!(
            child.wait().await.unwrap().signal(),
            Some(SignalKind::SIGINT.as_raw())
        );
    });
}
