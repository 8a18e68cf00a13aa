//! The disk as the ChangeLog sees it, so that a test can stand in for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

macro_rules! fail_points {
    ($($variant:ident, $name:literal, $doc:literal;)*) => {
        /// A named place in a write. The store reports each one to [`Disk::reached`] before it goes on, so that a
        /// test can enumerate them and end the process there.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FailPoint { $(#[doc = $doc] $variant,)* }

        impl FailPoint {
            /// All points, in the order in which the code has them.
            pub const ALL: &'static [FailPoint] = &[$(FailPoint::$variant,)*];

            /// The point's name in lower case with underscores.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The point of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

fail_points! {
    BeforeBody, "before_body", "An append is about to write its first body file.";
    InsideBody, "inside_body", "Half of a body's bytes are written.";
    BetweenBodyAndLine, "between_body_and_line", "All bodies are written, the line is not.";
    InsideLine, "inside_line", "Half of the line's bytes are written.";
    AfterLine, "after_line", "The line is written, the caller does not know yet.";
    RotationPlanned, "rotation_planned", "The plan of a rotation is on disk, no archive is.";
    RotationSegment, "rotation_segment", "The archive of lines is written, that of bodies is not.";
    RotationBodies, "rotation_bodies", "Both archives are written, the log still has the lines.";
    InsideRewrite, "inside_rewrite", "Half of the new log's lines are in the temporary file.";
    BeforeRename, "before_rename", "The new log is complete under its temporary name.";
    AfterRename, "after_rename", "The new log is in place, readers still see the old state.";
    RotationPruning, "rotation_pruning", "Some archived body files are deleted, others are not.";
    RotationDone, "rotation_done", "All archived body files are deleted, the plan still stands.";
    BeforeMarks, "before_marks", "The high-water marks are about to be replaced.";
    BeforeClear, "before_clear", "The marks are safe, the log is about to be emptied.";
}

/// Called with every fail point that is reached.
pub type FailHook = Arc<dyn Fn(FailPoint) + Send + Sync>;

/// What tells one file from another that took its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change, nanoseconds since 1970.
    pub modified_ns: i128,
}

impl FileId {
    /// Whether both are the same file, whatever its content.
    #[must_use]
    pub fn same_file(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }

    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }
}

/// An open file that grows at its end.
pub trait DiskFile: Send {
    /// Writes all bytes at the end of the file; a failure may leave some of them there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Fills as much of `buffer` as there is from `offset` on; answers how much that was.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// The file's length.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file to that length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Waits until content and length are on stable storage.
    fn sync(&mut self) -> io::Result<()>;
    /// Which file this is.
    fn id(&self) -> io::Result<FileId>;
}

/// A lock that is held as long as the value lives.
pub trait DiskLock: Send {}

/// The outcome of [`Disk::lock`].
pub enum LockOutcome {
    /// The lock is ours.
    Held(Box<dyn DiskLock>),
    /// Somebody else has it; the text is what they wrote into the file.
    Taken(String),
}

/// The operations that the store needs. No method follows a symbolic link in the last component, except
/// [`Disk::read_source`].
pub trait Disk: Send + Sync {
    /// Makes a folder and those above it; an existing folder is fine, a link in its place is not.
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens a file to read and append, making an empty one if there is none. Anything but a regular file is refused.
    fn open_log(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing regular file to read.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a new file; an existing one of that name is an error.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Reads a regular file of at most `limit` bytes whole.
    fn read(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)>;
    /// As [`Disk::read`], but a link to a regular file is followed.
    fn read_source(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)>;
    /// Which file bears the name now; `None` if there is none.
    fn id(&self, path: &Path) -> io::Result<Option<FileId>>;
    /// Whether the name is a folder's own, not a link to one; `None` if there is nothing of that name.
    fn is_dir(&self, path: &Path) -> io::Result<Option<bool>>;
    /// The path with all links followed.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// Gives `from` the name `to`, replacing a file there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; a missing one is fine.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in the folder are on stable storage.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, in no order; those that are no text are left out.
    fn names(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Tries to take the lock without waiting; `note` is left in the file for others to read.
    fn lock(&self, path: &Path, note: &str) -> io::Result<LockOutcome>;
    /// Milliseconds since 1970 by the wall clock.
    fn now_ms(&self) -> u64;
    /// The store has come to this point.
    fn reached(&self, _point: FailPoint) {}
    /// Whether writes are to be made in halves, so that the points inside them exist.
    fn splits_writes(&self) -> bool {
        false
    }
}

/// The file system.
#[derive(Clone, Default)]
pub struct RealDisk {
    hook: Option<FailHook>,
}

impl std::fmt::Debug for RealDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RealDisk").field("hook", &self.hook.is_some()).finish()
    }
}

impl RealDisk {
    /// The file system, undisturbed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The file system with `hook` called at every fail point. Lines and bodies are then written in two halves.
    #[must_use]
    pub fn with_hook(hook: FailHook) -> Self {
        Self { hook: Some(hook) }
    }

    /// The file system of a process that ends itself (abort) at a fail point. The text is a point's name, or the
    /// name, a colon and how many times to pass it first; `None` if it is neither.
    #[must_use]
    pub fn aborting_at(text: &str) -> Option<Self> {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (name, passes) = match text.split_once(':') {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (text, 0),
        };
        let wanted = FailPoint::from_name(name)?;
        let left = AtomicU64::new(passes);
        Some(Self::with_hook(Arc::new(move |point| {
            if point == wanted
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err()
            {
                std::process::abort();
            }
        })))
    }
}

struct RealFile(File);

struct RealLock(#[expect(dead_code, reason = "closing the file gives the lock back")] File);

impl DiskLock for RealLock {}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Never waits on a pipe, never becomes a process's terminal, never follows a link unless asked.
fn flags(follow: bool) -> i32 {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    i32::try_from(flags.bits()).unwrap_or(0)
}

fn read_regular(path: &Path, limit: u64, follow: bool) -> io::Result<(Vec<u8>, FileId)> {
    let file = OpenOptions::new().read(true).custom_flags(flags(follow)).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_regular());
    }
    if metadata.len() > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than the store reads"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // The file may grow between the two calls, and some file systems give no length.
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than the store reads"));
    }
    Ok((bytes, FileId::of(&metadata)))
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(FileId::of(&self.0.metadata()?))
    }
}

impl Disk for RealDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        match self.is_dir(path)? {
            Some(true) => Ok(()),
            Some(false) => Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder")),
            None => std::fs::create_dir_all(path),
        }
    }

    fn open_log(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file =
            OpenOptions::new().read(true).append(true).create(true).custom_flags(flags(false)).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        Ok(Box::new(RealFile(file)))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).custom_flags(flags(false)).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        Ok(Box::new(RealFile(file)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        read_regular(path, limit, false)
    }

    fn read_source(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        // Opening a device can act on it, so the kind is asked first; the open itself is checked again.
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            return Err(not_regular());
        }
        read_regular(path, limit, true)
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(FileId::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_dir(&self, path: &Path) -> io::Result<Option<bool>> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(metadata.is_dir())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for item in std::fs::read_dir(path)? {
            if let Ok(name) = item?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, path: &Path, note: &str) -> io::Result<LockOutcome> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags(false))
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        match file.try_lock() {
            Ok(()) => {
                // The lock is the system's; the note only tells people who has it.
                file.set_len(0)?;
                file.write_all_at(note.as_bytes(), 0)?;
                Ok(LockOutcome::Held(Box::new(RealLock(file))))
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(4096).read_to_string(&mut text);
                Ok(LockOutcome::Taken(text))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn now_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn reached(&self, point: FailPoint) {
        if let Some(hook) = &self.hook {
            hook(point);
        }
    }

    fn splits_writes(&self) -> bool {
        self.hook.is_some()
    }
}

/// Writes all bytes; where the disk splits writes, in two halves with the point between them.
pub(crate) fn append_split(
    disk: &dyn Disk,
    file: &mut dyn DiskFile,
    bytes: &[u8],
    point: FailPoint,
) -> io::Result<()> {
    if !disk.splits_writes() {
        return file.append(bytes);
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.append(first)?;
    disk.reached(point);
    file.append(second)
}

/// A [`DiskFile`] as a [`Write`].
pub(crate) struct Appender<'a>(pub(crate) &'a mut dyn DiskFile);

impl Write for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A [`DiskFile`] as a [`Read`].
pub(crate) struct FileReader<'a> {
    pub(crate) file: &'a dyn DiskFile,
    pub(crate) offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}
