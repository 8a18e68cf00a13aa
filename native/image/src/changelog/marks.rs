//! The high-water marks: numbers that must not be given twice, whatever becomes of the log.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::entry::MAX_NUMBER;
use super::error::{Error, Step};
use super::io::Disk;

/// How many numbers are set aside at a time.
pub(crate) const RESERVE: u64 = 1024;
const LIMIT: u64 = 4096;
const VERSION: u32 = 1;

/// Content of `marks.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// Version of this file's form.
    pub(crate) version: u32,
    /// The last epoch that was begun.
    pub(crate) epoch: u64,
    /// The next number when the file was written; counts together with a log that could be read.
    pub(crate) next_seq: u64,
    /// No number from here on was given. Counts where the log cannot be read.
    pub(crate) reserved: u64,
}

impl Marks {
    pub(crate) fn new(epoch: u64, next_seq: u64) -> Self {
        Self { version: VERSION, epoch, next_seq, reserved: next_seq.saturating_add(RESERVE) }
    }

    /// `None` if there is no file; a damaged one is an error.
    pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, Error> {
        let bytes = match disk.read(path, LIMIT) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(Step::WriteMarks, path, &error)),
        };
        let damaged =
            |why: String| Error::io(Step::WriteMarks, path, &io::Error::new(io::ErrorKind::InvalidData, why));
        let marks: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if marks.epoch > MAX_NUMBER || marks.next_seq > MAX_NUMBER || marks.reserved > MAX_NUMBER + RESERVE {
            return Err(damaged("number out of range".to_owned()));
        }
        Ok(Some(marks))
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
