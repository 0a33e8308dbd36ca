//! The original library, which is loaded at run time, must find the stand-in for `getaddrinfo` in
//! the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol=getaddrinfo");
}
