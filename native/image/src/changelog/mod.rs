//! The ChangeLog: the durable record of live changes, what differs from disk and how to undo it.
//!
//! A log is one file of JSON lines, a folder of body files beside it, and archives of what was rotated away. One
//! writer at a time appends; readers load an immutable [`View`] and never wait. Names are text here, as they are on
//! disk. What a caller must log comes back as a value ([`OpenReport`], [`Appended`]); the store itself logs nothing.
//! Questions that only the host can answer (where a method stands in a source file) are handed out and taken back
//! as values ([`RevertStep`], [`DeltaStep`]).

mod archive;
pub mod bodies;
mod delta;
mod entry;
mod error;
mod io;
mod layout;
mod lock;
mod log;
mod marks;
mod orphans;
mod revert;
mod runs;
mod scan;
mod seeds;
mod view;

#[cfg(test)]
mod model_test;

pub use delta::{Delta, DeltaStep, Listed, ListedStep, delta};
pub use entry::{AuthorKind, Entry, Intent, Kind, NewEntry, Side, Span, Target, UnknownWord};
pub use error::{Error, IoFault, LockOwner, Step};
pub use io::{Disk, DiskFile, DiskLock, FailHook, FailPoint, FileId, LockOutcome, RealDisk};
pub use layout::{body_equal_ignoring_layout, normalise};
pub use log::{Appended, ChangeLog, Durability, OpenReport, Repair, Rotation, Settings};
pub use revert::{RevertStep, RevertTarget, SpanAnswer, after_span, decide};
pub use runs::{Attached, Runs};
pub use scan::SkippedLine;
pub use view::{Row, View, WHOLE_CLASS};
