//! What the kernel writes for a watched directory, and what it might write.
//!
//! Records lie one after the other inside of the buffer, whatever it says; names are part of their
//! record, and have neither a NUL nor more than its length.

use blacklight_sys::file_watch::Record;

/// The fixed part of a record.
const HEADER: usize = 16;

/// Takes a buffer apart.
pub fn run(data: &[u8]) {
    let mut at = 0;
    while let Some(record) = Record::first(&data[at..]) {
        let rest = &data[at..];
        assert!((HEADER..=rest.len()).contains(&record.len));
        let whole = &rest[..record.len];
        let room = whole[HEADER..].as_ptr_range();
        let name = record.name.as_ptr_range();
        assert!(room.start <= name.start && name.end <= room.end, "outside");
        assert!(!record.name.contains(&0));
        // The name ends at its first NUL, or fills the record.
        let end = record.name.len();
        assert!(end == whole.len() - HEADER || whole[HEADER + end] == 0);
        let word = |at: usize| u32::from_ne_bytes(*whole[at..].first_chunk().expect("a header"));
        assert_eq!(
            (record.wd as u32, record.changes.bits()),
            (word(0), word(4))
        );
        assert!(Record::first(&whole[..record.len - 1]).is_none(), "cut");
        at += record.len;
    }
    // What is left is less than its own header says.
    let rest = &data[at..];
    if let Some(header) = rest.first_chunk::<HEADER>() {
        let [.., a, b, c, d] = *header;
        let len = u32::from_ne_bytes([a, b, c, d]) as usize;
        assert!(len > rest.len() - HEADER);
    }
}
