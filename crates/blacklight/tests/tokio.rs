//! tokio's traits on our streams.
#![cfg(feature = "tokio")]

use blacklight::{Loop, UnixStream, fs, spawn};
use std::io::SeekFrom;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

#[test]
fn tokios_helpers_read_and_write() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (mut reader, mut writer) = near.into_split();
        let echo = spawn(async move { tokio::io::copy(&mut reader, &mut writer).await });
        let bytes: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
        let writing = spawn({
            let (mut far, bytes) = (far.clone(), bytes.clone());
            async move {
                AsyncWriteExt::write_all(&mut far, &bytes).await.unwrap();
                AsyncWriteExt::flush(&mut far).await.unwrap();
            }
        });
        let mut back = vec![0; bytes.len()];
        AsyncReadExt::read_exact(&mut far, &mut back).await.unwrap();
        assert!(back == bytes);
        writing.await.unwrap();
        AsyncWriteExt::shutdown(&mut far).await.unwrap();
        assert_eq!(echo.await.unwrap().unwrap(), 200_000);
        let mut rest = Vec::new();
        AsyncReadExt::read_to_end(&mut far, &mut rest)
            .await
            .unwrap();
        assert!(rest.is_empty(), "the other end is closed with both halves");
    });
}

#[test]
fn tokios_helpers_work_on_files() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let mut file = fs::TempFile::new("tokio").await.unwrap().file;
        let bytes: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
        AsyncWriteExt::write_all(&mut file, &bytes).await.unwrap();
        AsyncWriteExt::flush(&mut file).await.unwrap();
        let at = AsyncSeekExt::seek(&mut file, SeekFrom::Start(100_000));
        assert_eq!(at.await.unwrap(), 100_000);
        let mut rest = Vec::new();
        AsyncReadExt::read_to_end(&mut file, &mut rest)
            .await
            .unwrap();
        assert!(rest == bytes[100_000..]);

        // A write that nobody has waited for is in progress.
        assert_eq!(AsyncWriteExt::write(&mut file, b"x").await.unwrap(), 1);
        let begun =
            tokio::io::AsyncSeek::start_seek(std::pin::Pin::new(&mut file), SeekFrom::End(0));
        assert!(begun.is_err());
        AsyncSeekExt::rewind(&mut file).await.unwrap();
        let mut first = [0; 10];
        AsyncReadExt::read_exact(&mut file, &mut first)
            .await
            .unwrap();
        assert_eq!(first, bytes[..10]);
        AsyncWriteExt::shutdown(&mut file).await.unwrap();
    });
}

#[test]
fn tokios_helpers_copy_a_file_to_the_standard_output() {
    // Started again, with pipes in place of the standard streams.
    if std::env::var_os("COPIES").is_some() {
        let copy = async {
            let (mut stdin, mut stdout) = (blacklight::stdin()?, blacklight::stdout()?);
            tokio::io::copy(&mut stdin, &mut stdout).await?;
            AsyncWriteExt::flush(&mut stdout).await?;
            AsyncWriteExt::shutdown(&mut blacklight::stderr()?).await
        };
        return Loop::new().unwrap().block_on(copy).unwrap();
    }
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        use blacklight::process::{Command, Stdio};
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "--nocapture",
                "tokios_helpers_copy_a_file_to_the_standard_output",
            ])
            .env("COPIES", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        AsyncWriteExt::write_all(&mut stdin, b"through the loop")
            .await
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("through the loop"), "{text}");
    });
}
