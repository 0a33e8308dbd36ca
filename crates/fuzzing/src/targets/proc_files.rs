//! The parsers of files in `/proc`, with whatever bytes.
//!
//! Numbers that come out are in the file, and lines that are made as the kernel makes them are read
//! as what they were made of.

use crate::input::Input;
use blacklight_sys::{cpu, host, memory};

/// Parses bytes as each file, and a well-formed one of each.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.flip() {
        true => any_bytes(input.rest()),
        false => well_formed(&mut input),
    }
}

fn any_bytes(file: &[u8]) {
    let times = cpu::parse_times(file, 10).expect("memory");
    assert!(times.is_sorted_by_key(|&(number, _)| number));
    let lines = file.split(|&byte| byte == b'\n').count();
    assert!(times.len() <= lines);
    assert!(cpu::parse_models(file).expect("memory").len() <= lines);
    let total = memory::parse_meminfo(file, "MemTotal:");
    assert!(total.is_none_or(|bytes| bytes != 0 && bytes % 1024 == 0));
    if memory::resident_pages(file).is_some() {
        assert!(file.windows(2).any(|pair| pair == b") "));
    }
    assert!(host::numbers(file).all(f64::is_finite));
}

fn well_formed(input: &mut Input<'_>) {
    let number = input.word();
    let fields = [(); 6].map(|()| input.long());
    let name: Vec<u8> = input
        .rest()
        .iter()
        .copied()
        .filter(|&byte| byte != b'\n')
        .collect();
    let name = String::from_utf8_lossy(&name).into_owned();

    let [user, nice, system, idle, waiting, irq] = fields;
    let stat = format!(
        "cpu  1 1 1 1 1 1\ncpu{number} {user} {nice} {system} {idle} {waiting} {irq} 0 0\nintr 5\n"
    );
    let times = cpu::parse_times(stat.as_bytes(), 10).expect("memory");
    assert_eq!(times.len(), 1);
    assert_eq!(times[0].0, number);
    let ms = [user, nice, system, idle, irq].map(|ticks| ticks.saturating_mul(10));
    let found = times[0].1;
    assert_eq!(
        [found.user, found.nice, found.system, found.idle, found.irq],
        ms
    );

    let cpuinfo = format!("processor\t: {number}\nmodel name\t: {name}\n");
    let models = cpu::parse_models(cpuinfo.as_bytes()).expect("memory");
    assert_eq!(models.get(&number), Some(&name));

    let meminfo = format!("MemFree: 3 kB\nMemTotal:  {user} kB\n");
    let bytes = user.checked_mul(1024).filter(|&bytes| bytes != 0);
    assert_eq!(
        memory::parse_meminfo(meminfo.as_bytes(), "MemTotal:"),
        bytes
    );

    let before = "0 ".repeat(20);
    let stat = format!("1 ({name}) R {before}{idle} 0 0\n");
    assert_eq!(
        memory::resident_pages(stat.as_bytes()),
        usize::try_from(idle).ok()
    );

    let uptime = format!("{number}.25 {user}.50\n");
    let mut numbers = host::numbers(uptime.as_bytes());
    assert_eq!(numbers.next(), Some(f64::from(number) + 0.25));
}
