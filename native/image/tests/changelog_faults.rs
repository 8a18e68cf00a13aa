//! Random histories in which the nth write, sync or rename fails, half done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use beamtalk_image::changelog::*;
use proptest::prelude::*;

/// Fails the operation at which the count runs out, and with `for_good` every one after it.
struct Plan {
    left: AtomicI64,
    for_good: bool,
    fired: AtomicBool,
}

impl Plan {
    fn fails(&self) -> bool {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let fails = left == 0 || (self.for_good && left < 0);
        if fails {
            self.fired.store(true, Ordering::SeqCst);
        }
        fails
    }

    fn check(&self) -> io::Result<()> {
        if self.fails() { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

struct FaultyDisk {
    real: RealDisk,
    plan: Arc<Plan>,
}

struct FaultyFile {
    real: Box<dyn DiskFile>,
    plan: Arc<Plan>,
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.plan.fails() {
            self.real.append(&bytes[..bytes.len() / 2])?;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.real.append(bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.real.read_at(offset, buffer)
    }
    fn length(&self) -> io::Result<u64> {
        self.real.length()
    }
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.plan.check()?;
        self.real.truncate(length)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.plan.check()
    }
    fn id(&self) -> io::Result<FileId> {
        self.real.id()
    }
}

impl FaultyDisk {
    fn wrap(&self, real: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { real, plan: Arc::clone(&self.plan) })
    }
}

impl Disk for FaultyDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        if self.real.is_dir(path)? != Some(true) {
            self.plan.check()?;
        }
        self.real.make_dir(path)
    }
    fn open_log(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.plan.check()?;
        Ok(self.wrap(self.real.open_log(path)?))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.real.open_read(path)
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.plan.check()?;
        Ok(self.wrap(self.real.create_new(path)?))
    }
    fn read(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        self.real.read(path, limit)
    }
    fn read_source(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        self.real.read_source(path, limit)
    }
    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.real.id(path)
    }
    fn is_dir(&self, path: &Path) -> io::Result<Option<bool>> {
        self.real.is_dir(path)
    }
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.real.resolve(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.check()?;
        self.real.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.plan.check()?;
        self.real.remove(path)
    }
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        self.plan.check()
    }
    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        self.real.names(path)
    }
    fn lock(&self, path: &Path, note: &str) -> io::Result<LockOutcome> {
        self.plan.check()?;
        self.real.lock(path, note)
    }
    fn now_ms(&self) -> u64 {
        self.real.now_ms()
    }
}

#[derive(Debug, Clone)]
enum Do {
    Append { selector: u8, source: bool, prev: bool, long: bool },
    Mark(Vec<u8>),
    Clear,
    Reopen,
}

fn step() -> impl Strategy<Value = Do> {
    prop_oneof![
        12 => (0..4u8, any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(selector, source, prev, long)| Do::Append { selector, source, prev, long }),
        3 => proptest::collection::vec(0..12u8, 0..4).prop_map(Do::Mark),
        1 => Just(Do::Clear),
        2 => Just(Do::Reopen),
    ]
}

/// What must be there: number to (epoch, new text, earlier text, flushed).
type Known = BTreeMap<u64, (u64, Option<Vec<u8>>, Option<Vec<u8>>, bool)>;

#[derive(Default)]
struct Model {
    known: Known,
    /// A failed clear may have emptied the file, a failed mark may have reached it: known only after a reopen.
    maybe_cleared: bool,
    maybe_marked: BTreeSet<u64>,
    maybe_appended: Option<u64>,
    pairs: BTreeSet<(u64, u64)>,
}

fn archived(dir: &Path) -> Known {
    let mut lines = Vec::new();
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for item in fs::read_dir(dir.join("archive")).into_iter().flatten() {
        let path = item.unwrap().path();
        let mut gzip = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        if path.to_str().unwrap().ends_with(".jsonl.gz") {
            let mut text = String::new();
            gzip.read_to_string(&mut text).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        } else {
            for file in tar::Archive::new(gzip).entries().unwrap() {
                let mut file = file.unwrap();
                let mut bytes = Vec::new();
                let name = file.path().unwrap().to_str().unwrap().to_owned();
                file.read_to_end(&mut bytes).unwrap();
                assert!(bodies.insert(name, bytes).is_none());
            }
        }
    }
    let mut known = Known::new();
    for line in lines {
        let entry = Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap();
        let text = |name: &Option<Box<str>>| name.as_ref().map(|name| bodies.get(&**name).unwrap().clone());
        let value = (entry.epoch, text(&entry.source_ref), text(&entry.prev_source_ref), entry.flushed);
        assert!(known.insert(entry.seq, value).is_none(), "archived once");
    }
    known
}

/// Compares everything readable with what was acknowledged.
fn check(log: &ChangeLog, dir: &Path, model: &mut Model, reopened: bool) {
    let mut there = Known::new();
    for entry in log.view().entries() {
        let text = |reading: Result<Vec<u8>, Error>| match reading {
            Ok(text) => Some(text),
            Err(Error::NoSource | Error::NoPrevSource) => None,
            Err(error) => panic!("{error}"),
        };
        let value = (
            entry.epoch,
            text(log.read_source_body(entry)),
            text(log.read_prev_source_body(entry)),
            entry.flushed,
        );
        there.insert(entry.seq, value);
    }
    if reopened {
        // Only now is it known what the disk has of a call that failed.
        if model.maybe_cleared && there.is_empty() {
            model.known = archived(dir);
        }
        if let Some(seq) = model.maybe_appended.take()
            && let Some(value) = there.get(&seq)
        {
            model.known.entry(seq).or_insert_with(|| value.clone());
        }
        for seq in std::mem::take(&mut model.maybe_marked) {
            if let (Some(here), Some(known)) = (there.get(&seq), model.known.get_mut(&seq)) {
                known.3 = here.3;
            }
        }
        model.maybe_cleared = false;
    }
    for (seq, value) in archived(dir) {
        // A failed rotation that could not be taken back leaves its archive until the next write.
        if let Some(here) = there.get(&seq) {
            assert!(dir.join("rotation.json").exists(), "{seq} is live and archived");
            assert_eq!(here.1, value.1);
        } else {
            there.insert(seq, value);
        }
    }
    assert_eq!(there, model.known);
}

/// Answers whether the fault came about.
fn run(steps: &[Do], fail_at: i64, for_good: bool, durability: Durability) -> bool {
    let temp = tempfile::TempDir::new().unwrap();
    let dir = temp.path().join("changes");
    let settings = Settings { bound: 6, slack: 2, durability, ..Settings::durable(&dir) };
    let plan = Arc::new(Plan { left: AtomicI64::new(fail_at), for_good, fired: AtomicBool::new(false) });
    let disk = Arc::new(FaultyDisk { real: RealDisk::new(), plan: Arc::clone(&plan) });
    let mut model = Model::default();
    let mut log = Some(ChangeLog::open_on(settings.clone(), Arc::clone(&disk) as Arc<dyn Disk>).unwrap().0);
    for (turn, step) in steps.iter().enumerate() {
        let open = log.as_ref().unwrap();
        let reopened = matches!(step, Do::Reopen);
        match step {
            Do::Append { selector, source, prev, long } => {
                let text =
                    |kind: &str| format!("{kind} {turn} ").repeat(if *long { 500 } else { 1 }).into_bytes();
                let (new, old) = (source.then(|| text("new")), prev.then(|| text("old")));
                let selector = format!("m{selector}");
                let entry = NewEntry {
                    source: new.as_deref(),
                    prev_source: old.as_deref(),
                    ..NewEntry::new("C", Some(&selector), Kind::Instance)
                };
                match open.append(&entry) {
                    Ok(appended) => {
                        let (seq, epoch) = (appended.entry.seq, appended.entry.epoch);
                        assert!(model.pairs.insert((epoch, seq)), "no pair is given twice");
                        assert!(model.known.insert(seq, (epoch, new, old, false)).is_none());
                        model.maybe_cleared = false;
                        model.maybe_appended = None;
                    }
                    Err(_) => {
                        assert!(plan.fired.load(Ordering::SeqCst), "no error without a fault");
                        let next = open.view().entries().next_back().map_or(0, |entry| entry.seq + 1);
                        let next = model.pairs.iter().map(|(_, seq)| seq + 1).max().unwrap_or(0).max(next);
                        model.maybe_appended = Some(next);
                    }
                }
            }
            Do::Mark(picks) => {
                let live: Vec<u64> = open.view().entries().map(|entry| entry.seq).collect();
                let mut seqs: Vec<u64> =
                    picks.iter().filter_map(|pick| live.get(usize::from(*pick)).copied()).collect();
                match open.mark_flushed(&seqs) {
                    Ok(_) => {
                        for seq in seqs {
                            model.known.get_mut(&seq).unwrap().3 = true;
                        }
                    }
                    Err(_) => {
                        assert!(plan.fired.load(Ordering::SeqCst));
                        model.maybe_marked.extend(seqs.drain(..));
                    }
                }
            }
            Do::Clear => {
                let live: Vec<u64> = open.view().entries().map(|entry| entry.seq).collect();
                match open.clear() {
                    Ok(_) => {
                        for seq in live {
                            model.known.remove(&seq);
                        }
                    }
                    Err(_) => {
                        assert!(plan.fired.load(Ordering::SeqCst));
                        model.maybe_cleared = true;
                    }
                }
            }
            Do::Reopen => {
                drop(log.take());
                log =
                    Some(ChangeLog::open_on(settings.clone(), Arc::clone(&disk) as Arc<dyn Disk>).unwrap().0);
            }
        }
        let dead = for_good && plan.fired.load(Ordering::SeqCst);
        if dead {
            break;
        }
        check(log.as_ref().unwrap(), &dir, &mut model, reopened);
    }
    // Whatever happened, a healthy process finds everything that was acknowledged.
    drop(log);
    let (log, report) = ChangeLog::open(settings.clone()).unwrap();
    assert_eq!((report.skipped_count, &report.problems, &report.unreadable), (0, &vec![], &None));
    check(&log, &dir, &mut model, true);
    drop(log);
    let (log, report) = ChangeLog::open(settings).unwrap();
    assert_eq!((report.skipped_count, &report.repairs), (0, &vec![]));
    check(&log, &dir, &mut model, true);
    plan.fired.load(Ordering::SeqCst)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// One operation fails, half done; the process lives on.
    #[test]
    fn a_failed_operation_changes_nothing(
        steps in proptest::collection::vec(step(), 1..40),
        fail_at in 0..400i64,
        fsync in any::<bool>(),
    ) {
        run(&steps, fail_at, false, if fsync { Durability::Fsync } else { Durability::Os });
    }

    /// From one operation on nothing works any more; the process ends, another one opens the folder.
    #[test]
    fn what_was_acknowledged_outlives_the_process(
        steps in proptest::collection::vec(step(), 1..40),
        fail_at in 0..400i64,
        fsync in any::<bool>(),
    ) {
        run(&steps, fail_at, true, if fsync { Durability::Fsync } else { Durability::Os });
    }
}

/// One long history, every operation of it failing once.
#[test]
fn each_operation_of_a_history_may_fail() {
    let append = |selector| Do::Append { selector, source: true, prev: selector % 2 == 0, long: false };
    let mut steps: Vec<Do> = (0..7).map(append).collect();
    steps.extend([Do::Mark(vec![0, 2]), append(0), Do::Clear, append(1), Do::Reopen, append(2)]);
    for for_good in [false, true] {
        let failed = (0..).take_while(|&fail_at| run(&steps, fail_at, for_good, Durability::Fsync)).count();
        assert!(failed > 100, "only {failed} operations");
    }
}
