//! Link flags of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target == "linux" || target == "freebsd" {
        // The stores are statics of this library: purging the Erlang module must not unmap them.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
