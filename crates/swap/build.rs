//! Keeps libgcc_s out: nothing here unwinds, and loading it would cost every process that starts
//! more than all the rest of this object does.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libblacklight_swap.so");
    // Some linkers bind all calls at the start unless they are told not to.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,lazy");
    // Zig brings an unwinder, and links it into what it makes.
    let zig_links = std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zig"));
    if let Some(dir) = unwinder().filter(|_| !zig_links) {
        println!("cargo:rustc-link-search=native={dir}");
        println!("cargo:rustc-link-lib=static:-bundle,+verbatim=libgcc_eh.a");
    }
}

/// Where the compiler that links us keeps the static unwinder. Without one, libgcc_s is as good.
fn unwinder() -> Option<String> {
    let output = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let path = String::from_utf8(output.ok()?.stdout).ok()?;
    let (dir, _) = path.trim().rsplit_once('/')?;
    Some(dir.to_owned())
}
