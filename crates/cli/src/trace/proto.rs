//! Protocol buffers, written by hand: the three encodings that a Perfetto trace needs.

/// Numbers of variable length.
const VARINT: u64 = 0;
/// Numbers of eight bytes.
const FIXED64: u64 = 1;
/// A length, and as many bytes.
const DELIMITED: u64 = 2;

/// A message that is being written, field by field.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message without fields.
    pub(super) fn new() -> Message {
        Message::default()
    }

    /// The message as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a number: any of the integer types that are not zigzagged, or an enumeration.
    pub(super) fn number(mut self, field: u64, value: u64) -> Message {
        self.key(field, VARINT);
        push_varint(&mut self.0, value);
        self
    }

    /// Adds a number of eight bytes.
    pub(super) fn fixed64(mut self, field: u64, value: u64) -> Message {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds text.
    pub(super) fn text(mut self, field: u64, value: &str) -> Message {
        self.delimited(field, value.as_bytes());
        self
    }

    /// Adds a message.
    pub(super) fn message(mut self, field: u64, value: &Message) -> Message {
        self.delimited(field, &value.0);
        self
    }

    fn key(&mut self, field: u64, encoding: u64) {
        push_varint(&mut self.0, field << 3 | encoding);
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, DELIMITED);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Appends a number in groups of seven bits, the lowest first; all but the last have their highest bit set.
fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_varint(&mut bytes, value);
        bytes
    }

    #[test]
    fn varints_have_seven_bits_in_each_byte() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(127), [0x7f]);
        assert_eq!(varint(128), [0x80, 1]);
        assert_eq!(varint(300), [0xac, 2]);
        assert_eq!(varint(u64::MAX).len(), 10);
        assert_eq!(varint(u64::MAX)[9], 1);
    }

    #[test]
    fn varints_decode_to_what_was_written() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1_u64 << shift) - 1, (1_u64 << shift) | 1] {
                let decoded = varint(value)
                    .iter()
                    .enumerate()
                    .map(|(at, byte)| u64::from(byte & 0x7f) << (7 * at))
                    .sum::<u64>();
                assert_eq!(decoded, value);
            }
        }
    }

    #[test]
    fn fields_have_number_and_encoding_before_them() {
        // The examples of the format's documentation.
        assert_eq!(Message::new().number(1, 150).bytes(), [8, 0x96, 1]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.bytes(), b"\x12\x07testing");
        let inner = Message::new().number(1, 150);
        let outer = Message::new().message(3, &inner);
        assert_eq!(outer.bytes(), [0x1a, 3, 8, 0x96, 1]);
        let fixed = Message::new().fixed64(47, 1);
        assert_eq!(fixed.bytes(), [0xf9, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
