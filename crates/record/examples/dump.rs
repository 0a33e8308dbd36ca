//! Prints the record of a process.

use blacklight_record::read::Reader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: dump PID")?.parse()?;
    let reader = Reader::open(pid)?;
    reader.want()?;
    println!("recording: {}", reader.is_recording()?);
    let snapshot = reader.snapshot()?;
    for lp in &snapshot.loops {
        println!(
            "loop {} {:?} on {} in thread {}: {:?}",
            lp.id, lp.name, lp.poller, lp.tid, lp.now
        );
        println!(
            "  {} turns, {} callbacks, times {:?}",
            lp.turns, lp.callbacks, lp.time_ns
        );
        println!("  turn {:?} delay {:?}", lp.turn, lp.delay);
        for handle in reader.handles(lp)? {
            println!("  {handle:?}");
        }
        for costly in &lp.costly {
            println!("  {costly:?}");
        }
        let events = reader.events(lp.ring(), 0)?;
        println!("  {} events, {} lost", events.events.len(), events.lost);
        for event in events.events.iter().rev().take(12) {
            println!("  {event:?}");
        }
    }
    println!(
        "pool: {:?} of {} threads",
        snapshot.pool.members, snapshot.pool.threads
    );
    println!(
        "queued {:?} running {:?} completed {:?} oldest {:?}",
        snapshot.pool.queued, snapshot.pool.running, snapshot.pool.completed, snapshot.pool.oldest
    );
    Ok(())
}
