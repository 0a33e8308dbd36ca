//! What both runtimes do. This file is compiled for each of them, with its names in
//! `super::runtime`.

use super::runtime::{
    MayBeSpawned, TcpListener, TcpStream, UdpSocket, block_on, read_file, sleep_until, spawn,
    yield_now,
};
// The streams of tokio are read and written by traits.
#[allow(unused_imports)]
use super::runtime::traits::*;
use crate::figures::{Begun, Figures, percentile, resident_bytes};
use anyhow::{Context, Result, bail, ensure};
use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes in a message.
const MESSAGE: usize = 64;

pub(crate) fn run(workload: &str) -> Result<Figures> {
    block_on(async {
        match workload {
            "spawn" => spawn_and_join(500_000).await,
            "yield" => yields(10, 100_000).await,
            "channel-tasks" => channel_between_tasks(1_000_000).await,
            "channel-thread" => channel_from_a_thread(1_000_000).await,
            "round-trips-thread" => round_trips_with_a_thread(50_000).await,
            "echo-1" => echo(1, 100_000).await,
            "echo-50" => echo(50, 300_000).await,
            "echo-1000" => echo(1000, 300_000).await,
            "udp-1" => datagrams(1, 100_000).await,
            "udp-50" => datagrams(50, 200_000).await,
            "read-1" => reads(1, 30_000).await,
            "read-32" => reads(32, 60_000).await,
            "timers-100k" => timers(100_000, 50).await,
            "timers-1m" => timers(1_000_000, 1000).await,
            // So few that a loop sleeps between them.
            "timers-sparse" => timers(50_000, 10_000).await,
            "idle-tasks" => idle_tasks(100_000).await,
            _ => bail!("there is no workload {workload:?}"),
        }
    })
}

/// Tasks that end at once, started a hundred at a time.
async fn spawn_and_join(tasks: u64) -> Result<Figures> {
    let begun = Begun::now();
    let mut sum = 0;
    let mut handles = Vec::with_capacity(100);
    for _ in 0..tasks / 100 {
        handles.extend((0..100).map(|number| spawn(async move { number })));
        for handle in handles.drain(..) {
            sum += handle.await.context("a task was lost")?;
        }
    }
    ensure!(sum == tasks / 100 * 4950, "a task gave a wrong answer");
    Ok(begun.done(tasks))
}

/// Runs as many tasks as there are numbers, and waits for all of them.
async fn together<F>(count: u64, mut task: impl FnMut(u64) -> F) -> Result<()>
where
    F: Future<Output = io::Result<()>> + MayBeSpawned + 'static,
{
    let handles: Vec<_> = (0..count).map(|number| spawn(task(number))).collect();
    for handle in handles {
        handle.await.context("a task was lost")??;
    }
    Ok(())
}

async fn yields(tasks: u64, each: u64) -> Result<Figures> {
    let begun = Begun::now();
    together(tasks, |_| async move {
        for _ in 0..each {
            yield_now().await;
        }
        Ok(())
    })
    .await?;
    Ok(begun.done(tasks * each))
}

async fn channel_between_tasks(messages: u64) -> Result<Figures> {
    let (sender, mut receiver) = mpsc::channel(64);
    let begun = Begun::now();
    let sending = spawn(async move {
        for number in 0..messages {
            if sender.send(number).await.is_err() {
                break;
            }
        }
    });
    let mut count = 0;
    while receiver.recv().await.is_some() {
        count += 1;
    }
    sending.await.context("a task was lost")?;
    ensure!(count == messages, "a message was lost");
    Ok(begun.done(messages))
}

async fn channel_from_a_thread(messages: u64) -> Result<Figures> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let begun = Begun::now();
    let thread =
        std::thread::spawn(move || (0..messages).all(|number| sender.send(number).is_ok()));
    let mut count = 0;
    while receiver.recv().await.is_some() {
        count += 1;
    }
    ensure!(count == messages, "a message was lost");
    let all_sent = thread.join().ok();
    ensure!(all_sent == Some(true), "the thread has failed");
    Ok(begun.done(messages))
}

/// A thread sends a number, waits for the answer, and sends the next.
async fn round_trips_with_a_thread(count: u64) -> Result<Figures> {
    let (ask, mut questions) = mpsc::unbounded_channel::<u64>();
    let (answer, answers) = std::sync::mpsc::channel::<u64>();
    let begun = Begun::now();
    let thread = std::thread::spawn(move || {
        (0..count).all(|number| ask.send(number).is_ok() && answers.recv() == Ok(number))
    });
    while let Some(number) = questions.recv().await {
        answer.send(number)?;
    }
    let all_answered = thread.join().ok();
    ensure!(all_answered == Some(true), "an answer was lost");
    Ok(begun.done(count))
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; MESSAGE];
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            count => stream.write_all(&buf[..count]).await?,
        }
    }
}

/// Both ends of the connections are tasks of one loop.
async fn echo(connections: u64, messages: u64) -> Result<Figures> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let accepting = spawn(async move {
        for _ in 0..connections {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            spawn(answer(stream));
        }
        io::Result::Ok(())
    });
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    accepting.await.context("a task was lost")??;
    let each = messages / connections;
    let begun = Begun::now();
    let mut streams = streams.into_iter();
    together(connections, |_| {
        let mut stream = streams.next().expect("a stream for each task");
        async move {
            let mut buf = [1; MESSAGE];
            for _ in 0..each {
                stream.write_all(&[1; MESSAGE]).await?;
                stream.read_exact(&mut buf).await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(begun.done(each * connections))
}

/// Pairs of sockets of one loop, one datagram on its way between each pair.
async fn datagrams(pairs: u64, messages: u64) -> Result<Figures> {
    let mut clients = Vec::new();
    for _ in 0..pairs {
        let server = UdpSocket::bind("127.0.0.1:0").await?;
        let client = UdpSocket::bind("127.0.0.1:0").await?;
        client.connect(server.local_addr()?).await?;
        spawn(async move {
            let mut buf = [0; MESSAGE];
            loop {
                let (count, from) = server.recv_from(&mut buf).await?;
                server.send_to(&buf[..count], from).await?;
            }
            #[allow(unreachable_code)]
            io::Result::Ok(())
        });
        clients.push(client);
    }
    let each = messages / pairs;
    let begun = Begun::now();
    let mut clients = clients.into_iter();
    together(pairs, |_| {
        let client = clients.next().expect("a socket for each task");
        async move {
            let mut buf = [0; MESSAGE];
            for _ in 0..each {
                client.send(&[1; MESSAGE]).await?;
                client.recv(&mut buf).await?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(begun.done(each * pairs))
}

async fn reads(at_once: u64, files: u64) -> Result<Figures> {
    let path = std::env::temp_dir().join(format!("blacklight-versus-{}", std::process::id()));
    std::fs::write(&path, [7; 4096])?;
    let each = files / at_once;
    let begun = Begun::now();
    let read = together(at_once, |_| {
        let path = path.clone();
        async move {
            for _ in 0..each {
                let bytes = read_file(&path).await?;
                if bytes.len() != 4096 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        }
    })
    .await;
    let figures = begun.done(each * at_once);
    std::fs::remove_file(&path)?;
    read.map(|()| figures)
}

/// Sleeps of 1 ms to `longest_ms`, all at once. Its own figure is by how many microseconds the
/// median one is late.
async fn timers(count: u64, longest_ms: u64) -> Result<Figures> {
    let lateness: Arc<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
    let begun = Begun::now();
    let start = Instant::now();
    together(count, |number| {
        let lateness = Arc::clone(&lateness);
        // Multiplying scatters the numbers, the same ones in each run.
        let micros = 1000 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (longest_ms * 1000 - 1000);
        let due = start + Duration::from_micros(micros);
        async move {
            sleep_until(due).await;
            let late = due.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
            lateness[number as usize].store(late, Ordering::Relaxed);
            Ok(())
        }
    })
    .await?;
    let mut figures = begun.done(count);
    let mut late: Vec<u64> = lateness
        .iter()
        .map(|late| late.load(Ordering::Relaxed))
        .collect();
    figures.own = Some(percentile(&mut late, 50));
    Ok(figures)
}

/// Tasks that wait for ever. Its own figure is how many bytes each has resident.
async fn idle_tasks(count: u64) -> Result<Figures> {
    // What the allocator and the runtime need anyhow is there before.
    together(1000, |_| async { Ok(()) }).await?;
    let before = resident_bytes();
    let begun = Begun::now();
    let mut handles = Vec::with_capacity(count as usize);
    handles.extend((0..count).map(|_| spawn(pending::<()>())));
    yield_now().await;
    let mut figures = begun.done(count);
    figures.own = Some((resident_bytes() - before) / count as f64);
    drop(handles);
    Ok(figures)
}
