//! A disk that ends the process, or waits, at a named point, for the crash tests of the ChangeLog. Reached only when the
//! application is configured with a point by name.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use beamtalk_image::changelog::{FailPoint, RealDisk};

/// A real disk that does something when the writer reaches the point for the n-th time. `"inside_line:3"` kills this
/// process as `kill -9` would: with no unwinding and no exit handlers, and unlike an abort without a core dump for each of
/// hundreds of runs. `"inside_line:3:/some/pipe"` waits until somebody opens that pipe to write. `None` for a name or number
/// that is none.
pub(crate) fn disk(spec: &str) -> Option<RealDisk> {
    let mut parts = spec.splitn(3, ':');
    let point = FailPoint::from_name(parts.next()?)?;
    let count: usize = parts.next().unwrap_or("1").parse().ok()?;
    let pipe = parts.next().map(PathBuf::from);
    let left = AtomicUsize::new(count);
    Some(RealDisk::with_hook(Arc::new(move |reached| {
        if reached != point || left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        match &pipe {
            // A pipe that cannot be opened keeps nobody waiting.
            Some(pipe) => drop(std::fs::File::open(pipe)),
            None => {
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            }
        }
    })))
}
