//! A disk that ends the process at a named point, for the crash tests of the ChangeLog. Reached only when the
//! application is configured with a point by name.

use std::sync::Arc;

use beamtalk_image::changelog::{FailPoint, RealDisk};

/// A real disk that kills this process, as `kill -9` would, when the writer reaches the point for the n-th time:
/// `"inside_line:3"`. `None` for a name or number that is none.
pub(crate) fn disk(spec: &str) -> Option<RealDisk> {
    let (name, count) = spec.split_once(':').unwrap_or((spec, "1"));
    let point = FailPoint::from_name(name)?;
    let left = std::sync::atomic::AtomicUsize::new(count.parse().ok()?);
    Some(RealDisk::with_hook(Arc::new(move |reached| {
        if reached == point && left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            // No unwinding, no exit handlers: what is not on disk by now is lost, as in a crash.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
        }
    })))
}
