//! Files and directories on the thread pool.

#[path = "support/pool.rs"]
mod pool;

use blacklight::fs::{self, File, TempDir, TempFile};
use blacklight::{Loop, Mode};
use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use pool::occupy;
use std::collections::BTreeSet;
use std::fs::{FileTimes, OpenOptions};
use std::future::poll_fn;
use std::io::{ErrorKind, SeekFrom};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

/// Runs a future on a loop with a directory for it.
fn with_directory<F: Future<Output = std::io::Result<()>>>(test: impl FnOnce(TempDir) -> F) {
    let lp = Loop::new().unwrap();
    let directory = TempDir::new_blocking("fs").unwrap();
    lp.block_on(test(directory)).unwrap();
}

/// Polls a future once, so that it has begun, and drops it.
async fn begin_and_drop(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn files_are_written_copied_linked_and_removed() {
    with_directory(async |directory| {
        let path = |name| directory.path().join(name);
        fs::write(path("a"), "light").await?;
        assert_eq!(fs::copy(path("a"), path("b")).await?, 5);
        fs::hard_link(path("b"), path("c")).await?;
        fs::symlink("c", path("d")).await?;
        fs::rename(path("a"), path("e")).await?;
        assert_eq!(fs::read(path("e")).await?, b"light");
        assert_eq!(fs::read_to_string(path("d")).await?, "light");
        assert_eq!(fs::read_link(path("d")).await?.as_os_str(), "c");
        assert!(fs::symlink_metadata(path("d")).await?.is_symlink());
        assert_eq!(
            fs::canonicalize(path("d")).await?,
            fs::canonicalize(path("c")).await?
        );
        let mut permissions = fs::metadata(path("e")).await?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(path("e"), permissions).await?;
        assert!(fs::metadata(path("e")).await?.permissions().readonly());
        let times = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1));
        fs::set_times(path("e"), times).await?;
        let modified = fs::metadata(path("e")).await?.modified()?;
        assert_eq!(modified, UNIX_EPOCH + Duration::from_secs(1));
        fs::remove_file(path("d")).await?;
        assert!(fs::exists(path("c")).await? && !fs::exists(path("d")).await?);
        Ok(())
    });
}

#[test]
fn errors_are_those_of_the_system() {
    with_directory(async |directory| {
        let path = |name| directory.path().join(name);
        let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
        assert_eq!(
            kind(fs::read(path("no")).await.map(drop)),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind(File::open(path("no")).await.map(drop)),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind(fs::read_dir(path("no")).await.map(drop)),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind(fs::write(path("no/file"), "").await),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind(fs::create_dir(directory.path()).await),
            ErrorKind::AlreadyExists
        );
        assert_eq!(
            kind(fs::read(directory.path()).await.map(drop)),
            ErrorKind::IsADirectory
        );
        fs::write(path("file"), [0xff]).await?;
        assert_eq!(
            kind(fs::create_dir(path("file/x")).await),
            ErrorKind::NotADirectory
        );
        assert_eq!(
            kind(fs::read_to_string(path("file")).await.map(drop)),
            ErrorKind::InvalidData
        );
        assert_eq!(
            kind(fs::remove_dir(directory.path()).await),
            ErrorKind::DirectoryNotEmpty
        );
        assert_eq!(kind(fs::write("a\0b", "").await), ErrorKind::InvalidInput);
        // What a worker could not write, the next call says.
        let mut file = File::open(path("file")).await?;
        let error = file.write_all(b"light").await.unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::BADF.raw_os_error())
        );
        let mut full = File::open_with("/dev/full", OpenOptions::new().write(true)).await?;
        assert_eq!(kind(full.write_all(b"light").await), ErrorKind::StorageFull);
        Ok(())
    });
}

#[test]
fn directories_are_made_listed_and_removed() {
    with_directory(async |directory| {
        let deep = directory.path().join("a/b/c");
        fs::create_dir_all(&deep).await?;
        // More than come at once.
        let names: BTreeSet<String> = (0..200).map(|number| format!("{number}")).collect();
        for name in &names {
            fs::write(deep.join(name), name).await?;
        }
        let mut entries = fs::read_dir(&deep).await?;
        let mut found = BTreeSet::new();
        while let Some(entry) = entries.next_entry().await? {
            found.insert(entry.file_name().into_string().unwrap());
        }
        assert_eq!(found, names);
        assert!(entries.next_entry().await?.is_none());
        fs::remove_dir_all(directory.path().join("a")).await?;
        assert!(
            fs::read_dir(directory.path())
                .await?
                .next_entry()
                .await?
                .is_none()
        );
        Ok(())
    });
}

#[test]
fn a_dropped_call_loses_no_entry() {
    with_directory(async |directory| {
        for number in 0..130 {
            std::fs::write(directory.path().join(number.to_string()), "")?;
        }
        let mut entries = fs::read_dir(directory.path()).await?;
        let mut count = 0;
        loop {
            if count % 64 == 0 && count > 0 {
                begin_and_drop(entries.next_entry()).await;
            }
            match entries.next_entry().await? {
                Some(_) => count += 1,
                None => break,
            }
        }
        assert_eq!(count, 130);
        Ok(())
    });
}

#[test]
fn a_file_is_read_written_and_sought() {
    with_directory(async |directory| {
        let path = directory.path().join("file");
        let mut options = OpenOptions::new();
        let mut file =
            File::open_with(&path, options.read(true).write(true).create_new(true)).await?;
        file.write_all(b"black light").await?;
        assert_eq!(file.metadata().await?.len(), 11);
        assert_eq!(file.seek(SeekFrom::Start(6)).await?, 6);
        let mut word = [0; 3];
        assert_eq!(file.read(&mut word).await?, 3);
        assert_eq!(&word, b"lig");
        assert_eq!(file.seek(SeekFrom::Current(-3)).await?, 6);
        let mut rest = Vec::new();
        assert_eq!(file.read_to_end(&mut rest).await?, 5);
        assert_eq!(rest, b"light");
        assert_eq!(file.read(&mut word).await?, 0);
        file.write_all_at(b"B", 0).await?;
        assert_eq!(file.read_at(&mut word, 0).await?, 3);
        assert_eq!(&word, b"Bla");
        assert_eq!(file.read_at(&mut word, 10).await?, 1);
        file.set_len(5).await?;
        file.sync_data().await?;
        file.sync_all().await?;
        assert_eq!(file.seek(SeekFrom::End(0)).await?, 5);
        assert_eq!(fs::read(&path).await?, b"Black");
        assert!(file.seek(SeekFrom::Current(-6)).await.is_err());
        file.set_times(FileTimes::new().set_modified(UNIX_EPOCH))
            .await?;
        let metadata = file.metadata().await?;
        assert_eq!(metadata.modified()?, UNIX_EPOCH);
        file.set_permissions(metadata.permissions()).await?;
        let file = file.into_std().await?;
        assert_eq!(file.metadata()?.len(), 5);
        Ok(())
    });
}

#[test]
fn what_was_read_and_not_taken_is_not_lost() {
    with_directory(async |directory| {
        let path = directory.path().join("file");
        fs::write(&path, "0123456789").await?;
        let mut options = OpenOptions::new();
        let mut file = File::open_with(&path, options.read(true).write(true)).await?;
        begin_and_drop(file.read(&mut [0; 6])).await;
        let mut two = [0; 2];
        assert_eq!(file.read(&mut two).await?, 2);
        assert_eq!(&two, b"01");
        assert_eq!(file.seek(SeekFrom::Current(1)).await?, 3);
        begin_and_drop(file.read(&mut [0; 6])).await;
        assert_eq!(file.read(&mut two).await?, 2);
        assert_eq!(&two, b"34");
        file.write_all(b"x").await?;
        begin_and_drop(file.read(&mut [0; 2])).await;
        let mut rest = b"5".to_vec();
        assert_eq!(file.read_to_end(&mut rest).await?, 4);
        assert_eq!(rest, b"56789");
        assert_eq!(fs::read(&path).await?, b"01234x6789");
        Ok(())
    });
}

#[test]
fn files_have_the_traits_of_streams() {
    with_directory(async |directory| {
        let path = directory.path().join("file");
        let data: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
        let mut file = File::create(&path).await?;
        AsyncWriteExt::write_all(&mut file, &data).await?;
        AsyncWriteExt::close(&mut file).await?;
        let mut from = File::open(&path).await?;
        AsyncSeekExt::seek(&mut from, SeekFrom::Start(1)).await?;
        let mut copy = File::create(directory.path().join("copy")).await?;
        let copied = futures_lite::io::copy(&mut from, &mut copy).await?;
        assert_eq!(copied, 299_999);
        AsyncWriteExt::flush(&mut copy).await?;
        let mut read = Vec::new();
        let mut copy = File::open(directory.path().join("copy")).await?;
        AsyncReadExt::read_to_end(&mut copy, &mut read).await?;
        assert!(read == data[1..]);
        Ok(())
    });
}

#[test]
fn a_file_that_leaves_the_loop_is_where_a_dropped_read_began() {
    with_directory(async |directory| {
        let path = directory.path().join("file");
        fs::write(&path, "black light").await?;
        let mut file = File::open(&path).await?;
        begin_and_drop(file.read(&mut [0; 6])).await;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file.into_std().await?, &mut text)?;
        assert_eq!(text, "black light");
        // What has no position leaves the loop as well.
        let (reader, mut writer) = std::io::pipe()?;
        std::io::Write::write_all(&mut writer, b"light")?;
        let reader = std::os::fd::OwnedFd::from(reader);
        let mut file = File::from_std(reader.into());
        begin_and_drop(file.read(&mut [0; 6])).await;
        file.into_std().await?;
        Ok(())
    });
}

#[test]
fn a_write_that_was_taken_is_done_although_the_file_is_dropped() {
    let lp = Loop::new().unwrap();
    let directory = TempDir::new_blocking("written").unwrap();
    let path = directory.path().join("file");
    lp.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let count = AsyncWriteExt::write(&mut file, b"light").await.unwrap();
        assert_eq!(count, 5);
    });
    // A loop runs until its requests are done.
    lp.run(Mode::Default);
    assert_eq!(std::fs::read(&path).unwrap(), b"light");
}

#[test]
fn futures_are_dropped_in_the_middle_of_their_work() {
    let lp = Loop::new().unwrap();
    let directory = TempDir::new_blocking("dropped").unwrap();
    lp.block_on(async {
        for number in 0..50 {
            let path = directory.path().join(number.to_string());
            begin_and_drop(fs::write(&path, vec![b'x'; 100_000])).await;
            begin_and_drop(fs::read(&path)).await;
            begin_and_drop(fs::read_dir(directory.path())).await;
            begin_and_drop(TempDir::new("gone")).await;
            begin_and_drop(TempFile::new("gone")).await;
        }
    });
    assert!(!lp.run(Mode::Default), "all requests come to their end");
    // And a loop that goes while there is work leaves nothing to wait for.
    lp.spawn(async { fs::read("/proc/self/stat").await });
    lp.run(Mode::NoWait);
    drop(lp);
}

#[test]
fn what_is_dropped_before_it_begins_does_not_happen() {
    let lp = Loop::new().unwrap();
    let directory = TempDir::new_blocking("unbegun").unwrap();
    let path = directory.path().join("file");
    let end = occupy(&lp);
    lp.block_on(begin_and_drop(fs::write(&path, "light")));
    end.wait();
    assert!(!lp.run(Mode::Default));
    assert!(!path.exists());
}

#[test]
fn temporary_files_are_removed() {
    let lp = Loop::new().unwrap();
    let (file, directory) = lp.block_on(async {
        let mut file = TempFile::new("temporary").await.unwrap();
        file.file.write_all(b"light").await.unwrap();
        (file, TempDir::new("temporary").await.unwrap())
    });
    let paths = [file.path().to_owned(), directory.path().to_owned()];
    std::fs::create_dir(directory.path().join("more")).unwrap();
    assert!(paths.iter().all(|path| path.exists()));
    drop((file, directory));
    assert!(!paths.iter().any(|path| path.exists()));
}

#[test]
fn without_a_loop_there_is_nothing() {
    let read = futures_lite::future::block_on(fs::read("/proc/self/stat"));
    let error = read.unwrap_err();
    assert_eq!(
        blacklight::Error::of(&error),
        Some(blacklight::Error::NoCurrentLoop)
    );
}
