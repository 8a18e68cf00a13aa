//! What this library has allocated, for `beamtalk_image:info/0`.

use std::alloc::System;

#[global_allocator]
static ALLOCATED: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Bytes that the library holds outside the BEAM's own memory.
pub(crate) fn allocated() -> usize {
    ALLOCATED.allocated()
}

#[rustler::nif(name = "allocated")]
fn allocated_nif() -> u64 {
    allocated() as u64
}
