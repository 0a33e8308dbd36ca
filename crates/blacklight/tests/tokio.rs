//! tokio's traits on our streams.
#![cfg(feature = "tokio")]

use blacklight::{Loop, UnixStream, current, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn tokios_helpers_read_and_write() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, mut far) = UnixStream::pair(&current()).unwrap();
        let (mut reader, mut writer) = near.split();
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
        far.read_exact(&mut back).await.unwrap();
        assert!(back == bytes);
        writing.await.unwrap();
        AsyncWriteExt::shutdown(&mut far).await.unwrap();
        assert_eq!(echo.await.unwrap().unwrap(), 200_000);
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "the other end is closed with both halves");
    });
}
