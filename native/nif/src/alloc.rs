//! What this library has allocated, for `beamtalk_image:info/0`. Persistent maps live on small allocations, which mimalloc
//! serves faster than the C library does.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATED: cap::Cap<MiMalloc> = cap::Cap::new(MiMalloc, usize::MAX);

/// Bytes that the library holds outside the BEAM's own memory.
pub(crate) fn allocated() -> usize {
    ALLOCATED.allocated()
}

#[rustler::nif(name = "allocated")]
fn allocated_nif() -> u64 {
    allocated() as u64
}
