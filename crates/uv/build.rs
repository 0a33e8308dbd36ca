//! Gives the shared library the name that programs look for, and an unwinder of its own: finding
//! and loading libgcc_s would cost every process that starts more than all the rest of us does.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=layout.ld");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libuv.so.1");
    let layout = concat!(env!("CARGO_MANIFEST_DIR"), "/layout.ld");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{layout}");
    if let Some(dir) = unwinder() {
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
