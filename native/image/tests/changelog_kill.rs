//! A writer killed with SIGKILL at every named point, again and again, in one folder per point.
//!
//! The child says on a pipe what was acknowledged and when it stands at the point; the parent, which keeps these
//! words, kills it there and then reads the folder: nothing acknowledged is lost, nothing is there twice or in part,
//! every reference resolves to its own bytes, and what was marked stays marked. Prints how many kills each point got.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beamtalk_image::changelog::*;

const KILLS: u64 = 20;

fn main() {
    if let Ok(point) = std::env::var("CHANGELOG_KILL_POINT") {
        child(&point);
        return;
    }
    let mut total = 0;
    for &point in FailPoint::ALL {
        let kills = rounds(point);
        println!("{:<24} {kills} kills", point.name());
        assert!(kills >= KILLS);
        total += kills;
    }
    println!("{total} kills, nothing acknowledged lost, nothing in part, every reference resolved");
}

fn settings(dir: &Path) -> Settings {
    Settings { bound: 12, slack: 4, ..Settings::durable(dir) }
}

/// Long enough for more than one page, and different for every append.
fn body(kind: &str, epoch: u64, turn: u64) -> Vec<u8> {
    format!("{kind} {epoch} {turn} ").repeat(400).into_bytes()
}

/// The turn that a pair of bodies tells, if both are whole and of one append.
fn turn_of(new: &[u8], old: &[u8], epoch: u64) -> u64 {
    let turn = std::str::from_utf8(new).unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    assert!(new == body("new", epoch, turn) && old == body("old", epoch, turn), "bodies of another entry");
    turn
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{words}").unwrap();
    out.flush().unwrap();
}

/// Writes until it stands at the point for the given time; then waits to be killed.
fn child(point: &str) {
    let wanted = FailPoint::from_name(point).unwrap();
    let dir = std::env::var("CHANGELOG_KILL_DIR").unwrap();
    let left = AtomicU64::new(std::env::var("CHANGELOG_KILL_AFTER").unwrap().parse().unwrap());
    let hook = Arc::new(move |point: FailPoint| {
        if point == wanted && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            say("AT");
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
    });
    let disk = Arc::new(RealDisk::with_hook(hook));
    let (log, report) = ChangeLog::open_on(settings(Path::new(&dir)), disk).unwrap();
    let epoch = report.epoch;
    for turn in 0..10_000u64 {
        let selector = format!("m{}", turn % 5);
        let (new, old) = (body("new", epoch, turn), body("old", epoch, turn));
        let entry = NewEntry {
            source: Some(&new),
            prev_source: Some(&old),
            ..NewEntry::new("C", Some(&selector), Kind::Instance)
        };
        let appended = log.append(&entry).unwrap().entry;
        let seq = appended.seq;
        assert_eq!(appended.epoch, epoch);
        say(&format!("APPENDED {seq} {epoch} {turn}"));
        if turn % 3 == 0 {
            log.mark_flushed(&[seq]).unwrap();
            say(&format!("MARKED {seq}"));
        }
        if wanted == FailPoint::BeforeClear && turn % 7 == 6 {
            say("CLEARING");
            log.clear().unwrap();
            say("CLEARED");
        }
    }
}

#[derive(Default)]
struct Acknowledged {
    /// Epoch and turn by number.
    entries: BTreeMap<u64, (u64, u64)>,
    marked: BTreeSet<u64>,
    /// Entries below this may have been cleared away.
    optional_below: u64,
}

/// What a folder holds: epoch, turn and (live only) the flag, by number.
struct Found {
    live: BTreeMap<u64, (u64, u64, bool)>,
    archived: BTreeMap<u64, (u64, u64)>,
}

/// Reads everything; every body is compared on the way.
fn read_folder(dir: &Path) -> Found {
    let (log, report) = ChangeLog::open(settings(dir)).unwrap();
    assert_eq!((report.skipped_count, &report.unreadable, &report.problems), (0, &None, &vec![]));
    let mut live = BTreeMap::new();
    for entry in log.view().entries() {
        let (new, old) = (log.read_source_body(entry).unwrap(), log.read_prev_source_body(entry).unwrap());
        let turn = turn_of(&new, &old, entry.epoch);
        assert!(live.insert(entry.seq, (entry.epoch, turn, entry.flushed)).is_none());
    }
    drop(log);
    let (log, again) = ChangeLog::open(settings(dir)).unwrap();
    assert_eq!((&again.repairs, again.skipped_count), (&vec![], 0), "a second open is clean");
    drop(log);
    let (mut lines, mut bodies) = (BTreeMap::new(), BTreeMap::new());
    for item in fs::read_dir(dir.join("archive")).into_iter().flatten() {
        let path = item.unwrap().path();
        let mut gzip = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        if path.to_str().unwrap().ends_with(".jsonl.gz") {
            let mut text = String::new();
            gzip.read_to_string(&mut text).unwrap();
            for line in text.lines() {
                let entry = Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap();
                assert!(lines.insert(entry.seq, entry.epoch).is_none(), "archived once");
            }
        } else {
            for file in tar::Archive::new(gzip).entries().unwrap() {
                let mut file = file.unwrap();
                let mut bytes = Vec::new();
                let name = file.path().unwrap().to_str().unwrap().to_owned();
                file.read_to_end(&mut bytes).unwrap();
                assert!(bodies.insert(name, bytes).is_none(), "archived once");
            }
        }
    }
    let mut archived = BTreeMap::new();
    for (seq, epoch) in lines {
        let new = bodies.get(&bodies::source_name(seq)).unwrap();
        let old = bodies.get(&bodies::prev_name(seq)).unwrap();
        archived.insert(seq, (epoch, turn_of(new, old, epoch)));
        assert!(!live.contains_key(&seq), "{seq} is both live and archived");
    }
    Found { live, archived }
}

fn rounds(point: FailPoint) -> u64 {
    let temp = tempfile::TempDir::new().unwrap();
    let dir = temp.path().join("changes");
    let mut acknowledged = Acknowledged::default();
    let mut next = 0;
    for round in 0..KILLS {
        let after = match point {
            FailPoint::BeforeBody
            | FailPoint::InsideBody
            | FailPoint::BetweenBodyAndLine
            | FailPoint::InsideLine
            | FailPoint::AfterLine => 1 + round * 7 % 23,
            _ => 1 + round % 4,
        };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("CHANGELOG_KILL_POINT", point.name())
            .env("CHANGELOG_KILL_DIR", &dir)
            .env("CHANGELOG_KILL_AFTER", after.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut killed = false;
        for words in BufReader::new(child.stdout.take().unwrap()).lines() {
            let words = words.unwrap();
            let words: Vec<&str> = words.split(' ').collect();
            match words[..] {
                ["APPENDED", seq, epoch, turn] => {
                    let seq = seq.parse().unwrap();
                    let value = (epoch.parse().unwrap(), turn.parse().unwrap());
                    assert_eq!(acknowledged.entries.insert(seq, value), None, "no number is given twice");
                    next = seq + 1;
                }
                ["MARKED", seq] => {
                    acknowledged.marked.insert(seq.parse().unwrap());
                }
                ["CLEARING"] => acknowledged.optional_below = next,
                ["CLEARED"] => {}
                ["AT"] => {
                    child.kill().unwrap();
                    killed = true;
                }
                _ => panic!("{words:?}"),
            }
        }
        let status = child.wait().unwrap();
        assert!(killed && !status.success(), "{}: the point was not reached", point.name());
        let Found { live, archived } = read_folder(&dir);
        let found: BTreeMap<u64, (u64, u64)> =
            live.iter().map(|(seq, (epoch, turn, _))| (*seq, (*epoch, *turn))).chain(archived).collect();
        for (seq, value) in acknowledged.entries.range(acknowledged.optional_below..) {
            assert_eq!(found.get(seq), Some(value), "{seq} lost at {}", point.name());
        }
        for (seq, (_, _, flushed)) in &live {
            assert!(*flushed || !acknowledged.marked.contains(seq), "mark of {seq} lost");
        }
        let unasked = found.keys().filter(|seq| !acknowledged.entries.contains_key(seq)).count();
        assert!(unasked <= 1, "at most the append under way may show unacknowledged");
        // It was read, so it counts from now on.
        acknowledged.entries.extend(found);
    }
    KILLS
}
