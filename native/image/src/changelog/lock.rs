//! One writer per workspace.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Error, LockOwner, Step};
use super::io::{Disk, DiskLock, LockOutcome};

#[derive(Serialize, Deserialize, Default)]
struct Note {
    pid: Option<u32>,
    host: Option<String>,
    since: Option<u64>,
}

/// Takes the workspace's lock or says who has it.
pub(crate) fn take(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<Box<dyn DiskLock>, Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let note = Note { pid: Some(std::process::id()), host: Some(host), since: Some(disk.now_ms()) };
    let note = serde_json::to_string(&note).unwrap_or_default() + "\n";
    match disk.lock(path, &note) {
        Ok(LockOutcome::Held(lock)) => Ok(lock),
        Ok(LockOutcome::Taken(text)) => {
            let note: Note = serde_json::from_str(&text).unwrap_or_default();
            let owner = LockOwner { pid: note.pid, host: note.host, since_ms: note.since };
            Err(Error::Locked { dir: dir.to_owned(), owner })
        }
        Err(error) => Err(Error::io(Step::Lock, path, &error)),
    }
}
