//! What can go wrong, one variant a remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A disk operation that failed: which step, on what, and what the system said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoFault {
    /// The step that was being taken.
    pub step: Step,
    /// The path it was taken on.
    pub path: PathBuf,
    /// The kind of the system's error.
    pub kind: io::ErrorKind,
    /// The system's error number, where there is one.
    pub code: Option<i32>,
    /// The system's words.
    pub message: String,
}

impl IoFault {
    pub(crate) fn new(step: Step, path: impl Into<PathBuf>, error: &io::Error) -> Self {
        Self {
            step,
            path: path.into(),
            kind: error.kind(),
            code: error.raw_os_error(),
            message: error.to_string(),
        }
    }
}

impl IoFault {
    /// The system's error as POSIX calls it, in lower case (`enoent`); `einval` for errors of the store's own making,
    /// `unknown` for a number without a name here.
    #[must_use]
    pub fn posix(&self) -> &'static str {
        use rustix::io::Errno;
        let Some(code) = self.code else { return "einval" };
        match Errno::from_raw_os_error(code) {
            Errno::NOENT => "enoent",
            Errno::ACCESS => "eacces",
            Errno::PERM => "eperm",
            Errno::ISDIR => "eisdir",
            Errno::NOTDIR => "enotdir",
            Errno::EXIST => "eexist",
            Errno::NOSPC => "enospc",
            Errno::DQUOT => "edquot",
            Errno::FBIG => "efbig",
            Errno::ROFS => "erofs",
            Errno::IO => "eio",
            Errno::LOOP => "eloop",
            Errno::NAMETOOLONG => "enametoolong",
            Errno::MFILE => "emfile",
            Errno::NFILE => "enfile",
            Errno::NOMEM => "enomem",
            Errno::BUSY => "ebusy",
            Errno::NOTEMPTY => "enotempty",
            Errno::NXIO => "enxio",
            Errno::INVAL => "einval",
            _ => "unknown",
        }
    }
}

impl fmt::Display for IoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.step.name(), self.path.display(), self.message)
    }
}

/// The step of a write that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Making a folder of the workspace.
    EnsurePath,
    /// Taking the lock file.
    Lock,
    /// Opening or reading the log.
    ReadLog,
    /// Mending the log's tail.
    RepairLog,
    /// Writing a body file.
    WriteBody,
    /// Reading a body file.
    ReadBody,
    /// Reading a source file of the project.
    ReadSource,
    /// Writing a line to the log.
    WriteLog,
    /// Writing the log anew.
    Rewrite,
    /// Putting a new file in an old one's place.
    Rename,
    /// Writing the high-water marks.
    WriteMarks,
    /// Writing an archive.
    Archive,
    /// Emptying the log.
    Clear,
}

impl Step {
    /// The step as a lower-case word, for reasons that cross a boundary.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EnsurePath => "ensure_path",
            Self::Lock => "lock",
            Self::ReadLog => "read_log",
            Self::RepairLog => "repair_log",
            Self::WriteBody => "write",
            Self::ReadBody => "read_body",
            Self::ReadSource => "read_source",
            Self::WriteLog => "write_log",
            Self::Rewrite => "rewrite",
            Self::Rename => "rename",
            Self::WriteMarks => "write_marks",
            Self::Archive => "archive",
            Self::Clear => "clear",
        }
    }
}

/// Who holds a workspace's lock, as far as the lock file tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockOwner {
    /// Operating-system process id.
    pub pid: Option<u32>,
    /// Host name.
    pub host: Option<String>,
    /// When the lock was taken, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// Every error of the ChangeLog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Another ChangeLog, in this process or another one, has the workspace open. Close that one first; nothing
    /// was read or written.
    Locked {
        /// The workspace's folder.
        dir: PathBuf,
        /// Who has it.
        owner: LockOwner,
    },
    /// A disk operation failed. Nothing became visible, no number was used, the same call may be made again.
    Io(IoFault),
    /// The log's path no longer names the file this ChangeLog writes: somebody put another file there. Nothing was
    /// written; end this run and open the workspace anew to see the other file.
    LogReplaced {
        /// The log's path.
        path: PathBuf,
    },
    /// A body is larger than the store reads back ([`crate::changelog::Settings::max_body_bytes`]). Nothing was written.
    BodyTooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest size accepted.
        limit: u64,
    },
    /// A name cannot stand in the log (the field says which). Nothing was written.
    BadField {
        /// The field's name in the log.
        field: &'static str,
        /// Why it was refused.
        why: &'static str,
    },
    /// A setting is out of its range; nothing was opened.
    BadSetting {
        /// The setting's name.
        setting: &'static str,
        /// The range it must lie in.
        expected: &'static str,
    },
    /// The entry never had a new text.
    NoSource,
    /// The entry never had an earlier text.
    NoPrevSource,
    /// The log lives in memory and keeps no bodies.
    NoWorkspace,
    /// The entry's reference is no plain name inside `sources/`. It is not followed.
    UnsafeRef {
        /// The reference as recorded.
        reference: String,
    },
    /// The path is no regular file (a folder, pipe, device or link), or leads out of its folder. It was not read.
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than the store reads. It was not read.
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The largest size read.
        limit: u64,
    },
    /// The ChangeLog was closed.
    Closed,
}

impl Error {
    pub(crate) fn io(step: Step, path: impl Into<PathBuf>, error: &io::Error) -> Self {
        Self::Io(IoFault::new(step, path, error))
    }

    /// The error as one lower-case word; [`Error::Io`] gives its step.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "locked",
            Self::Io(fault) => fault.step.name(),
            Self::LogReplaced { .. } => "log_replaced",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::BadField { .. } => "bad_field",
            Self::BadSetting { .. } => "bad_setting",
            Self::NoSource => "no_source",
            Self::NoPrevSource => "no_prev_source",
            Self::NoWorkspace => "no_workspace",
            Self::UnsafeRef { .. } => "unsafe_ref",
            Self::NotRegular { .. } => "not_regular",
            Self::TooLarge { .. } => "too_large",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { dir, owner } => {
                write!(f, "{} is open elsewhere", dir.display())?;
                if let Some(pid) = owner.pid {
                    write!(f, ": process {pid}")?;
                }
                if let Some(host) = &owner.host {
                    write!(f, " on {host}")?;
                }
                Ok(())
            }
            Self::Io(fault) => fault.fmt(f),
            Self::LogReplaced { path } => write!(f, "{} is another file now", path.display()),
            Self::BodyTooLarge { size, limit } => {
                write!(f, "a body of {size} bytes, at most {limit} are kept")
            }
            Self::BadField { field, why } => write!(f, "{field}: {why}"),
            Self::BadSetting { setting, expected } => write!(f, "setting {setting}: expected {expected}"),
            Self::NoSource => f.write_str("no new text was recorded"),
            Self::NoPrevSource => f.write_str("no earlier text was recorded"),
            Self::NoWorkspace => f.write_str("a log in memory keeps no texts"),
            Self::UnsafeRef { reference } => write!(f, "{reference:?} is no plain name inside sources/"),
            Self::NotRegular { path } => write!(f, "{} is no regular file of its folder", path.display()),
            Self::TooLarge { path, limit } => {
                write!(f, "{} has more than the {limit} bytes that are read", path.display())
            }
            Self::Closed => f.write_str("the ChangeLog was closed"),
        }
    }
}

impl std::error::Error for Error {}
