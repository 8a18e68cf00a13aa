//! How long a writer may wait for another one.

use parking_lot::{Mutex, MutexGuard};

/// What a writer does while another one is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Waits: for threads that may block.
    Wait,
    /// Gives up at once with [`Busy`]: for threads that must not block.
    Refuse,
}

/// Another writer was at work. Nothing was changed; the same call with [`Patience::Wait`] goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl Patience {
    pub(crate) fn lock(self, writer: &Mutex<()>) -> Result<MutexGuard<'_, ()>, Busy> {
        match self {
            Self::Wait => Ok(writer.lock()),
            Self::Refuse => writer.try_lock().ok_or(Busy),
        }
    }
}
