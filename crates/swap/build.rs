//! Keeps libgcc_s out: nothing here unwinds, and loading it would cost every process that starts
//! more than all the rest of this object does.
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libblacklight_swap.so");
    // Some linkers bind all calls at the start unless they are told not to.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,lazy");
    // Zig brings an unwinder, and links it into what it makes.
    if let Some(dir) = unwinder().filter(|_| !zig_links()) {
        println!("cargo:rustc-link-search=native={dir}");
        println!("cargo:rustc-link-lib=static:-bundle,+verbatim=libgcc_eh.a");
        // It comes before the standard library's code, which needs it, unless all is one object.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-u,_Unwind_Backtrace");
    }
}

/// Whether Zig's compiler links us. Only the name of its file tells: any directory may be called so.
fn zig_links() -> bool {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_default();
    let name = Path::new(&linker).file_name().unwrap_or_default();
    name.to_string_lossy().contains("zig")
}

/// Where the compiler that links us keeps the static unwinder. Without one, libgcc_s is as good.
fn unwinder() -> Option<String> {
    let output = Command::new(compiler()?)
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let path = String::from_utf8(output.ok()?.stdout).ok()?;
    let (dir, _) = path.trim().rsplit_once('/')?;
    Some(dir.to_owned())
}

/// The compiler that links us. If none is named it is this machine's, which has no unwinder for another.
fn compiler() -> Option<OsString> {
    let named = env::var_os("RUSTC_LINKER");
    let is_for_this_machine = env::var_os("TARGET") == env::var_os("HOST");
    named.or_else(|| is_for_this_machine.then(|| "cc".into()))
}
