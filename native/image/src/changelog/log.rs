//! The log itself: one writer, any number of readers.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::archive::{self, Plan};
use super::bodies;
use super::delta::{self, DeltaStep, Listed, Remembered, Texts};
use super::entry::{Entry, MAX_NUMBER, NewEntry, Side, UnknownWord, line_with_flushed};
use super::error::{Error, Step};
use super::io::{Disk, DiskFile, DiskLock, FailPoint, FileId, RealDisk, append_split};
use super::lock;
use super::marks::Marks;
use super::orphans;
use super::revert::{self, RevertStep};
use super::scan::{self, Line, Raw, Scan, SkippedLine, Tail};
use super::seeds::{self, Seed};
use super::view::{Row, View};

/// How far a write has to get before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Durability {
    /// To the operating system: survives the end of the process, not the loss of power.
    Os,
    /// To stable storage: bodies, then the line, each before the append returns.
    Fsync,
}

/// How a log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The workspace's `changes` folder; `None` keeps the log in memory.
    pub dir: Option<PathBuf>,
    /// The most entries that stay in the live log (durable mode only). At least 1.
    pub bound: usize,
    /// How far below the bound a rotation goes, so that the next ones need none. Below the bound.
    pub slack: usize,
    /// How far a write has to get.
    pub durability: Durability,
    /// The largest source file of the project that is read.
    pub max_source_bytes: u64,
    /// The largest body that is written or read.
    pub max_body_bytes: u64,
    /// The longest line that is taken for an entry.
    pub max_line_bytes: u64,
    /// Whether loaded entries are compared with the disk.
    pub orphan_checks: bool,
    /// The project: relative source files are below it, and a path below it must not lead out of it by a link.
    pub source_root: Option<PathBuf>,
}

impl Settings {
    /// The usual settings for a folder.
    #[must_use]
    pub fn durable(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..Self::memory() }
    }

    /// The usual settings without a folder.
    #[must_use]
    pub fn memory() -> Self {
        Self {
            dir: None,
            bound: 1000,
            slack: 100,
            durability: Durability::Os,
            max_source_bytes: 16 << 20,
            max_body_bytes: 64 << 20,
            max_line_bytes: 1 << 20,
            orphan_checks: true,
            source_root: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.bound == 0 {
            return Err(Error::BadSetting { setting: "bound", expected: "1 or more" });
        }
        if self.slack >= self.bound {
            return Err(Error::BadSetting { setting: "slack", expected: "less than the bound" });
        }
        if self.max_line_bytes < 4096 {
            return Err(Error::BadSetting { setting: "max_line_bytes", expected: "4096 or more" });
        }
        Ok(())
    }
}

/// Something that was mended on the way. Reported once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The last line was whole but for its newline, which it has now.
    NewlineAdded {
        /// Where the line ends.
        offset: u64,
    },
    /// The file ended in bytes that are no line. They were moved to the named file (none if all were zero).
    TailCut {
        /// Where they began, which is the file's end now.
        offset: u64,
        /// How many there were.
        length: u64,
        /// How many of these were zeros at the very end.
        zeros: u64,
        /// The file that keeps the others.
        kept_as: Option<PathBuf>,
    },
    /// A rotation that had not come to its point of no return was taken back.
    RotationUndone {
        /// The archive of lines that was removed.
        segment: String,
    },
    /// A rotation past its point of no return was finished.
    RotationFinished {
        /// Its archive of lines.
        segment: String,
    },
    /// The log was gone or shorter than it had been; it was written anew from memory.
    LogRestored,
    /// Somebody else wrote to the end of the log. The bytes were left in place; they are read when the log is next
    /// opened.
    ForeignBytes {
        /// Where they began.
        offset: u64,
        /// How many there were.
        length: u64,
    },
    /// A log that could not be read was moved there instead of being replaced.
    UnreadLogKept {
        /// Its new place.
        kept_as: PathBuf,
    },
}

/// What opening found. A caller logs a warning for each repair, skipped line, unknown word and problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The epoch that began.
    pub epoch: u64,
    /// How many entries were loaded.
    pub entries: usize,
    /// What was mended.
    pub repairs: Vec<Repair>,
    /// Lines that are no entries, at most the first thousand.
    pub skipped: Vec<SkippedLine>,
    /// How many there are.
    pub skipped_count: u64,
    /// Words that this version does not know, at most the first thousand.
    pub unknown: Vec<UnknownWord>,
    /// The log exists and could not be read: it counts as empty.
    pub unreadable: Option<Error>,
    /// Steps that failed and are tried again by the next write.
    pub problems: Vec<Error>,
    /// The rotation that was due.
    pub rotation: Option<Rotation>,
}

/// How a rotation went. A failed one leaves log and memory as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rotation {
    /// Entries were archived.
    Done {
        /// How many.
        moved: usize,
        /// The archive of their lines, a name in `archive/`.
        segment: String,
        /// The first body file that could not be deleted; it is harmless.
        left_over: Option<Error>,
    },
    /// A step failed; an error is to be logged. The next append tries again.
    Failed(Error),
}

/// An append that succeeded, and what happened on the side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The new entry.
    pub entry: Arc<Entry>,
    /// What was mended before it was written.
    pub repairs: Vec<Repair>,
    /// The rotation that it set off.
    pub rotation: Option<Rotation>,
}

/// The record of live changes. Readers take a [`View`] and never wait; writers wait for each other.
pub struct ChangeLog {
    settings: Settings,
    disk: Arc<dyn Disk>,
    paths: Option<Paths>,
    view: ArcSwap<View>,
    compared: Remembered,
    writer: Mutex<Writer>,
}

impl std::fmt::Debug for ChangeLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = self.view.load();
        f.debug_struct("ChangeLog")
            .field("dir", &self.settings.dir)
            .field("epoch", &view.epoch())
            .field("entries", &view.len())
            .finish_non_exhaustive()
    }
}

struct Paths {
    dir: PathBuf,
    log: PathBuf,
    log_tmp: PathBuf,
    sources: PathBuf,
    archive: PathBuf,
    repairs: PathBuf,
    marks: PathBuf,
    marks_tmp: PathBuf,
    plan: PathBuf,
    plan_tmp: PathBuf,
    lock: PathBuf,
}

impl Paths {
    fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            log: dir.join("changes.jsonl"),
            log_tmp: dir.join("changes.jsonl.tmp"),
            sources: dir.join("sources"),
            archive: dir.join("archive"),
            repairs: dir.join("repairs"),
            marks: dir.join("marks.json"),
            marks_tmp: dir.join("marks.json.tmp"),
            plan: dir.join("rotation.json"),
            plan_tmp: dir.join("rotation.json.tmp"),
            lock: dir.join("changes.lock"),
        }
    }
}

struct OpenFile {
    file: Box<dyn DiskFile>,
    id: FileId,
    /// Where our last whole line ends.
    length: u64,
    /// A failed write may have left bytes beyond `length`.
    dirty: bool,
    /// Another file took this one's place without it being certain that it stays there. What counts is this one.
    stale: bool,
}

struct Writer {
    closed: bool,
    epoch: u64,
    next_seq: u64,
    lock: Option<Box<dyn DiskLock>>,
    file: Option<OpenFile>,
    lines: Vec<Line>,
    /// What the marks on disk set aside; 0 while they still have to be written.
    reserved: u64,
    tail: Option<Tail>,
    /// The log has content that could not be read.
    unread: bool,
    /// The log file as it was read, until it is open for writing.
    seen: Option<FileId>,
    /// A rotation's plan may be on disk.
    plan: Option<Plan>,
    rotations: u64,
}

impl ChangeLog {
    /// Opens the log on the file system. Reads it, mends what a crash left, begins a new epoch and rotates if it is
    /// over its bound. Linear in the log, and in the source files that its entries name.
    ///
    /// A folder that cannot be written is no error: the log is read, the report lists the problems, and the next
    /// write tries again.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::BadSetting`].
    pub fn open(settings: Settings) -> Result<(Self, OpenReport), Error> {
        Self::open_on(settings, Arc::new(RealDisk::new()))
    }

    /// As [`ChangeLog::open`], on another disk.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::BadSetting`].
    pub fn open_on(settings: Settings, disk: Arc<dyn Disk>) -> Result<(Self, OpenReport), Error> {
        settings.check()?;
        let paths = settings.dir.as_deref().map(Paths::new);
        let log = Self {
            settings,
            disk,
            paths,
            view: ArcSwap::from_pointee(View::new(0, imbl::Vector::new())),
            compared: Remembered::default(),
            writer: Mutex::new(Writer {
                closed: false,
                epoch: 0,
                next_seq: 0,
                lock: None,
                file: None,
                lines: Vec::new(),
                reserved: 0,
                tail: None,
                unread: false,
                seen: None,
                plan: None,
                rotations: 0,
            }),
        };
        let mut report = OpenReport::default();
        if let Some(paths) = &log.paths {
            log.load(paths, &mut log.writer.lock(), &mut report)?;
        }
        Ok((log, report))
    }

    fn load(&self, paths: &Paths, writer: &mut Writer, report: &mut OpenReport) -> Result<(), Error> {
        let disk = &*self.disk;
        if let Err(error) = disk.make_dir(&paths.dir) {
            report.problems.push(Error::io(Step::EnsurePath, &paths.dir, &error));
        } else {
            match lock::take(disk, &paths.dir, &paths.lock) {
                Ok(lock) => writer.lock = Some(lock),
                Err(error @ Error::Locked { .. }) => return Err(error),
                Err(error) => report.problems.push(error),
            }
        }
        let marks = Marks::read(disk, &paths.marks).unwrap_or_else(|error| {
            report.problems.push(error);
            None
        });
        let mut scan = match disk.open_read(&paths.log) {
            Ok(file) => {
                let read = scan::scan(&*file, self.settings.max_line_bytes)
                    .and_then(|scan| Ok((scan, FileId { size: 0, ..file.id()? })));
                match read {
                    Ok((scan, id)) => {
                        writer.seen = Some(FileId { size: scan.length, ..id });
                        scan
                    }
                    Err(error) => {
                        report.unreadable = Some(Error::io(Step::ReadLog, &paths.log, &error));
                        Scan::default()
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Scan::default(),
            Err(error) => {
                report.unreadable =
                    Some(bodies::read_error(Step::ReadLog, &paths.log, self.settings.max_line_bytes, &error));
                Scan::default()
            }
        };
        writer.unread = report.unreadable.is_some();
        self.number(paths, writer, &scan, marks);
        report.skipped = std::mem::take(&mut scan.skipped);
        report.skipped_count = scan.skipped_count;
        report.unknown = std::mem::take(&mut scan.unknown);
        for entry in &mut scan.entries {
            entry.prior_epoch = true;
        }
        if self.settings.orphan_checks {
            let look = orphans::Look {
                disk,
                sources: &paths.sources,
                root: self.settings.source_root.as_deref(),
                max_source_bytes: self.settings.max_source_bytes,
                max_body_bytes: self.settings.max_body_bytes,
            };
            orphans::judge(&look, &mut scan.entries);
        }
        report.epoch = writer.epoch;
        report.entries = scan.entries.len();
        writer.lines = scan.lines;
        writer.tail = scan.tail;
        self.publish(View::new(writer.epoch, scan.entries.into_iter().map(Arc::new).collect()));

        match Plan::read(disk, &paths.plan) {
            Ok(plan) => writer.plan = plan,
            Err(error) => report.problems.push(error),
        }
        // Without the lock nothing is written: somebody else may be at work.
        if writer.lock.is_none() {
            return Ok(());
        }
        if self.settings.durability == Durability::Fsync {
            // The folder and those above it may be new; where that cannot be told, nothing is lost by it.
            for folder in paths.dir.ancestors().skip(1).take(4) {
                let _ = disk.sync_dir(folder);
            }
        }
        if let Err(error) = self.write_marks(paths, writer) {
            report.problems.push(error);
        }
        let there = scan.length > 0 && !writer.unread;
        if there && let Err(error) = self.ensure_log(paths, writer, &mut report.repairs) {
            report.problems.push(error);
            return Ok(());
        }
        if let Err(error) = self.settle_plan(paths, writer, &mut report.repairs) {
            report.problems.push(error);
        }
        report.rotation = self.rotate_if_due(paths, writer);
        Ok(())
    }

    /// The epoch and the next number: past everything that the log and the marks know, and past the names of bodies
    /// where lines were lost that may own them.
    fn number(&self, paths: &Paths, writer: &mut Writer, scan: &Scan, marks: Option<Marks>) {
        let last_epoch = scan.entries.iter().map(|entry| entry.epoch).max();
        let after_log = scan.entries.last().map_or(0, |entry| entry.seq + 1);
        writer.epoch = last_epoch.unwrap_or(0).max(marks.map_or(0, |marks| marks.epoch)) + 1;
        if seeds::on(Seed::EpochNotRaised) {
            writer.epoch -= 1;
        }
        writer.next_seq = after_log.max(marks.map_or(0, |marks| marks.next_seq));
        let lost = writer.unread || scan.skipped_count > 0 || matches!(scan.tail, Some(Tail::Torn { .. }));
        if lost {
            let names = self.disk.names(&paths.sources).unwrap_or_default();
            let after_bodies = names
                .iter()
                .filter_map(|name| bodies::seq_of_name(name))
                .filter(|seq| *seq < MAX_NUMBER)
                .max()
                .map_or(0, |seq| seq + 1);
            writer.next_seq = writer.next_seq.max(after_bodies);
        }
        if writer.unread {
            writer.next_seq = writer.next_seq.max(marks.map_or(0, |marks| marks.reserved));
        }
    }

    /// The current state, whole. Never waits.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The settings it was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn publish(&self, view: View) {
        self.view.store(Arc::new(view));
    }

    /// Records a change. Bodies are on disk before the line that names them, the line before the call returns, and
    /// from then on readers see the entry. Constant time, but for rotations and the publishing of the new state
    /// (logarithmic).
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogReplaced`], [`Error::Locked`], [`Error::BodyTooLarge`], [`Error::BadField`],
    /// [`Error::Closed`]. No number is used, nothing becomes visible; the next append starts afresh.
    pub fn append(&self, new: &NewEntry<'_>) -> Result<Appended, Error> {
        new.check()?;
        let limit = self.settings.max_body_bytes;
        for body in [new.source, new.prev_source].into_iter().flatten() {
            let size = body.len() as u64;
            if size > limit {
                return Err(Error::BodyTooLarge { size, limit });
            }
        }
        let mut guard = self.writer.lock();
        let writer = &mut *guard;
        if writer.closed {
            return Err(Error::Closed);
        }
        if writer.next_seq > MAX_NUMBER || writer.epoch > MAX_NUMBER {
            return Err(Error::BadField { field: "seq", why: "all numbers are used" });
        }
        let mut repairs = Vec::new();
        if let Some(paths) = &self.paths {
            self.ensure_log(paths, writer, &mut repairs)?;
            if writer.next_seq >= writer.reserved {
                self.write_marks(paths, writer)?;
            }
        }
        let seq = writer.next_seq;
        let entry = self.new_entry(new, seq, writer.epoch);
        if let Some(paths) = &self.paths {
            let raw = self.write_entry(paths, writer, new, &entry)?;
            writer.lines.push(Line { seq: Some(seq), raw: Raw::Kept(raw) });
        }
        writer.next_seq = seq + 1;
        let entry = Arc::new(entry);
        self.publish(self.view.load().with(Arc::clone(&entry)));
        let rotation = self.paths.as_ref().and_then(|paths| self.rotate_if_due(paths, writer));
        Ok(Appended { entry, repairs, rotation })
    }

    fn new_entry(&self, new: &NewEntry<'_>, seq: u64, epoch: u64) -> Entry {
        let boxed = |text: Option<&str>| text.map(Box::from);
        Entry {
            seq,
            epoch,
            ts: i64::try_from(self.disk.now_ms()).unwrap_or(i64::MAX),
            class: Box::from(new.class),
            selector: boxed(new.selector),
            kind: new.kind,
            stored_side: new.side,
            flushable: new.flushable,
            not_flushable_reason: boxed(new.not_flushable_reason),
            flushed: false,
            intent: new.intent,
            author: Box::from(new.author),
            author_kind: new.author_kind,
            source_file: boxed(new.source_file),
            span: new.span,
            source_ref: new.source.map(|_| bodies::source_name(seq).into()),
            prev_source_ref: new.prev_source.map(|_| bodies::prev_name(seq).into()),
            layer: boxed(new.layer),
            owner: boxed(new.owner),
            orphan: false,
            prior_epoch: false,
        }
    }

    /// Bodies, then the line. Answers the line.
    fn write_entry(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        new: &NewEntry<'_>,
        entry: &Entry,
    ) -> Result<Box<[u8]>, Error> {
        let disk = &*self.disk;
        let sync = self.settings.durability == Durability::Fsync;
        let mut line = entry.to_json();
        if line.len() as u64 > self.settings.max_line_bytes {
            return Err(Error::BadField { field: "line", why: "longer than a line may be" });
        }
        let pairs = [(&entry.source_ref, new.source), (&entry.prev_source_ref, new.prev_source)];
        let bodies: Vec<(&str, &[u8])> =
            pairs.into_iter().filter_map(|(name, body)| name.as_deref().zip(body)).collect();
        let remove = || {
            for (name, _) in &bodies {
                let _ = disk.remove(&paths.sources.join(name));
            }
        };
        if !bodies.is_empty() {
            disk.make_dir(&paths.sources)
                .map_err(|error| Error::io(Step::EnsurePath, &paths.sources, &error))?;
            // No line names them yet. On a full disk even half a body would be in the way.
            self.write_bodies(paths, &bodies, sync).inspect_err(|_| remove())?;
        }
        disk.reached(FailPoint::BetweenBodyAndLine);
        let Some(open) = writer.file.as_mut() else { return Err(Error::Closed) };
        line.push(b'\n');
        let mut outcome = append_split(disk, &mut *open.file, &line, FailPoint::InsideLine);
        if outcome.is_ok() && sync {
            outcome = open.file.sync();
        }
        if let Err(error) = outcome {
            // The bodies go only when it is certain that no line names them.
            open.dirty = open.file.truncate(open.length).is_err();
            if !open.dirty {
                remove();
            }
            return Err(Error::io(Step::WriteLog, &paths.log, &error));
        }
        open.length += line.len() as u64;
        disk.reached(FailPoint::AfterLine);
        line.pop();
        Ok(line.into_boxed_slice())
    }

    fn write_bodies(&self, paths: &Paths, bodies: &[(&str, &[u8])], sync: bool) -> Result<(), Error> {
        let disk = &*self.disk;
        disk.reached(FailPoint::BeforeBody);
        for (name, body) in bodies {
            bodies::write(disk, &paths.sources, name, body, sync)?;
        }
        if sync {
            disk.sync_dir(&paths.sources)
                .map_err(|error| Error::io(Step::WriteBody, &paths.sources, &error))?;
        }
        Ok(())
    }

    /// Makes the log ready to be written: folder, lock, the file itself, its tail. Repeats what failed before.
    fn ensure_log(&self, paths: &Paths, writer: &mut Writer, repairs: &mut Vec<Repair>) -> Result<(), Error> {
        let disk = &*self.disk;
        if writer.lock.is_none() {
            disk.make_dir(&paths.dir).map_err(|error| Error::io(Step::EnsurePath, &paths.dir, &error))?;
            writer.lock = Some(lock::take(disk, &paths.dir, &paths.lock)?);
        }
        let fail = |error: &io::Error| Error::io(Step::WriteLog, &paths.log, error);
        let Some(open) = writer.file.as_mut() else {
            disk.make_dir(&paths.dir).map_err(|error| Error::io(Step::EnsurePath, &paths.dir, &error))?;
            let file = disk.open_log(&paths.log).map_err(|error| fail(&error))?;
            let id = file.id().map_err(|error| fail(&error))?;
            let mut open = OpenFile { file, id, length: id.size, dirty: false, stale: false };
            if self.settings.durability == Durability::Fsync {
                // A folder that cannot be made shows when a body is written.
                let _ = disk.make_dir(&paths.sources);
                disk.sync_dir(&paths.dir).map_err(|error| fail(&error))?;
            }
            match writer.seen {
                Some(seen) if !seen.same_file(&id) || seen.size != id.size => {
                    return Err(Error::LogReplaced { path: paths.log.clone() });
                }
                None if id.size > 0 && !writer.unread => {
                    return Err(Error::LogReplaced { path: paths.log.clone() });
                }
                _ => {}
            }
            if writer.unread && open.length > 0 {
                // Whatever its last line is, ours must not be glued to it.
                let end = open.length;
                open.file.append(b"\n").map_err(|error| {
                    let _ = open.file.truncate(end);
                    fail(&error)
                })?;
                open.length += 1;
            }
            if let Some(tail) = writer.tail.clone() {
                let mended = self.mend_tail(paths, &mut open, &tail);
                writer.seen = open.file.id().ok();
                repairs.push(mended.map_err(|error| Error::io(Step::RepairLog, &paths.log, &error))?);
                writer.tail = None;
            }
            writer.file = Some(open);
            return Ok(());
        };
        if open.stale {
            self.rewrite(paths, writer, |_| true, &HashSet::new(), repairs)?;
            return Ok(());
        }
        if open.dirty {
            open.file.truncate(open.length).map_err(|error| fail(&error))?;
            open.dirty = false;
        }
        let id = disk.id(&paths.log).map_err(|error| fail(&error))?;
        match id {
            Some(id) if !id.same_file(&open.id) => Err(Error::LogReplaced { path: paths.log.clone() }),
            Some(id) if id.size == open.length => Ok(()),
            Some(id) if id.size > open.length => {
                repairs.push(Repair::ForeignBytes { offset: open.length, length: id.size - open.length });
                adopt(open, &mut writer.lines, id.size).map_err(|error| fail(&error))
            }
            _ => {
                disk.make_dir(&paths.dir).map_err(|error| Error::io(Step::EnsurePath, &paths.dir, &error))?;
                self.rewrite(paths, writer, |_| true, &HashSet::new(), repairs)?;
                repairs.push(Repair::LogRestored);
                Ok(())
            }
        }
    }

    fn mend_tail(&self, paths: &Paths, open: &mut OpenFile, tail: &Tail) -> io::Result<Repair> {
        let disk = &*self.disk;
        let sync = self.settings.durability == Durability::Fsync;
        let repair = match *tail {
            Tail::Unterminated { end } => {
                open.file.truncate(end)?;
                if let Err(error) = open.file.append(b"\n") {
                    let _ = open.file.truncate(end);
                    return Err(error);
                }
                open.length = end + 1;
                Repair::NewlineAdded { offset: end }
            }
            Tail::Torn { start, end } => {
                let kept_as = if end > start {
                    disk.make_dir(&paths.repairs)?;
                    let (path, mut kept) = self.new_numbered(&paths.repairs, "tail", "bin")?;
                    let copied = copy_range(&*open.file, start, end - start, &mut |bytes| kept.append(bytes));
                    if let Err(error) = copied.and_then(|()| kept.sync()) {
                        let _ = disk.remove(&path);
                        return Err(error);
                    }
                    Some(path)
                } else {
                    None
                };
                let length = open.length - start;
                if let Err(error) = open.file.truncate(start) {
                    if let Some(path) = &kept_as {
                        let _ = disk.remove(path);
                    }
                    return Err(error);
                }
                open.length = start;
                Repair::TailCut { offset: start, length, zeros: length - (end - start), kept_as }
            }
        };
        if sync {
            open.file.sync()?;
        }
        open.id = open.file.id()?;
        Ok(repair)
    }

    fn new_numbered(&self, dir: &Path, stem: &str, ending: &str) -> io::Result<(PathBuf, Box<dyn DiskFile>)> {
        let ms = self.disk.now_ms();
        let mut n: u64 = 1;
        loop {
            let path = dir.join(format!("{stem}-{ms}-{n}.{ending}"));
            match self.disk.create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
                outcome => return Ok((path, outcome?)),
            }
        }
    }

    fn replace_small(
        &self,
        paths: &Paths,
        step: Step,
        tmp: &Path,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let disk = &*self.disk;
        let run = || -> io::Result<()> {
            disk.remove(tmp)?;
            let mut file = disk.create_new(tmp)?;
            file.append(bytes)?;
            if self.settings.durability == Durability::Fsync {
                file.sync()?;
            }
            disk.rename(tmp, path)?;
            if self.settings.durability == Durability::Fsync {
                disk.sync_dir(&paths.dir)?;
            }
            Ok(())
        };
        run().map_err(|error| Error::io(step, path, &error))
    }

    fn write_marks(&self, paths: &Paths, writer: &mut Writer) -> Result<(), Error> {
        self.disk.reached(FailPoint::BeforeMarks);
        let marks = Marks::new(writer.epoch, writer.next_seq);
        self.replace_small(paths, Step::WriteMarks, &paths.marks_tmp, &paths.marks, &marks.to_bytes())?;
        writer.reserved = marks.reserved;
        Ok(())
    }

    /// Writes the log anew with the lines that `keep` accepts, marking those in `flush`, and puts it in the old
    /// one's place. On failure the old one stays.
    fn rewrite(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        keep: impl Fn(&Line) -> bool,
        flush: &HashSet<u64>,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), Error> {
        let disk = &*self.disk;
        let fail = |step, path: &Path, error: &io::Error| Error::io(step, path, error);
        let old = writer.file.as_ref().map(|open| &*open.file);
        let write = || -> io::Result<(Box<dyn DiskFile>, Vec<Line>, u64)> {
            disk.remove(&paths.log_tmp)?;
            let mut file = disk.create_new(&paths.log_tmp)?;
            let mut lines = Vec::with_capacity(writer.lines.len());
            let mut buffer: Vec<u8> = Vec::with_capacity(1 << 16);
            let mut length: u64 = 0;
            let half = writer.lines.len() / 2;
            for (index, line) in writer.lines.iter().enumerate() {
                if index == half && disk.splits_writes() {
                    file.append(&buffer)?;
                    buffer.clear();
                    disk.reached(FailPoint::InsideRewrite);
                }
                if !keep(line) {
                    continue;
                }
                match &line.raw {
                    Raw::Kept(raw) => {
                        let marked = match line.seq {
                            Some(seq) if flush.contains(&seq) => Some(
                                line_with_flushed(raw)
                                    .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?
                                    .into_boxed_slice(),
                            ),
                            _ => None,
                        };
                        let raw = marked.unwrap_or_else(|| raw.clone());
                        buffer.extend_from_slice(&raw);
                        length += raw.len() as u64 + 1;
                        lines.push(Line { seq: line.seq, raw: Raw::Kept(raw) });
                    }
                    Raw::Long { offset, length: long } => {
                        file.append(&buffer)?;
                        buffer.clear();
                        let old = old.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                        copy_range(old, *offset, *long, &mut |bytes| file.append(bytes))?;
                        lines.push(Line { seq: None, raw: Raw::Long { offset: length, length: *long } });
                        length += long + 1;
                    }
                }
                buffer.push(b'\n');
                if buffer.len() >= 1 << 16 {
                    file.append(&buffer)?;
                    buffer.clear();
                }
            }
            file.append(&buffer)?;
            // The whole log is at stake here, not its last line: wait for the disk at either level.
            file.sync()?;
            Ok((file, lines, length))
        };
        let (file, lines, length) = write().map_err(|error| {
            let _ = disk.remove(&paths.log_tmp);
            fail(Step::Rewrite, &paths.log_tmp, &error)
        })?;
        if writer.unread {
            self.set_unread_aside(paths, writer, repairs)?;
        }
        disk.reached(FailPoint::BeforeRename);
        let id = file.id().map_err(|error| fail(Step::Rewrite, &paths.log_tmp, &error))?;
        disk.rename(&paths.log_tmp, &paths.log).map_err(|error| {
            let _ = disk.remove(&paths.log_tmp);
            fail(Step::Rename, &paths.log, &error)
        })?;
        if self.settings.durability == Durability::Fsync
            && let Err(error) = disk.sync_dir(&paths.dir)
        {
            if let Some(open) = writer.file.as_mut() {
                open.stale = true;
            }
            return Err(fail(Step::Rename, &paths.dir, &error));
        }
        writer.file = Some(OpenFile { file, id, length, dirty: false, stale: false });
        writer.lines = lines;
        disk.reached(FailPoint::AfterRename);
        Ok(())
    }

    /// A log that was never read is not replaced but moved away.
    fn set_unread_aside(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), Error> {
        let disk = &*self.disk;
        let fail = |error: &io::Error| Error::io(Step::Rename, &paths.repairs, error);
        disk.make_dir(&paths.repairs).map_err(|error| fail(&error))?;
        let (path, file) =
            self.new_numbered(&paths.repairs, "unread", "jsonl").map_err(|error| fail(&error))?;
        drop(file);
        if disk.id(&paths.log).map_err(|error| fail(&error))?.is_some() {
            disk.rename(&paths.log, &path).map_err(|error| fail(&error))?;
            repairs.push(Repair::UnreadLogKept { kept_as: path });
        }
        writer.unread = false;
        Ok(())
    }

    /// Sets the flag of those entries that are there; the others are ignored. The rewritten log is on disk before
    /// readers see the change. Linear in the log.
    ///
    /// # Errors
    /// As [`ChangeLog::append`]; nothing changed.
    pub fn mark_flushed(&self, seqs: &[u64]) -> Result<Vec<Repair>, Error> {
        let mut guard = self.writer.lock();
        let writer = &mut *guard;
        if writer.closed {
            return Err(Error::Closed);
        }
        let view = self.view.load_full();
        let wanted: HashSet<u64> =
            seqs.iter().copied().filter(|seq| view.entry(*seq).is_some_and(|entry| !entry.flushed)).collect();
        let mut repairs = Vec::new();
        if wanted.is_empty() {
            return Ok(repairs);
        }
        if let Some(paths) = &self.paths
            && !seeds::on(Seed::MarkInMemoryOnly)
        {
            self.ensure_log(paths, writer, &mut repairs)?;
            self.rewrite(paths, writer, |_| true, &wanted, &mut repairs)?;
        }
        self.publish(view.map(|entry| {
            if !wanted.contains(&entry.seq) {
                return Some(Arc::clone(entry));
            }
            let mut flushed = Entry::clone(entry);
            flushed.flushed = true;
            Some(Arc::new(flushed))
        }));
        Ok(repairs)
    }

    /// Empties the log in memory and on disk. Body files and archives stay, numbering and epoch go on.
    ///
    /// # Errors
    /// As [`ChangeLog::append`]; nothing changed.
    pub fn clear(&self) -> Result<Vec<Repair>, Error> {
        let mut guard = self.writer.lock();
        let writer = &mut *guard;
        if writer.closed {
            return Err(Error::Closed);
        }
        let mut repairs = Vec::new();
        if let Some(paths) = &self.paths
            && !seeds::on(Seed::ClearInMemoryOnly)
        {
            self.ensure_log(paths, writer, &mut repairs)?;
            self.settle_plan(paths, writer, &mut repairs)?;
            if !seeds::on(Seed::SeqRestartsAfterClear) {
                // The numbers must outlive the lines that prove them.
                self.write_marks(paths, writer)?;
            }
            self.disk.reached(FailPoint::BeforeClear);
            if writer.unread {
                self.rewrite(paths, writer, |_| false, &HashSet::new(), &mut repairs)?;
            } else if let Some(open) = writer.file.as_mut() {
                let fail = |error: &io::Error| Error::io(Step::Clear, &paths.log, error);
                open.file.truncate(0).map_err(|error| fail(&error))?;
                if self.settings.durability == Durability::Fsync {
                    // If this fails the old length stands, and the next write restores the log from memory.
                    open.file.sync().map_err(|error| fail(&error))?;
                }
                open.length = 0;
            }
            writer.lines.clear();
        }
        self.publish(self.view.load().without_entries());
        Ok(repairs)
    }

    fn rotate_if_due(&self, paths: &Paths, writer: &mut Writer) -> Option<Rotation> {
        if self.view.load().len() <= self.settings.bound {
            return None;
        }
        Some(self.rotate(paths, writer).unwrap_or_else(Rotation::Failed))
    }

    fn rotate(&self, paths: &Paths, writer: &mut Writer) -> Result<Rotation, Error> {
        let disk = &*self.disk;
        let mut repairs = Vec::new();
        self.ensure_log(paths, writer, &mut repairs)?;
        self.settle_plan(paths, writer, &mut repairs)?;
        let view = self.view.load_full();
        let moving = view.to_archive(self.settings.bound - self.settings.slack);
        disk.make_dir(&paths.archive).map_err(|error| Error::io(Step::EnsurePath, &paths.archive, &error))?;
        let plan = self.plan(paths, writer, &view, &moving)?;
        self.replace_small(paths, Step::Archive, &paths.plan_tmp, &paths.plan, &plan.to_bytes())?;
        writer.plan = Some(plan.clone());
        disk.reached(FailPoint::RotationPlanned);
        let moved = match self.archive_and_rewrite(paths, writer, &plan, &moving) {
            Ok(moved) => moved,
            Err(error) => {
                // Best effort: what cannot be taken back now is taken back before the next rotation.
                let _ = self.settle_plan(paths, writer, &mut repairs);
                return Err(error);
            }
        };
        self.publish(view.map(|entry| (!moving.contains(&entry.seq)).then(|| Arc::clone(entry))));
        let left_over = self.prune(paths, writer, &moved).err();
        Ok(Rotation::Done { moved: moving.len(), segment: plan.segment, left_over })
    }

    fn plan(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        view: &View,
        moving: &BTreeSet<u64>,
    ) -> Result<Plan, Error> {
        let kept: HashSet<&str> = view
            .entries()
            .filter(|entry| !moving.contains(&entry.seq) && !seeds::on(Seed::PruneBodiesOfKeptEntries))
            .flat_map(|entry| bodies::own_names(entry))
            .collect();
        let all = seeds::on(Seed::PruneBodiesOfKeptEntries);
        let refs: BTreeSet<&str> = view
            .entries()
            .filter(|entry| all || moving.contains(&entry.seq))
            .flat_map(|entry| bodies::own_names(entry))
            .filter(|name| !kept.contains(name))
            .collect();
        let seqs: Vec<u64> = moving.iter().copied().collect();
        let refs: Vec<String> = refs.into_iter().map(str::to_owned).collect();
        let ms = self.disk.now_ms();
        loop {
            writer.rotations += 1;
            let plan = Plan::new(ms, writer.rotations, seqs.clone(), refs.clone());
            let taken = |name: &str| {
                let path = paths.archive.join(name);
                self.disk.id(&path).map_err(|error| Error::io(Step::Archive, &path, &error))
            };
            if taken(&plan.segment)?.is_none() && taken(&plan.bodies)?.is_none() {
                return Ok(plan);
            }
        }
    }

    /// Up to the point of no return. Answers the body files that are in the archive.
    fn archive_and_rewrite(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        plan: &Plan,
        moving: &BTreeSet<u64>,
    ) -> Result<Vec<String>, Error> {
        let disk = &*self.disk;
        let sync = self.settings.durability == Durability::Fsync;
        let mut lines: Vec<(u64, &[u8])> = Vec::with_capacity(moving.len());
        for line in &writer.lines {
            if let (Some(seq), Raw::Kept(raw)) = (line.seq, &line.raw)
                && moving.contains(&seq)
            {
                lines.push((seq, raw));
            }
        }
        lines.sort_unstable_by_key(|(seq, _)| *seq);
        archive::write_segment(
            disk,
            &paths.archive.join(&plan.segment),
            lines.into_iter().map(|(_, raw)| raw),
            sync,
        )?;
        disk.reached(FailPoint::RotationSegment);
        let bodies = archive::write_bodies(
            disk,
            &paths.archive.join(&plan.bodies),
            &paths.sources,
            &plan.refs,
            self.settings.max_body_bytes,
            sync,
        )?;
        if sync {
            disk.sync_dir(&paths.archive)
                .map_err(|error| Error::io(Step::Archive, &paths.archive, &error))?;
        }
        disk.reached(FailPoint::RotationBodies);
        // The line with the highest number may be among those that go.
        self.write_marks(paths, writer)?;
        let forget = seeds::on(Seed::RotationForgetsLines);
        let keep = |line: &Line| line.seq.map_or(!forget, |seq| !moving.contains(&seq));
        self.rewrite(paths, writer, keep, &HashSet::new(), &mut Vec::new())?;
        Ok(bodies)
    }

    /// Past the point of no return: the archived bodies go, then the plan.
    fn prune(&self, paths: &Paths, writer: &mut Writer, names: &[String]) -> Result<(), Error> {
        let disk = &*self.disk;
        for (index, name) in names.iter().enumerate() {
            if index == names.len() / 2 {
                disk.reached(FailPoint::RotationPruning);
            }
            let path = paths.sources.join(name);
            disk.remove(&path).map_err(|error| Error::io(Step::Archive, &path, &error))?;
        }
        disk.reached(FailPoint::RotationDone);
        disk.remove(&paths.plan).map_err(|error| Error::io(Step::Archive, &paths.plan, &error))?;
        writer.plan = None;
        Ok(())
    }

    /// Takes back or finishes a rotation that was cut short.
    fn settle_plan(
        &self,
        paths: &Paths,
        writer: &mut Writer,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), Error> {
        let disk = &*self.disk;
        if writer.unread {
            // Whether the log still has the lines cannot be known.
            return Ok(());
        }
        let Some(plan) = writer.plan.clone() else { return Ok(()) };
        if writer.file.as_ref().is_some_and(|open| open.stale) {
            self.ensure_log(paths, writer, repairs)?;
        }
        let moving: HashSet<u64> = plan.seqs.iter().copied().collect();
        let still =
            writer.lines.iter().filter_map(|line| line.seq).filter(|seq| moving.contains(seq)).count();
        let archived = |name: &str| paths.archive.join(name);
        let remove = |path: &Path| disk.remove(path).map_err(|error| Error::io(Step::Archive, path, &error));
        if still == 0 {
            let view = self.view.load();
            let used: HashSet<&str> = view.entries().flat_map(|entry| bodies::own_names(entry)).collect();
            let packed = archive::names_in(disk, &archived(&plan.bodies))?;
            let names: Vec<String> = plan
                .refs
                .iter()
                .filter(|name| packed.contains(*name) && !used.contains(name.as_str()))
                .cloned()
                .collect();
            self.prune(paths, writer, &names)?;
            repairs.push(Repair::RotationFinished { segment: plan.segment });
            return Ok(());
        }
        if still == moving.len() {
            remove(&archived(&plan.segment))?;
            remove(&archived(&plan.bodies))?;
        }
        // With only some of them there, somebody else edited the log; both copies are kept.
        remove(&paths.plan)?;
        writer.plan = None;
        repairs.push(Repair::RotationUndone { segment: plan.segment });
        Ok(())
    }

    /// The recorded new text. One file read.
    ///
    /// # Errors
    /// [`Error::NoSource`], [`Error::NoWorkspace`], [`Error::UnsafeRef`], [`Error::NotRegular`], [`Error::TooLarge`],
    /// [`Error::Io`] (for instance `enoent` once rotated away).
    pub fn read_source_body(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        self.read_body(entry.source_ref.as_deref().ok_or(Error::NoSource)?)
    }

    /// The recorded earlier text. One file read.
    ///
    /// # Errors
    /// [`Error::NoPrevSource`], else as [`ChangeLog::read_source_body`].
    pub fn read_prev_source_body(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        self.read_body(entry.prev_source_ref.as_deref().ok_or(Error::NoPrevSource)?)
    }

    /// The body that a recorded reference names. One file read.
    ///
    /// # Errors
    /// As [`ChangeLog::read_source_body`].
    pub fn read_body(&self, reference: &str) -> Result<Vec<u8>, Error> {
        let paths = self.paths.as_ref().ok_or(Error::NoWorkspace)?;
        bodies::read(&*self.disk, &paths.sources, reference, self.settings.max_body_bytes)
    }

    /// A source file of the project, whole, and which file that was. Refuses what is no regular file, is too large
    /// or leads out of the project.
    ///
    /// # Errors
    /// [`Error::NotRegular`], [`Error::TooLarge`], [`Error::Io`].
    pub fn read_source_file(&self, file: &str) -> Result<(Vec<u8>, FileId), Error> {
        let root = self.settings.source_root.as_deref();
        bodies::read_source(&*self.disk, root, file, self.settings.max_source_bytes)
    }

    /// First step towards what a revert means; see [`RevertStep`]. Reads at most one body and one source file.
    #[must_use]
    pub fn find_revert_target(&self, class: &str, selector: &str, side: Option<Side>) -> RevertStep {
        let view = self.view();
        revert::decide(
            view.revert_candidate(class, selector, side),
            |entry| self.read_prev_source_body(entry).ok(),
            |entry| self.read_source_file(entry.source_file.as_deref()?).ok().map(|(text, _)| text),
        )
    }

    /// First step towards whether an entry differs from the disk; see [`DeltaStep`]. Reads at most one body and one
    /// source file.
    #[must_use]
    pub fn delta_step(&self, row: &Row) -> DeltaStep {
        delta::step(
            row,
            |entry| self.read_source_body(entry).ok(),
            |entry| self.read_source_file(entry.source_file.as_deref()?).ok(),
        )
    }

    /// Every entry by rising number with what a listing has to do for it, all of one state. Reads each source file once,
    /// and of the bodies those that were not compared with that file before.
    #[must_use]
    pub fn listing(&self) -> Vec<Listed> {
        self.compared.list(self.view().rows(), self)
    }

    /// Keeps what came of comparing an entry, for the next [`ChangeLog::listing`]. `key` is the one that came with the
    /// step; a failure that may pass is not to be handed in.
    pub fn remember_delta(&self, seq: u64, key: u64, clean: bool, diff: Option<&[u8]>) {
        if self.view().entry(seq).is_some() {
            self.compared.put(seq, key, clean, diff);
        }
    }

    /// Ends the run: gives the lock back and refuses further writes. Views stay readable.
    pub fn close(&self) {
        let mut writer = self.writer.lock();
        writer.closed = true;
        writer.file = None;
        writer.lock = None;
    }
}

impl Texts for ChangeLog {
    fn body_id(&self, entry: &Entry) -> Option<FileId> {
        let (paths, name) = (self.paths.as_ref()?, entry.source_ref.as_deref()?);
        if !bodies::is_plain_name(name) {
            return None;
        }
        self.disk.id(&paths.sources.join(name)).ok()?
    }

    fn body(&self, entry: &Entry) -> Option<Vec<u8>> {
        self.read_source_body(entry).ok()
    }

    fn file(&self, name: &str) -> Option<Vec<u8>> {
        self.read_source_file(name).ok().map(|(text, _)| text)
    }
}

/// Takes over bytes that somebody else wrote behind our last line: kept as lines that are no entries.
fn adopt(open: &mut OpenFile, lines: &mut Vec<Line>, size: u64) -> io::Result<()> {
    let mut last = [0];
    open.file.read_at(size - 1, &mut last)?;
    let ended = last == *b"\n";
    let mut end = size;
    if !ended {
        if let Err(error) = open.file.append(b"\n") {
            let _ = open.file.truncate(size);
            return Err(error);
        }
        end += 1;
    }
    lines.push(Line { seq: None, raw: Raw::Long { offset: open.length, length: end - 1 - open.length } });
    open.length = end;
    Ok(())
}

fn copy_range(
    file: &dyn DiskFile,
    mut offset: u64,
    mut length: u64,
    out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; usize::try_from(length.min(1 << 16)).unwrap_or(1 << 16)];
    while length > 0 {
        let want = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(offset, buffer.get_mut(..want).unwrap_or_default())?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        };
        out(bytes)?;
        offset += read as u64;
        length -= read as u64;
    }
    Ok(())
}
