//! The names of ARM's processors, whose kernel tells their numbers only.

/// The numbers of parts, as `/proc/cpuinfo` has them, and the names that libuv gives them. Other makers' processors
/// go by ARM's numbers where they are ARM's designs, and whose number it is, libuv does not ask.
#[rustfmt::skip]
const NAMES: [(&[u8], &str); 52] = [
    (b"0x811", "ARM810"),
    (b"0x920", "ARM920"),
    (b"0x922", "ARM922"),
    (b"0x926", "ARM926"),
    (b"0x940", "ARM940"),
    (b"0x946", "ARM946"),
    (b"0x966", "ARM966"),
    (b"0xa20", "ARM1020"),
    (b"0xa22", "ARM1022"),
    (b"0xa26", "ARM1026"),
    (b"0xb02", "ARM11 MPCore"),
    (b"0xb36", "ARM1136"),
    (b"0xb56", "ARM1156"),
    (b"0xb76", "ARM1176"),
    (b"0xc05", "Cortex-A5"),
    (b"0xc07", "Cortex-A7"),
    (b"0xc08", "Cortex-A8"),
    (b"0xc09", "Cortex-A9"),
    (b"0xc0d", "Cortex-A17"),
    (b"0xc0e", "Cortex-A17"),
    (b"0xc0f", "Cortex-A15"),
    (b"0xc14", "Cortex-R4"),
    (b"0xc15", "Cortex-R5"),
    (b"0xc17", "Cortex-R7"),
    (b"0xc18", "Cortex-R8"),
    (b"0xc20", "Cortex-M0"),
    (b"0xc21", "Cortex-M1"),
    (b"0xc23", "Cortex-M3"),
    (b"0xc24", "Cortex-M4"),
    (b"0xc27", "Cortex-M7"),
    (b"0xc60", "Cortex-M0+"),
    (b"0xd01", "Cortex-A32"),
    (b"0xd03", "Cortex-A53"),
    (b"0xd04", "Cortex-A35"),
    (b"0xd05", "Cortex-A55"),
    (b"0xd06", "Cortex-A65"),
    (b"0xd07", "Cortex-A57"),
    (b"0xd08", "Cortex-A72"),
    (b"0xd09", "Cortex-A73"),
    (b"0xd0a", "Cortex-A75"),
    (b"0xd0b", "Cortex-A76"),
    (b"0xd0c", "Neoverse-N1"),
    (b"0xd0d", "Cortex-A77"),
    (b"0xd0e", "Cortex-A76AE"),
    (b"0xd13", "Cortex-R52"),
    (b"0xd20", "Cortex-M23"),
    (b"0xd21", "Cortex-M33"),
    (b"0xd41", "Cortex-A78"),
    (b"0xd42", "Cortex-A78AE"),
    (b"0xd4a", "Neoverse-E1"),
    (b"0xd4b", "Cortex-A78C"),
    (b"0xd4f", "Neoverse-V2"),
];

/// The name of a part, if libuv has one for it.
pub(super) fn name(number: &[u8]) -> Option<&'static str> {
    let found = NAMES.iter().find(|(known, _)| *known == number);
    found.map(|&(_, name)| name)
}
