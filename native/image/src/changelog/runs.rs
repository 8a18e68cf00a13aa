//! Runs of workspaces: as long as the process lives and nobody ended the run, attaching again continues it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::error::Error;
use super::io::Disk;
use super::log::{ChangeLog, OpenReport, Settings};

/// The open ChangeLogs of a process, by folder; the one without a folder lives in memory.
#[derive(Default)]
pub struct Runs {
    open: Mutex<HashMap<Option<PathBuf>, Arc<ChangeLog>>>,
}

/// An attached ChangeLog.
#[derive(Debug)]
pub struct Attached {
    /// The log.
    pub log: Arc<ChangeLog>,
    /// What opening found; `None` if the run was under way already, in which case the settings it was opened with
    /// stay.
    pub report: Option<OpenReport>,
}

impl Runs {
    /// No run at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues the run of that folder, or begins one.
    ///
    /// # Errors
    /// As [`ChangeLog::open`].
    pub fn attach(&self, settings: Settings, disk: Arc<dyn Disk>) -> Result<Attached, Error> {
        let mut open = self.open.lock();
        if let Some(log) = open.get(&settings.dir) {
            return Ok(Attached { log: Arc::clone(log), report: None });
        }
        let key = settings.dir.clone();
        let (log, report) = ChangeLog::open_on(settings, disk)?;
        let log = Arc::new(log);
        open.insert(key, Arc::clone(&log));
        Ok(Attached { log, report: Some(report) })
    }

    /// The run of that folder, if there is one.
    #[must_use]
    pub fn get(&self, dir: Option<&Path>) -> Option<Arc<ChangeLog>> {
        self.open.lock().get(&dir.map(Path::to_owned)).map(Arc::clone)
    }

    /// Ends the run of that folder in good order; the next attach begins another epoch. Answers whether there was one.
    pub fn end(&self, dir: Option<&Path>) -> bool {
        let ended = self.open.lock().remove(&dir.map(Path::to_owned));
        if let Some(log) = &ended {
            log.close();
        }
        ended.is_some()
    }
}
