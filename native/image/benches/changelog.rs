//! Placeholder until the store exists.
fn main() {}
