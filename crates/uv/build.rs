//! Gives the shared library the name that programs look for, the order of its code, and an unwinder
//! of its own: finding and loading libgcc_s would cost every process that starts more than all the
//! rest of us does.
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=layout.ld");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libuv.so.1");
    // Some linkers bind all calls at the start unless they are told not to.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,lazy");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{}", layout());
    // Zig brings an unwinder, and links it into what it makes.
    if let Some(dir) = unwinder().filter(|_| !zig_links()) {
        println!("cargo:rustc-link-search=native={dir}");
        println!("cargo:rustc-link-lib=static:-bundle,+verbatim=libgcc_eh.a");
        // It comes before the standard library's code, which needs it, unless all is one object.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-u,_Unwind_Backtrace");
    }
}

/// Whether Zig's compiler links us, by which a library is made that needs only an old glibc. Only the
/// name of its file tells: any directory may be called so.
fn zig_links() -> bool {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_default();
    let name = Path::new(&linker).file_name().unwrap_or_default();
    name.to_string_lossy().contains("zig")
}

/// The script for the linker, with a section named in it behind which the code belongs. What Zig
/// links has no `.init`, and its code comes before the thread-local data.
fn layout() -> String {
    let script = fs::read_to_string("layout.ld").expect("the script lies beside build.rs");
    let place = match zig_links() {
        true => "INSERT BEFORE .tdata;",
        false => "INSERT AFTER .init;",
    };
    let out = env::var_os("OUT_DIR").expect("Cargo says where to write");
    let path = Path::new(&out).join("layout.ld");
    fs::write(&path, script.replace("INSERT AFTER .init;", place)).expect("can be written");
    path.display().to_string()
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
