//! Loss of power at any operation, with durability `fsync`, on a disk that forgets what was not synced.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use beamtalk_image::changelog::*;

#[derive(Clone, Default)]
struct Inode {
    now: Vec<u8>,
    safe: Vec<u8>,
}

/// A name leads to an inode, or to nothing for a folder.
type Names = BTreeMap<PathBuf, Option<u64>>;

#[derive(Clone, Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    now: Names,
    safe: Names,
    left: i64,
}

#[derive(Clone, Default)]
struct MemDisk(Arc<Mutex<State>>);

struct MemFile {
    disk: MemDisk,
    inode: u64,
}

struct MemLock;
impl DiskLock for MemLock {}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl MemDisk {
    /// Runs an operation that changes the disk, unless the power is off.
    fn change<T>(&self, run: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.lock().unwrap();
        state.left -= 1;
        if state.left < 0 {
            return Err(io::Error::other("no power"));
        }
        run(&mut state)
    }

    fn look<T>(&self, run: impl FnOnce(&State) -> io::Result<T>) -> io::Result<T> {
        run(&self.0.lock().unwrap())
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.look(|state| match state.now.get(path) {
            Some(Some(inode)) => Ok(*inode),
            Some(None) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            None => Err(gone()),
        })
    }

    fn file(&self, inode: u64) -> Box<dyn DiskFile> {
        Box::new(MemFile { disk: self.clone(), inode })
    }

    /// The disk after the power came back. What was synced is there; of the rest, as the mix says: nothing, all,
    /// or for each folder and file something of its own.
    fn after_power_loss(&self, mix: u64) -> Self {
        let state = self.0.lock().unwrap();
        let mut coin = mix;
        let mut toss = |sides: u64| {
            coin = coin.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match mix {
                0 => 0,
                1 => 1,
                _ => (coin >> 33) % sides,
            }
        };
        let mut names = Names::new();
        let mut folders: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for path in state.now.keys().chain(state.safe.keys()) {
            folders.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_insert_with(|| toss(2) == 1);
        }
        for (folder, newer) in &folders {
            let from = if *newer { &state.now } else { &state.safe };
            names.extend(
                from.iter()
                    .filter(|(path, _)| path.parent().unwrap_or(Path::new("")) == folder)
                    .map(|(path, node)| (path.clone(), *node)),
            );
        }
        let mut inodes = BTreeMap::new();
        for (number, inode) in &state.inodes {
            let data = match toss(3) {
                0 => inode.safe.clone(),
                1 => inode.now.clone(),
                // Part of what was written behind the synced bytes, the last of it zeros.
                _ if inode.now.starts_with(&inode.safe) => {
                    let grown = inode.now.len() - inode.safe.len();
                    let kept = inode.safe.len() + usize::try_from(toss(1 + grown as u64)).unwrap();
                    let mut data = inode.now[..kept].to_vec();
                    data.resize(inode.now.len().min(kept + 20), 0);
                    data
                }
                _ => inode.safe.clone(),
            };
            inodes.insert(*number, Inode { now: data.clone(), safe: data });
        }
        // A name whose folder is lost is lost with it.
        let all = names.clone();
        names.retain(|path, _| {
            path.ancestors().skip(1).all(|above| above == Path::new("") || all.contains_key(above))
        });
        Self(Arc::new(Mutex::new(State { inodes, safe: names.clone(), now: names, left: i64::MAX })))
    }
}

impl DiskFile for MemFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let inode = self.inode;
        let torn = self.disk.look(|state| Ok(state.left == 0))?;
        if torn {
            self.disk.0.lock().unwrap().inodes.get_mut(&inode).unwrap().now.extend(&bytes[..bytes.len() / 2]);
        }
        self.disk.change(|state| {
            state.inodes.get_mut(&inode).unwrap().now.extend(bytes);
            Ok(())
        })
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.look(|state| {
            let data = &state.inodes[&self.inode].now;
            let from = usize::try_from(offset).unwrap().min(data.len());
            let count = buffer.len().min(data.len() - from);
            buffer[..count].copy_from_slice(&data[from..from + count]);
            Ok(count)
        })
    }
    fn length(&self) -> io::Result<u64> {
        self.disk.look(|state| Ok(state.inodes[&self.inode].now.len() as u64))
    }
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let inode = self.inode;
        self.disk.change(|state| {
            state.inodes.get_mut(&inode).unwrap().now.truncate(usize::try_from(length).unwrap());
            Ok(())
        })
    }
    fn sync(&mut self) -> io::Result<()> {
        let inode = self.inode;
        self.disk.change(|state| {
            let inode = state.inodes.get_mut(&inode).unwrap();
            inode.safe = inode.now.clone();
            Ok(())
        })
    }
    fn id(&self) -> io::Result<FileId> {
        let size = self.length()?;
        Ok(FileId { device: 0, inode: self.inode, size, modified_ns: 0 })
    }
}

impl Disk for MemDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        if self.is_dir(path)? == Some(true) {
            return Ok(());
        }
        self.change(|state| {
            for above in path.ancestors().filter(|above| *above != Path::new("")) {
                state.now.entry(above.to_owned()).or_insert(None);
            }
            Ok(())
        })
    }
    fn open_log(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        match self.inode(path) {
            Ok(inode) => Ok(self.file(inode)),
            Err(_) => self.create_new(path),
        }
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.inode(path)?))
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.change(|state| {
            if state.now.contains_key(path) {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            if !state.now.contains_key(path.parent().unwrap()) {
                return Err(gone());
            }
            let inode = state.inodes.len() as u64;
            state.inodes.insert(inode, Inode::default());
            state.now.insert(path.to_owned(), Some(inode));
            Ok(inode)
        })?;
        Ok(self.file(inode))
    }
    fn read(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        let inode = self.inode(path)?;
        let data = self.look(|state| Ok(state.inodes[&inode].now.clone()))?;
        if data.len() as u64 > limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let size = data.len() as u64;
        Ok((data, FileId { device: 0, inode, size, modified_ns: 0 }))
    }
    fn read_source(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, FileId)> {
        self.read(path, limit)
    }
    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        match self.inode(path) {
            Ok(inode) => Ok(Some(self.file(inode).id()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
    fn is_dir(&self, path: &Path) -> io::Result<Option<bool>> {
        self.look(|state| Ok(state.now.get(path).map(Option::is_none)))
    }
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|state| {
            let node = state.now.remove(from).ok_or_else(gone)?;
            state.now.insert(to.to_owned(), node);
            Ok(())
        })
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|state| {
            state.now.remove(path);
            Ok(())
        })
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.change(|state| {
            let inside = |name: &PathBuf| name.parent() == Some(path);
            state.safe.retain(|name, _| !inside(name));
            let names: Vec<_> = state
                .now
                .iter()
                .filter(|(name, _)| inside(name))
                .map(|(name, node)| (name.clone(), *node))
                .collect();
            state.safe.extend(names);
            Ok(())
        })
    }
    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        self.look(|state| {
            let names = state.now.keys().filter(|name| name.parent() == Some(path));
            Ok(names.map(|name| name.file_name().unwrap().to_str().unwrap().to_owned()).collect())
        })
    }
    fn lock(&self, _path: &Path, _note: &str) -> io::Result<LockOutcome> {
        Ok(LockOutcome::Held(Box::new(MemLock)))
    }
    fn now_ms(&self) -> u64 {
        1
    }
}

fn settings() -> Settings {
    Settings { bound: 5, slack: 2, durability: Durability::Fsync, ..Settings::durable("w/changes") }
}

fn body(kind: &str, seq: u64) -> Vec<u8> {
    format!("{kind} {seq}; ").repeat(30).into_bytes()
}

/// Numbers of all entries, live and archived, with every body compared.
fn read_all(disk: &MemDisk) -> BTreeMap<u64, bool> {
    let (log, report) = ChangeLog::open_on(settings(), Arc::new(disk.clone())).unwrap();
    assert_eq!((report.skipped_count, &report.unreadable, &report.problems), (0, &None, &vec![]));
    let mut found = BTreeMap::new();
    for entry in log.view().entries() {
        assert_eq!(log.read_source_body(entry).unwrap(), body("new", entry.seq));
        assert_eq!(log.read_prev_source_body(entry).unwrap(), body("old", entry.seq));
        found.insert(entry.seq, entry.flushed);
    }
    let archive = Path::new("w/changes/archive");
    let mut bodies = BTreeMap::new();
    let mut lines = Vec::new();
    for name in disk.names(archive).unwrap() {
        let (bytes, _) = disk.read(&archive.join(&name), u64::MAX).unwrap();
        let mut gzip = flate2::read::GzDecoder::new(&*bytes);
        if name.ends_with(".jsonl.gz") {
            let mut text = String::new();
            gzip.read_to_string(&mut text).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        } else {
            for file in tar::Archive::new(gzip).entries().unwrap() {
                let mut file = file.unwrap();
                let mut bytes = Vec::new();
                let name = file.path().unwrap().to_str().unwrap().to_owned();
                file.read_to_end(&mut bytes).unwrap();
                bodies.insert(name, bytes);
            }
        }
    }
    for line in lines {
        let entry = Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(bodies[&*entry.source_ref.unwrap()], body("new", entry.seq));
        assert_eq!(bodies[&*entry.prev_source_ref.unwrap()], body("old", entry.seq));
        assert!(found.insert(entry.seq, entry.flushed).is_none(), "{} is there twice", entry.seq);
    }
    found
}

/// Answers whether the power went before the history was over.
fn run(left: i64, mix: u64) -> bool {
    let disk = MemDisk::default();
    disk.0.lock().unwrap().left = left;
    let mut acknowledged = Vec::new();
    let mut marked = Vec::new();
    if let Ok((log, _)) = ChangeLog::open_on(settings(), Arc::new(disk.clone())) {
        for seq in 0..9 {
            let (new, old) = (body("new", seq), body("old", seq));
            let entry = NewEntry {
                source: Some(&new),
                prev_source: Some(&old),
                ..NewEntry::new("C", Some("m"), Kind::Instance)
            };
            if log.append(&entry).is_err() {
                break;
            }
            acknowledged.push(seq);
            if seq % 4 == 1 {
                if log.mark_flushed(&[seq]).is_err() {
                    break;
                }
                marked.push(seq);
            }
        }
    }
    let out = disk.0.lock().unwrap().left < 0;
    let found = read_all(&disk.after_power_loss(mix));
    for seq in &acknowledged {
        assert!(found.contains_key(seq), "{seq} lost: operation {left}, mix {mix}");
    }
    for seq in &marked {
        assert!(found[seq], "mark of {seq} lost: operation {left}, mix {mix}");
    }
    assert!(found.len() <= acknowledged.len() + 1);
    out
}

#[test]
fn what_was_acknowledged_outlives_the_loss_of_power() {
    for mix in 0..12 {
        let operations = (0..).take_while(|&left| run(left, mix)).count();
        assert!(operations > 100, "only {operations}");
    }
}
