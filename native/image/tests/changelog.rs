//! The ChangeLog on disk and in meaning, case by case; each test is named for the fault that it rules out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beamtalk_image::changelog::*;
use tempfile::TempDir;

struct Place {
    _temp: TempDir,
    dir: PathBuf,
    files: PathBuf,
}

impl Place {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let dir = temp.path().join("workspace/changes");
        let files = temp.path().join("project");
        fs::create_dir_all(&files).unwrap();
        Self { _temp: temp, dir, files }
    }

    fn log(&self) -> PathBuf {
        self.dir.join("changes.jsonl")
    }

    fn open(&self) -> (ChangeLog, OpenReport) {
        ChangeLog::open(Settings::durable(&self.dir)).unwrap()
    }

    fn write_log(&self, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(&self.dir).unwrap();
        fs::write(self.log(), bytes).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.log()).unwrap().lines().map(str::to_owned).collect()
    }

    fn source(&self, name: &str, text: &str) -> String {
        let path = self.files.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn patch<'a>(class: &'a str, selector: &'a str, text: &'a str) -> NewEntry<'a> {
    NewEntry { source: Some(text.as_bytes()), ..NewEntry::new(class, Some(selector), Kind::Instance) }
}

fn removal<'a>(class: &'a str, selector: &'a str, side: Side) -> NewEntry<'a> {
    NewEntry { side: Some(side), ..NewEntry::new(class, Some(selector), Kind::RemoveMethod) }
}

fn seqs(view: &View) -> Vec<u64> {
    view.entries().map(|entry| entry.seq).collect()
}

fn pending(view: &View) -> Vec<u64> {
    view.rows().iter().filter(|row| row.active && !row.shadowed).map(|row| row.entry.seq).collect()
}

fn line(seq: u64) -> String {
    format!(
        r#"{{"author":"repl","author_kind":"human","class":"C","epoch":1,"flushable":true,"flushed":false,"intent":"durable","kind":"instance","not_flushable_reason":null,"prev_source_ref":null,"selector":"m{seq}","seq":{seq},"side":null,"sourceFile":null,"source_ref":null,"span":null,"ts":5}}"#
    )
}

fn whole_lines(count: u64) -> String {
    (0..count).map(|seq| line(seq) + "\n").collect()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/fixtures/changelog").join(name)
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy_tree(&item.path(), &target);
        } else {
            fs::copy(item.path(), target).unwrap();
        }
    }
}

// ---- what the original wrote ----

#[test]
fn a_directory_of_the_original_opens_with_all_its_entries() {
    let place = Place::new();
    copy_tree(&fixture("original"), &place.dir);
    let before = place.lines();
    let (log, report) = place.open();
    assert_eq!((report.epoch, report.entries, report.skipped_count), (3, 9, 0));
    assert_eq!((report.repairs, report.unknown, report.problems), (vec![], vec![], vec![]));
    let view = log.view();
    assert_eq!(seqs(&view), (0..9).collect::<Vec<_>>());
    let kinds: Vec<&str> = view.entries().map(|entry| entry.kind.word()).collect();
    assert_eq!(
        kinds,
        [
            "instance",
            "class",
            "new-class",
            "remove-method",
            "remove-method",
            "instance",
            "remove-class",
            "instance",
            "instance"
        ]
    );
    let entry = view.entry(7).unwrap();
    assert_eq!(log.read_source_body(entry).unwrap(), "shout => \"über 😀\"".as_bytes());
    assert_eq!(view.entry(3).unwrap().side(), Some(Side::Class));
    assert!(view.entry(0).unwrap().flushed && !view.entry(0).unwrap().orphan);
    assert_eq!(view.active().count(), 0);
    let appended = log.append(&patch("Counter", "new", "new => 1")).unwrap();
    assert_eq!((appended.entry.seq, appended.entry.epoch), (9, 3));
    let after = place.lines();
    assert_eq!(after[..9], before[..]);
    let keys = |line: &str| -> Vec<String> {
        let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        map.keys().cloned().collect()
    };
    assert_eq!(keys(&after[9]), keys(&before[0]), "the layout of a line is the original's");
}

/// What version 1 wrote, every kind and added field among it; the suites of the shim read the same folder.
#[test]
fn a_directory_of_ours_opens_with_all_its_entries() {
    let place = Place::new();
    copy_tree(&fixture("ours"), &place.dir);
    let before = fs::read(place.log()).unwrap();
    let (log, report) = place.open();
    assert_eq!((report.epoch, report.entries, report.skipped_count, &report.repairs), (3, 5, 0, &vec![]));
    let view = log.view();
    assert_eq!(seqs(&view), vec![4, 5, 6, 7, 8]);
    let encoded: Vec<u8> = view.entries().flat_map(|entry| [entry.to_json(), vec![b'\n']].concat()).collect();
    assert!(encoded == before && fs::read(place.log()).unwrap() == before);
    let removal = view.entry(4).unwrap();
    assert_eq!((removal.layer.as_deref(), removal.side()), (Some("local"), Some(Side::Instance)));
    let bytes = view.entry(7).unwrap();
    assert_eq!(log.read_source_body(bytes).unwrap(), b"");
    assert_eq!(log.read_prev_source_body(bytes).unwrap(), b"\xff\0\xfe");
    let (archived, bodies) = archived(&place.dir);
    assert_eq!(archived, vec![0, 1, 2, 3]);
    assert_eq!(bodies.get("000003-prev.bt").map(Vec::as_slice), Some(&b"old 3"[..]));
    assert_eq!(log.append(&patch("Counter", "m", "m => 1")).unwrap().entry.seq, 9);
}

#[test]
fn a_rotated_directory_of_the_original_opens_with_all_its_entries() {
    let place = Place::new();
    let parent = place.dir.parent().unwrap();
    fs::create_dir_all(parent).unwrap();
    let packed = fs::File::open(fixture("original-rotated.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(parent).unwrap();
    let (log, report) = place.open();
    assert_eq!((report.entries, report.skipped_count, report.rotation), (1000, 0, None));
    assert_eq!(seqs(&log.view()), (5..1005).collect::<Vec<_>>());
    for entry in log.view().entries() {
        assert!(log.read_source_body(entry).is_ok() && log.read_prev_source_body(entry).is_ok());
    }
    assert_eq!(log.append(&patch("K", "x", "x => 1")).unwrap().entry.seq, 1005);
    assert_eq!(log.view().len(), 900, "rotation goes below the bound");
    let (lines, bodies) = archived(&place.dir);
    assert_eq!(lines.len(), 5 + 101);
    assert_eq!(bodies.len(), 2 * (5 + 101));
}

#[test]
fn every_line_of_the_original_is_encoded_to_the_same_bytes() {
    let text = fs::read_to_string(fixture("lines.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 71);
    for line in text.lines() {
        let mut unknown = Vec::new();
        let entry = Entry::from_json(line.as_bytes(), &mut unknown).unwrap();
        assert_eq!(String::from_utf8(entry.to_json()).unwrap(), line);
        assert_eq!(unknown, []);
    }
}

/// Each line of the fixture: text on disk, text in memory, and the original's difference (null if clean), every line
/// of it with two characters in front: unchanged, only on disk, only in memory.
#[test]
fn texts_are_compared_and_shown_as_the_original_does() {
    let cases = fs::read_to_string(fixture("body-deltas.jsonl")).unwrap();
    for case in cases.lines() {
        let (disk, memory, expected): (String, String, Option<String>) = serde_json::from_str(case).unwrap();
        let shown = |text: &[u8]| match std::str::from_utf8(text).unwrap() {
            "" => String::new(),
            text => format!("{text}\n"),
        };
        match (delta(disk.as_bytes(), memory.as_bytes()), expected) {
            (Delta::Clean, None) => {}
            (Delta::Differs { disk, memory }, Some(expected)) => {
                let side = |mark| -> String {
                    let lines = expected.lines().filter(|line| line.starts_with([' ', mark]));
                    lines.map(|line| format!("{}\n", &line[2..])).collect()
                };
                assert_eq!((shown(&disk), shown(&memory)), (side('-'), side('+')), "{case}");
            }
            other => panic!("{case}: {other:?}"),
        }
    }
    assert_eq!(cases.lines().count(), 135);
}

/// Every archived line's number, and every archived body by name.
fn archived(dir: &Path) -> (Vec<u64>, std::collections::BTreeMap<String, Vec<u8>>) {
    use std::io::Read;
    let mut lines = Vec::new();
    let mut bodies = std::collections::BTreeMap::new();
    let Ok(items) = fs::read_dir(dir.join("archive")) else { return (lines, bodies) };
    for item in items {
        let path = item.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let gzip = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        if name.ends_with(".jsonl.gz") {
            let mut text = String::new();
            let mut gzip = gzip;
            gzip.read_to_string(&mut text).unwrap();
            let of_file: Vec<u64> = text
                .lines()
                .map(|line| Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap().seq)
                .collect();
            assert!(of_file.is_sorted(), "{name} is in the order of seq");
            lines.extend(of_file);
        } else {
            for entry in tar::Archive::new(gzip).entries().unwrap() {
                let mut entry = entry.unwrap();
                let mut body = Vec::new();
                let name = entry.path().unwrap().to_str().unwrap().to_owned();
                entry.read_to_end(&mut body).unwrap();
                assert!(bodies.insert(name, body).is_none());
            }
        }
    }
    lines.sort_unstable();
    (lines, bodies)
}

// ---- F1: tails ----

#[test]
fn f1_a_line_is_not_glued_to_a_torn_tail() {
    let place = Place::new();
    let torn = &line(3)[..100];
    place.write_log(whole_lines(3) + torn);
    let (log, report) = place.open();
    let cut = whole_lines(3).len() as u64;
    let Repair::TailCut { offset, length, zeros: 0, kept_as: Some(kept) } = &report.repairs[0] else {
        panic!("{report:?}");
    };
    assert_eq!((*offset, *length, report.repairs.len(), report.skipped_count), (cut, 100, 1, 0));
    assert_eq!(fs::read(kept).unwrap(), torn.as_bytes());
    let appended = log.append(&patch("C", "e", "e => 1")).unwrap();
    assert_eq!(appended.entry.seq, 3);
    assert_eq!(seqs(&log.view()), [0, 1, 2, 3]);
    drop(log);
    let (log, report) = place.open();
    assert_eq!((report.repairs, report.skipped_count), (vec![], 0), "a second open is clean");
    assert_eq!(seqs(&log.view()), [0, 1, 2, 3]);
    assert_eq!(place.lines().len(), 4);
}

#[test]
fn f1_a_whole_last_line_without_its_newline_is_not_thrown_away() {
    let place = Place::new();
    place.write_log(whole_lines(3).trim_end());
    let (log, report) = place.open();
    assert!(matches!(report.repairs[..], [Repair::NewlineAdded { .. }]));
    log.append(&patch("C", "e", "e => 1")).unwrap();
    assert_eq!(seqs(&log.view()), [0, 1, 2, 3]);
    drop(log);
    assert_eq!(place.open().1.repairs, []);
    assert_eq!(place.lines().len(), 4);
}

#[test]
fn f1_zeros_that_a_lost_write_left_are_no_line() {
    for (tail, zeros, rest) in
        [(vec![0; 5000], 5000, 0), ([line(3).as_bytes()[..9].to_vec(), vec![0; 70]].concat(), 70, 9)]
    {
        let place = Place::new();
        place.write_log([whole_lines(3).as_bytes(), &tail].concat());
        let (log, report) = place.open();
        let [Repair::TailCut { length, zeros: found, kept_as, .. }] = &report.repairs[..] else {
            panic!("{report:?}");
        };
        assert_eq!((*length, *found, kept_as.is_some()), (rest + zeros, zeros, rest > 0));
        log.append(&patch("C", "e", "e => 1")).unwrap();
        drop(log);
        assert_eq!(place.open().1.repairs, []);
        assert_eq!(place.lines().len(), 4);
    }
}

#[test]
fn f1_a_whole_line_followed_by_zeros_is_kept() {
    let place = Place::new();
    place.write_log([whole_lines(3).trim_end().as_bytes(), &[0; 64]].concat());
    let (log, report) = place.open();
    assert!(matches!(report.repairs[..], [Repair::NewlineAdded { .. }]));
    assert_eq!(seqs(&log.view()), [0, 1, 2]);
    drop(log);
    assert_eq!(fs::read(place.log()).unwrap(), whole_lines(3).as_bytes());
}

#[test]
fn f1_a_tail_torn_inside_a_character_is_cut() {
    let place = Place::new();
    let last = line(3).replace("\"repl\"", "\"Jürgen\"");
    let cut = last.find('ü').unwrap() + 1;
    place.write_log([whole_lines(3).as_bytes(), &last.as_bytes()[..cut]].concat());
    let (log, report) = place.open();
    assert!(matches!(report.repairs[..], [Repair::TailCut { zeros: 0, .. }]));
    log.append(&patch("C", "e", "e => 1")).unwrap();
    drop(log);
    assert_eq!(seqs(&place.open().0.view()), [0, 1, 2, 3]);
}

#[test]
fn every_prefix_of_a_log_opens_takes_a_line_and_opens_again() {
    let full = whole_lines(2);
    for cut in 0..full.len() {
        let place = Place::new();
        place.write_log(&full[..cut]);
        let (log, _) = place.open();
        let kept = log.view().len();
        let appended = log.append(&patch("C", "e", "e => 1")).unwrap();
        drop(log);
        let (log, report) = place.open();
        assert_eq!((report.repairs, report.skipped_count), (vec![], 0), "cut at {cut}");
        assert_eq!(log.view().len(), kept + 1);
        assert!(log.view().entry(appended.entry.seq).is_some());
        let whole = full[..cut].matches('\n').count();
        assert!(kept == whole || (kept == whole + 1 && full.as_bytes()[cut] == b'\n'));
    }
}

// ---- F3: damage in the middle ----

#[test]
fn f3_damage_in_the_middle_is_not_treated_like_a_torn_tail() {
    let place = Place::new();
    let mut lines: Vec<String> = (0..10).map(line).collect();
    lines[2] = "{\"seq\":2,\"class\":\"C\"".to_owned();
    let text = lines.join("\n") + "\n";
    place.write_log(&text);
    let (log, report) = place.open();
    assert_eq!((report.entries, report.skipped_count), (9, 1));
    let skipped = &report.skipped[0];
    assert_eq!((skipped.line, skipped.offset), (3, (line(0).len() * 2 + 2) as u64));
    assert_eq!(fs::read_to_string(place.log()).unwrap(), text, "nothing is truncated");
    log.append(&patch("C", "e", "e => 1")).unwrap();
    log.mark_flushed(&[4]).unwrap();
    assert_eq!(place.lines()[2], lines[2], "the line survives a rewrite");
    assert_eq!(place.lines().len(), 11);
    assert!(matches!(
        log.find_revert_target("C", "e", None),
        RevertStep::Decided(RevertTarget::NoPrevSource)
    ));
}

#[test]
fn f3_a_missing_body_makes_only_its_own_entry_unrevertable() {
    let place = Place::new();
    let (log, _) = place.open();
    for name in ["a", "b"] {
        let entry = NewEntry { prev_source: Some(b"old"), ..patch("C", name, "new") };
        log.append(&entry).unwrap();
    }
    fs::remove_file(place.dir.join("sources/000000-prev.bt")).unwrap();
    assert!(matches!(
        log.find_revert_target("C", "a", None),
        RevertStep::Decided(RevertTarget::NoPrevSource)
    ));
    let RevertStep::Decided(RevertTarget::Body(body, entry)) = log.find_revert_target("C", "b", None) else {
        panic!();
    };
    assert_eq!((&*body, entry.seq), (&b"old"[..], 1));
}

// ---- F4: failing appends ----

#[test]
fn f4_a_failed_append_leaves_no_trace_and_the_next_one_is_whole() {
    let place = Place::new();
    let (log, _) = place.open();
    log.append(&patch("C", "a", "a => 1")).unwrap();
    fs::remove_dir_all(place.dir.join("sources")).unwrap();
    fs::write(place.dir.join("sources"), "a file").unwrap();
    let error = log.append(&patch("C", "b", "b => 1")).unwrap_err();
    assert_eq!(error.name(), "ensure_path");
    assert_eq!((seqs(&log.view()), place.lines().len()), (vec![0], 1));
    fs::remove_file(place.dir.join("sources")).unwrap();
    assert_eq!(log.append(&patch("C", "b", "b => 1")).unwrap().entry.seq, 1);
    let Err(Error::Io(fault)) = log.read_source_body(log.view().entry(0).unwrap()) else { panic!() };
    assert_eq!(fault.posix(), "enoent");
}

#[test]
fn f4_a_log_that_is_a_folder_counts_as_empty_and_refuses_appends() {
    let place = Place::new();
    fs::create_dir_all(place.log()).unwrap();
    let (log, report) = place.open();
    assert!(report.unreadable.is_some());
    assert_eq!((report.epoch, log.view().len()), (1, 0));
    assert_eq!(log.append(&patch("C", "b", "b => 1")).unwrap_err().name(), "write_log");
    assert!(log.clear().is_err(), "what was not emptied is not reported as empty");
    fs::remove_dir(place.log()).unwrap();
    assert_eq!(log.append(&patch("C", "b", "b => 1")).unwrap().entry.seq, 0);
}

#[test]
fn f4_a_folder_that_cannot_be_made_is_no_reason_not_to_start() {
    let place = Place::new();
    fs::create_dir_all(place.dir.parent().unwrap()).unwrap();
    fs::write(&place.dir, "in the way").unwrap();
    let (log, report) = place.open();
    assert!(!report.problems.is_empty());
    assert!(log.append(&patch("C", "b", "b => 1")).is_err());
    fs::remove_file(&place.dir).unwrap();
    assert_eq!(log.append(&patch("C", "b", "b => 1")).unwrap().entry.seq, 0);
    drop(log);
    assert_eq!(place.open().1.epoch, 2);
}

// ---- F5, F6: many writers ----

#[test]
fn f5_sixteen_writers_make_whole_lines_in_the_order_of_their_numbers() {
    let place = Place::new();
    let settings = Settings { bound: 10_000, ..Settings::durable(&place.dir) };
    let log = Arc::new(ChangeLog::open(settings).unwrap().0);
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (path, done, log) = (place.log(), Arc::clone(&done), Arc::clone(&log));
        std::thread::spawn(move || {
            let (mut seen, mut read) = (0, 0);
            while !done.load(Ordering::Acquire) {
                let view = log.view();
                assert!(view.len() >= seen);
                seen = view.len();
                if let Some(last) = view.entries().next_back() {
                    assert!(log.read_source_body(last).is_ok(), "a visible entry has its body");
                }
                let text = fs::read(&path).unwrap_or_default();
                let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |index| index + 1);
                for line in text[read..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                    Entry::from_json(line, &mut Vec::new()).unwrap();
                }
                read = end;
            }
        })
    };
    std::thread::scope(|scope| {
        for writer in 0..16usize {
            let log = &log;
            scope.spawn(move || {
                for turn in 0..200usize {
                    let size = 100 + (writer * 200 + turn) * 64_000 / 3200;
                    let body = vec![b'a' + u8::try_from(writer).unwrap(); size];
                    let selector = format!("m{writer}_{turn}");
                    let new = NewEntry {
                        source: Some(&body),
                        ..NewEntry::new("C", Some(&selector), Kind::Instance)
                    };
                    let entry = log.append(&new).unwrap().entry;
                    assert_eq!(log.read_source_body(&entry).unwrap(), body);
                }
            });
        }
    });
    done.store(true, Ordering::Release);
    reader.join().unwrap();
    let lines = place.lines();
    let in_file: Vec<u64> =
        lines.iter().map(|line| Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap().seq).collect();
    assert_eq!(in_file, (0..3200).collect::<Vec<_>>());
}

#[test]
fn f6_rotation_under_writers_loses_and_doubles_nothing() {
    let place = Place::new();
    let settings = Settings { bound: 8, slack: 3, ..Settings::durable(&place.dir) };
    let log = Arc::new(ChangeLog::open(settings.clone()).unwrap().0);
    let rotations = AtomicU64::new(0);
    let fewest = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (log, rotations, fewest) = (&log, &rotations, &fewest);
            scope.spawn(move || {
                for turn in 0..50 {
                    let selector = format!("m{}", turn % 5);
                    let body = format!("{selector} => {writer}{turn}");
                    let appended = log.append(&patch("C", &selector, &body)).unwrap();
                    if appended.entry.seq > 10 {
                        fewest.fetch_min(log.view().len() as u64, Ordering::Relaxed);
                    }
                    match appended.rotation {
                        Some(Rotation::Done { left_over: None, .. }) => {
                            rotations.fetch_add(1, Ordering::Relaxed);
                        }
                        None => {}
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert!(rotations.into_inner() >= 40);
    assert!(fewest.into_inner() >= 5, "a reader never sees fewer than were kept");
    assert!(log.view().len() <= 8);
    let live = seqs(&log.view());
    for entry in log.view().entries() {
        assert!(log.read_source_body(entry).is_ok());
    }
    let (lines, bodies) = archived(&place.dir);
    let mut all: Vec<u64> = lines.iter().copied().chain(live.iter().copied()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
    assert_eq!(bodies.len(), lines.len());
    drop(log);
    let (log, report) = ChangeLog::open(settings).unwrap();
    assert_eq!((seqs(&log.view()), report.repairs, report.rotation), (live, vec![], None));
}

#[test]
fn f6_a_rotation_that_fails_does_not_stop_the_writing() {
    let place = Place::new();
    let settings = Settings { bound: 4, slack: 1, ..Settings::durable(&place.dir) };
    let (log, _) = ChangeLog::open(settings).unwrap();
    fs::write(place.dir.join("archive"), "in the way").unwrap();
    for turn in 0..8 {
        let appended = log.append(&patch("C", &format!("m{turn}"), "x")).unwrap();
        assert_eq!(matches!(appended.rotation, Some(Rotation::Failed(_))), turn >= 4);
    }
    assert_eq!((log.view().len(), place.lines().len()), (8, 8));
    fs::remove_file(place.dir.join("archive")).unwrap();
    let appended = log.append(&patch("C", "m8", "x")).unwrap();
    assert!(matches!(appended.rotation, Some(Rotation::Done { moved: 6, .. })));
    assert_eq!((log.view().len(), place.lines().len()), (3, 3));
}

#[test]
fn rotation_takes_what_no_longer_counts_before_what_is_pending() {
    let place = Place::new();
    let settings = Settings { bound: 5, slack: 1, ..Settings::durable(&place.dir) };
    let (log, _) = ChangeLog::open(settings).unwrap();
    for selector in ["pending", "twice", "twice", "flushed", "last"] {
        log.append(&patch("C", selector, "x")).unwrap();
    }
    log.mark_flushed(&[3]).unwrap();
    log.append(&patch("C", "more", "x")).unwrap();
    assert_eq!(seqs(&log.view()), [0, 2, 4, 5], "the flushed and the shadowed entry went");
    log.append(&patch("C", "again", "x")).unwrap();
    log.append(&patch("C", "and", "x")).unwrap();
    assert_eq!(seqs(&log.view()), [4, 5, 6, 7], "then the oldest");
}

#[test]
fn two_rotations_in_one_millisecond_do_not_overwrite_each_other() {
    let place = Place::new();
    let settings = Settings { bound: 1, slack: 0, ..Settings::durable(&place.dir) };
    for run in 0..3 {
        let (log, _) = ChangeLog::open(settings.clone()).unwrap();
        for turn in 0..20 {
            log.append(&patch("C", "m", &format!("{run} {turn}"))).unwrap();
        }
    }
    let (lines, bodies) = archived(&place.dir);
    assert_eq!((lines, bodies.len()), ((0..59).collect(), 59));
}

// ---- F8: references and bodies ----

#[test]
fn f8_references_still_resolve_after_rotation_and_after_moving_the_folder() {
    let place = Place::new();
    let settings = Settings { bound: 6, slack: 2, ..Settings::durable(&place.dir) };
    let (log, _) = ChangeLog::open(settings).unwrap();
    for turn in 0..30u64 {
        let (new, old) = (format!("new {turn}"), format!("old {turn}"));
        let selector = format!("m{}", turn % 7);
        let entry = NewEntry { prev_source: Some(old.as_bytes()), ..patch("C", &selector, &new) };
        log.append(&entry).unwrap();
    }
    drop(log);
    let moved = place.dir.parent().unwrap().with_file_name("elsewhere");
    fs::rename(place.dir.parent().unwrap(), &moved).unwrap();
    let (log, report) = ChangeLog::open(Settings::durable(moved.join("changes"))).unwrap();
    assert!((4..=6).contains(&report.entries));
    for entry in log.view().entries() {
        assert_eq!(log.read_source_body(entry).unwrap(), format!("new {}", entry.seq).as_bytes());
        assert_eq!(log.read_prev_source_body(entry).unwrap(), format!("old {}", entry.seq).as_bytes());
    }
}

#[test]
fn a_body_shared_by_two_lines_stays_while_one_of_them_does() {
    let place = Place::new();
    let shared = line(0).replace("\"source_ref\":null", "\"source_ref\":\"000000-source.bt\"");
    let other = shared.replace("\"seq\":0", "\"seq\":1");
    place.write_log(format!("{shared}\n{other}\n"));
    fs::create_dir_all(place.dir.join("sources")).unwrap();
    fs::write(place.dir.join("sources/000000-source.bt"), "text").unwrap();
    let settings = Settings { bound: 1, slack: 0, ..Settings::durable(&place.dir) };
    let (log, report) = ChangeLog::open(settings).unwrap();
    assert!(matches!(report.rotation, Some(Rotation::Done { moved: 1, .. })));
    assert_eq!(log.read_source_body(log.view().entry(1).unwrap()).unwrap(), b"text");
}

#[test]
fn numbers_outlive_a_cleared_log_and_a_restart() {
    let place = Place::new();
    let (log, _) = place.open();
    log.append(&patch("C", "m", "first")).unwrap();
    log.append(&patch("C", "m", "second")).unwrap();
    log.clear().unwrap();
    assert_eq!((log.view().len(), place.lines().len()), (0, 0));
    drop(log);
    let (log, report) = place.open();
    assert_eq!(report.epoch, 2);
    assert_eq!(log.append(&patch("C", "m", "third")).unwrap().entry.seq, 2);
    assert_eq!(fs::read(place.dir.join("sources/000000-source.bt")).unwrap(), b"first");
}

#[test]
fn numbers_outlive_a_log_that_cannot_be_read() {
    let place = Place::new();
    let (log, _) = place.open();
    for turn in 0..5 {
        log.append(&patch("C", "m", &format!("{turn}"))).unwrap();
    }
    drop(log);
    fs::rename(place.log(), place.dir.join("aside")).unwrap();
    symlink(place.dir.join("aside"), place.log()).unwrap();
    let (log, report) = place.open();
    assert!(matches!(report.unreadable, Some(Error::NotRegular { .. })), "{report:?}");
    assert_eq!(report.epoch, 2);
    assert!(log.append(&patch("C", "m", "x")).is_err(), "a link is not written through");
    fs::remove_file(place.log()).unwrap();
    let seq = log.append(&patch("C", "m", "x")).unwrap().entry.seq;
    assert!(seq >= 5, "{seq}");
    assert_eq!(fs::read(place.dir.join("sources/000000-source.bt")).unwrap(), b"0");
}

#[test]
fn a_body_of_a_lost_line_is_not_overwritten() {
    let place = Place::new();
    let (log, _) = place.open();
    for turn in 0..3 {
        log.append(&patch("C", "m", &format!("{turn}"))).unwrap();
    }
    drop(log);
    fs::remove_file(place.dir.join("marks.json")).unwrap();
    let mut lines = place.lines();
    lines[2] = "garbage".to_owned();
    place.write_log(lines.join("\n") + "\n");
    let (log, _) = place.open();
    assert_eq!(log.append(&patch("C", "m", "x")).unwrap().entry.seq, 3);
    assert_eq!(fs::read(place.dir.join("sources/000002-source.bt")).unwrap(), b"2");
}

#[test]
fn the_millionth_body_does_not_overwrite_another() {
    let place = Place::new();
    place.write_log(line(999_998) + "\n");
    let (log, _) = place.open();
    for turn in 0..4 {
        log.append(&patch("C", &format!("m{turn}"), &format!("{turn}"))).unwrap();
    }
    let mut names: Vec<String> = fs::read_dir(place.dir.join("sources"))
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["1000000-source.bt", "1000001-source.bt", "1000002-source.bt", "999999-source.bt"]);
    drop(log);
    let (log, _) = place.open();
    for (turn, entry) in log.view().entries().skip(1).enumerate() {
        assert_eq!(log.read_source_body(entry).unwrap(), turn.to_string().as_bytes());
    }
}

// ---- F10: orphans and epochs ----

#[test]
fn f10_a_restart_tells_untouched_changed_and_flushed_files_apart() {
    let place = Place::new();
    let file = place.source("a.bt", "Object subclass: A\n  m => 1\n  n => 2\n");
    let (log, _) = place.open();
    let entry = |selector, start, end, prev: &'static [u8]| NewEntry {
        prev_source: Some(prev),
        source_file: Some(&file),
        span: Some(Span { start, end }),
        ..patch("A", selector, "x => 3")
    };
    log.append(&entry("m", 19, 28, b"  m => 1\n")).unwrap();
    log.append(&entry("n", 28, 37, b"  n => 2\n")).unwrap();
    log.append(&entry("f", 28, 37, b"something else")).unwrap();
    log.mark_flushed(&[2]).unwrap();
    drop(log);
    let flags = |log: &ChangeLog| -> Vec<(bool, bool, bool)> {
        log.view().entries().map(|entry| (entry.prior_epoch, entry.orphan, entry.is_active())).collect()
    };
    let (log, report) = place.open();
    assert_eq!(flags(&log), [(true, false, false); 3]);
    assert_eq!(report.epoch, 2);
    drop(log);
    fs::write(&file, "Object subclass: A\n  m => 7\n  n => 2\n").unwrap();
    let (log, report) = place.open();
    assert_eq!(flags(&log), [(true, true, false), (true, false, false), (true, false, false)]);
    assert_eq!(report.epoch, 3, "each run has its own epoch, even without an append");
    drop(log);
    fs::remove_file(&file).unwrap();
    assert_eq!(flags(&place.open().0), [(true, true, false), (true, true, false), (true, false, false)]);
}

#[test]
fn f10_a_removed_class_whose_file_still_stands_is_no_orphan() {
    let place = Place::new();
    let text = "Object subclass: A\n";
    let file = place.source("a.bt", text);
    let (log, _) = place.open();
    let entry = NewEntry {
        prev_source: Some(text.as_bytes()),
        source_file: Some(&file),
        ..NewEntry::new("A", None, Kind::RemoveClass)
    };
    log.append(&entry).unwrap();
    drop(log);
    let (log, _) = place.open();
    assert!(!log.view().entry(0).unwrap().orphan);
    drop(log);
    fs::write(&file, "Object subclass: A\n\n").unwrap();
    assert!(place.open().0.view().entry(0).unwrap().orphan);
}

#[test]
fn f10_a_file_with_a_name_outside_ascii_is_found() {
    let place = Place::new();
    let file = place.source("größe-✓.bt", "text");
    let (log, _) = place.open();
    let span = Some(Span { start: 0, end: 4 });
    let entry =
        NewEntry { prev_source: Some(b"text"), source_file: Some(&file), span, ..patch("A", "m", "x") };
    log.append(&entry).unwrap();
    drop(log);
    assert!(!place.open().0.view().entry(0).unwrap().orphan);
}

#[test]
fn attaching_again_continues_the_run_and_an_orderly_end_ends_it() {
    let place = Place::new();
    let runs = Runs::new();
    let attach = || runs.attach(Settings::durable(&place.dir), Arc::new(RealDisk::new())).unwrap();
    let first = attach();
    assert!(first.report.is_some());
    first.log.append(&patch("C", "m", "x")).unwrap();
    let again = attach();
    assert!(again.report.is_none());
    assert_eq!((again.log.view().epoch(), again.log.view().active().count()), (1, 1));
    assert!(runs.end(Some(&place.dir)));
    assert_eq!(first.log.append(&patch("C", "m", "x")).unwrap_err(), Error::Closed);
    let next = attach();
    assert_eq!((next.log.view().epoch(), next.log.view().active().count()), (2, 0));
    let memory = |runs: &Runs| runs.attach(Settings::memory(), Arc::new(RealDisk::new())).unwrap().log;
    memory(&runs).append(&patch("C", "m", "x")).unwrap();
    assert_eq!(memory(&runs).view().len(), 1, "a log in memory outlives its server");
}

// ---- F11: older and newer lines ----

#[test]
fn f11_lines_of_other_versions_survive_every_rewrite_byte_for_byte() {
    let place = Place::new();
    let legacy = r#"{"seq":0,"author":"a","kind":"class","author_kind":"human","class":"C","epoch":1,"flushable":true,"intent":"durable","selector":"m","ts":5}"#;
    let odd = concat!(
        r#"{ "seq" : 1 ,"more":{"deep":[1,2.500,"\u00e9"]},"author":"a","kind":"rename-method","author_kind":"robot","#,
        r#""class":"C","epoch":1,"flushable":true,"intent":"sometimes","side":"both","selector":"m","ts":5}  "#
    );
    let rubbish = "not json \u{7} at all";
    let before = [legacy, odd, rubbish, "", &line(4)].join("\r\n").replace('\r', "") + "\n";
    place.write_log(&before);
    let (log, report) = place.open();
    assert_eq!((report.entries, report.skipped_count), (3, 1));
    let words: Vec<(&str, &str)> =
        report.unknown.iter().map(|word| (word.field, word.value.as_str())).collect();
    assert_eq!(
        words,
        [("kind", "rename-method"), ("intent", "sometimes"), ("author_kind", "robot"), ("side", "both")]
    );
    let view = log.view();
    assert_eq!(view.entry(0).unwrap().side(), Some(Side::Class));
    let entry = view.entry(1).unwrap();
    assert_eq!((entry.kind, entry.side()), (Kind::Unknown, None));
    assert_eq!(view.flushable_pending().count(), 0);
    log.append(&patch("C", "x", "x")).unwrap();
    log.mark_flushed(&[4]).unwrap();
    let lines = place.lines();
    assert_eq!([&lines[0], &lines[1], &lines[2], &lines[3]], [legacy, odd, rubbish, ""]);
    log.mark_flushed(&[1]).unwrap();
    assert_eq!(place.lines()[1], odd.replacen("{ ", "{\"flushed\":true, ", 1), "only the flag is added");
    drop(log);
    let settings = Settings { bound: 1, slack: 0, ..Settings::durable(&place.dir) };
    let (log, report) = ChangeLog::open(settings).unwrap();
    assert!(matches!(report.rotation, Some(Rotation::Done { moved: 3, .. })));
    assert_eq!((place.lines().len(), &*place.lines()[0], &*place.lines()[1]), (3, rubbish, ""));
    assert_eq!(archived(&place.dir).0, [0, 1, 4]);
    assert!(log.view().entry(5).is_some());
}

// ---- F12: texts and names ----

#[test]
fn f12_any_selector_and_any_bytes_come_back_identical() {
    let place = Place::new();
    let (log, _) = place.open();
    let selectors = ["<", "/", "->", "at:put:", "foo", "Foo", "../x", "a\nb", "nul\0", "\u{2028}", "\"\\"];
    let bodies: [&[u8]; 6] =
        ["emoji 😀 \u{2028}".as_bytes(), b"cr\r\nlf", b"nul\0nul", b"\xFF\xFE invalid \xC3", b"", b"\n\n"];
    let mut expected = Vec::new();
    for (index, selector) in selectors.iter().enumerate() {
        let body = bodies[index % bodies.len()];
        let entry = NewEntry {
            source: Some(body),
            prev_source: Some(body),
            ..NewEntry::new("Größe", Some(selector), Kind::Instance)
        };
        log.append(&entry).unwrap();
        expected.push((*selector, body));
    }
    assert_eq!(place.lines().len(), selectors.len(), "one line an entry");
    drop(log);
    let (log, _) = place.open();
    for ((selector, body), entry) in expected.iter().zip(log.view().entries()) {
        assert_eq!(entry.selector.as_deref(), Some(*selector));
        assert_eq!(&log.read_source_body(entry).unwrap(), body);
        assert_eq!(&log.read_prev_source_body(entry).unwrap(), body);
    }
    let mut lower: Vec<String> = fs::read_dir(place.dir.join("sources"))
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap().to_lowercase())
        .collect();
    lower.sort();
    lower.dedup();
    assert_eq!(lower.len(), 2 * selectors.len(), "no two names differ by case alone");
}

// ---- hostile folders ----

#[test]
fn a_reference_or_link_out_of_the_folder_is_refused() {
    let place = Place::new();
    let secret = place.source("secret", "secret");
    let refs = ["../../../project/secret", "/etc/passwd", "..", "link.bt", "000007-source.bt"];
    let lines: Vec<String> = refs
        .iter()
        .zip(0..)
        .map(|(name, seq)| {
            line(seq)
                .replace("\"source_ref\":null", &format!("\"source_ref\":\"{name}\""))
                .replace("\"prev_source_ref\":null", &format!("\"prev_source_ref\":\"{name}\""))
        })
        .collect();
    place.write_log(lines.join("\n") + "\n");
    let sources = place.dir.join("sources");
    fs::create_dir_all(&sources).unwrap();
    symlink(&secret, sources.join("link.bt")).unwrap();
    rustix_fifo(&sources.join("000007-source.bt"));
    let (log, _) = place.open();
    for entry in log.view().entries() {
        let error = log.read_source_body(entry).unwrap_err();
        assert!(matches!(error, Error::UnsafeRef { .. } | Error::NotRegular { .. }), "{error:?}");
        assert!(log.read_prev_source_body(entry).is_err());
    }
    drop(log);
    let settings = Settings { bound: 1, slack: 0, ..Settings::durable(&place.dir) };
    ChangeLog::open(settings).unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"secret", "rotation deletes nothing it does not own");
    fs::remove_dir_all(&sources).unwrap();
    symlink(&place.files, &sources).unwrap();
    fs::write(place.files.join("000000-source.bt"), "outside").unwrap();
    let (log, _) = place.open();
    assert!(log.append(&patch("C", "m", "x")).is_err(), "a linked folder is not written to");
    assert_eq!(fs::read(place.files.join("000000-source.bt")).unwrap(), b"outside");
}

fn rustix_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_pipe_device_gigabyte_or_link_as_source_file_is_not_read() {
    let place = Place::new();
    rustix_fifo(&place.files.join("fifo.bt"));
    let big = fs::File::create(place.files.join("big.bt")).unwrap();
    big.set_len(1 << 30).unwrap();
    symlink("/etc/hostname", place.files.join("link.bt")).unwrap();
    place.source("good.bt", "good");
    symlink("good.bt", place.files.join("inside.bt")).unwrap();
    let settings = Settings { source_root: Some(place.files.clone()), ..Settings::durable(&place.dir) };
    let (log, _) = ChangeLog::open(settings.clone()).unwrap();
    for (name, good) in [
        ("fifo.bt", false),
        ("big.bt", false),
        ("link.bt", false),
        ("../project", false),
        ("/dev/zero", false),
        ("nul\0", false),
        ("good.bt", true),
        ("inside.bt", true),
    ] {
        assert_eq!(log.read_source_file(name).is_ok(), good, "{name}");
        let span = Some(Span { start: 0, end: 4 });
        let entry =
            NewEntry { prev_source: Some(b"good"), source_file: Some(name), span, ..patch("A", "m", "x") };
        log.append(&entry).unwrap();
    }
    drop(log);
    let (log, _) = ChangeLog::open(settings).unwrap();
    let orphans: Vec<bool> = log.view().entries().map(|entry| entry.orphan).collect();
    assert_eq!(orphans, [true, true, true, true, true, true, false, false]);
}

#[test]
fn a_hundred_megabyte_line_is_neither_an_entry_nor_lost() {
    let place = Place::new();
    let size = 100 << 20;
    let mut bytes = (line(0) + "\n").into_bytes();
    bytes.extend(std::iter::repeat_n(b'x', size));
    bytes.extend(b"\n");
    bytes.extend((line(1) + "\n").as_bytes());
    place.write_log(&bytes);
    let (log, report) = place.open();
    assert_eq!((report.entries, report.skipped_count, report.skipped[0].length), (2, 1, size as u64));
    log.append(&patch("C", "m", "x")).unwrap();
    log.mark_flushed(&[0]).unwrap();
    log.mark_flushed(&[1]).unwrap();
    let after = fs::read(place.log()).unwrap();
    let middle = line(0).len();
    assert_eq!(after[middle..middle + size + 1], bytes[middle + 1..middle + size + 2]);
}

#[test]
fn deep_json_nuls_and_a_repeated_number_are_skipped_not_fatal() {
    let place = Place::new();
    let deep = line(1)
        .replace("\"ts\":5", &format!("\"ts\":5,\"x\":{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    let repeated = line(2).replace("\"epoch\":1", "\"epoch\":4");
    let text = [line(0), deep, "\0\0\0".to_owned(), line(2), repeated.clone()].join("\n") + "\n";
    place.write_log(&text);
    let (log, report) = place.open();
    assert_eq!(
        (report.entries, report.skipped_count, report.epoch),
        (3, 2, 5),
        "depth in an unknown field is fine"
    );
    assert_eq!(log.view().entry(2).unwrap().epoch, 4, "the later line is the entry");
    log.append(&patch("C", "m", "x")).unwrap();
    log.mark_flushed(&[0]).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(place.lines()[1..5], lines[1..5]);
}

// ---- other writers ----

#[test]
fn a_second_opener_gets_an_error_that_names_the_first() {
    let place = Place::new();
    let (log, _) = place.open();
    let Err(Error::Locked { owner, .. }) = ChangeLog::open(Settings::durable(&place.dir)) else { panic!() };
    assert_eq!(owner.pid, Some(std::process::id()));
    assert!(owner.host.is_some() && owner.since_ms.is_some());
    log.close();
    assert_eq!(place.open().1.epoch, 2);
}

#[test]
fn a_log_deleted_or_cut_under_way_is_restored_and_a_replaced_one_is_left_alone() {
    let place = Place::new();
    let (log, _) = place.open();
    log.append(&patch("C", "a", "x")).unwrap();
    fs::remove_file(place.log()).unwrap();
    assert_eq!(log.append(&patch("C", "b", "x")).unwrap().repairs, [Repair::LogRestored]);
    assert_eq!(place.lines().len(), 2);
    fs::OpenOptions::new().write(true).open(place.log()).unwrap().set_len(3).unwrap();
    assert_eq!(log.append(&patch("C", "c", "x")).unwrap().repairs, [Repair::LogRestored]);
    assert_eq!(place.lines().len(), 3);
    {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).open(place.log()).unwrap();
        file.write_all(b"half a li").unwrap();
    }
    let appended = log.append(&patch("C", "d", "x")).unwrap();
    assert!(matches!(appended.repairs[..], [Repair::ForeignBytes { length: 9, .. }]));
    log.mark_flushed(&[0]).unwrap();
    assert_eq!((place.lines().len(), &*place.lines()[3]), (5, "half a li"));
    fs::remove_file(place.log()).unwrap();
    fs::write(place.log(), "somebody else's\n").unwrap();
    assert!(matches!(log.append(&patch("C", "e", "x")), Err(Error::LogReplaced { .. })));
    assert_eq!(fs::read_to_string(place.log()).unwrap(), "somebody else's\n");
}

// ---- G: meaning ----

#[test]
fn g1_patching_three_times_is_one_pending_change_and_three_records() {
    let place = Place::new();
    let disk_text = "  m => 1\n";
    let (log, _) = place.open();
    let file = place.source("a.bt", disk_text);
    let with_file = |text| NewEntry {
        prev_source: Some(disk_text.as_bytes()),
        source_file: Some(&file),
        span: Some(Span { start: 0, end: 9 }),
        ..patch("A", "m", text)
    };
    // As the listing does it: the host finds the method's text on disk.
    let dirty = |log: &ChangeLog| -> Vec<u64> {
        let mut dirty = Vec::new();
        for row in log.view().rows().iter().filter(|row| row.active && !row.shadowed) {
            let DeltaStep::NeedSpan { file, memory, .. } = log.delta_step(row) else { panic!() };
            assert_eq!(file, disk_text.as_bytes());
            if delta(&file, &memory) != Delta::Clean {
                dirty.push(row.entry.seq);
            }
        }
        dirty
    };
    for text in ["m => 2", "m => 3", "m => 4"] {
        log.append(&with_file(text)).unwrap();
    }
    assert_eq!((pending(&log.view()), dirty(&log), log.view().len()), (vec![2], vec![2], 3));
    log.append(&with_file("m => 1")).unwrap();
    assert_eq!((pending(&log.view()), dirty(&log)), (vec![3], vec![]));
    for text in ["m => 5", "m => 1", "m => 5", "m => 1"] {
        log.append(&with_file(text)).unwrap();
    }
    assert_eq!((dirty(&log), log.view().len()), (vec![], 8));
}

/// The rows of a listing: what was remembered, or nothing where the host would have to be asked.
fn known(log: &ChangeLog) -> Vec<Option<(bool, Option<Vec<u8>>)>> {
    let known = |step: ListedStep| match step {
        ListedStep::Known { clean, diff } => Some((clean, diff.map(|diff| diff.to_vec()))),
        _ => None,
    };
    log.listing().into_iter().map(|listed| known(listed.step)).collect()
}

/// As the shim does it; answers how many rows had to be compared.
fn compare_all(log: &ChangeLog) -> usize {
    let mut compared = 0;
    for listed in log.listing() {
        if let ListedStep::NeedSpan { key, memory, .. } | ListedStep::NewText { key, text: memory } =
            listed.step
        {
            log.remember_delta(listed.row.entry.seq, key, false, Some(&memory));
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_comparison_is_neither_made_twice_nor_kept_for_other_bytes() {
    let place = Place::new();
    let (log, _) = place.open();
    let (a, b) = (place.source("a.bt", "  m => 1\n"), place.source("b.bt", "  n => 1\n"));
    let in_file = |file, selector, text| NewEntry { source_file: Some(file), ..patch("A", selector, text) };
    log.append(&in_file(&a, "m", "m => 2")).unwrap();
    log.append(&in_file(&b, "n", "n => 2")).unwrap();
    log.append(&NewEntry { kind: Kind::NewClass, selector: None, ..patch("B", "", "Object subclass: B") })
        .unwrap();
    assert_eq!((known(&log), compare_all(&log), compare_all(&log)), (vec![None, None, None], 3, 0));
    let remembered = |text: &str| Some((false, Some(text.as_bytes().to_vec())));
    let all = vec![remembered("m => 2"), remembered("n => 2"), remembered("Object subclass: B")];
    assert_eq!(known(&log), all);
    // Another file's change, of the same length, concerns the rows of that file alone.
    place.source("b.bt", "  n => 2\n");
    assert_eq!(known(&log), vec![all[0].clone(), None, all[2].clone()]);
    assert_eq!(compare_all(&log), 1);
    // A newer patch shadows the first; what was known of that one is dropped.
    log.append(&in_file(&a, "m", "m => 3")).unwrap();
    assert_eq!(known(&log), vec![None, all[1].clone(), all[2].clone(), None]);
    // A row whose body is gone is as unknown as one never compared, and has no step.
    fs::remove_file(place.dir.join("sources").join(bodies::source_name(1))).unwrap();
    assert!(matches!(log.listing()[1].step, ListedStep::Nothing));
}

#[test]
fn g2_a_removal_is_not_beaten_by_the_older_patch_even_after_rotation() {
    let place = Place::new();
    let settings = Settings { bound: 4, slack: 2, ..Settings::durable(&place.dir) };
    let (log, _) = ChangeLog::open(settings).unwrap();
    log.append(&patch("C", "m", "x")).unwrap();
    log.append(&removal("C", "m", Side::Class)).unwrap();
    assert_eq!(pending(&log.view()), [0, 1], "the sides do not shadow each other");
    log.append(&removal("C", "m", Side::Instance)).unwrap();
    assert_eq!(pending(&log.view()), [1, 2]);
    for turn in 0..6 {
        log.append(&patch("C", &format!("other{turn}"), "x")).unwrap();
        let view = log.view();
        let targets: Vec<_> = view
            .rows()
            .iter()
            .filter(|row| row.active && !row.shadowed)
            .map(|row| row.entry.clone())
            .collect();
        assert!(
            !targets
                .iter()
                .any(|entry| entry.selector.as_deref() == Some("m") && entry.kind == Kind::Instance),
            "the patch did not come back"
        );
    }
    log.append(&patch("C", "m", "again")).unwrap();
    let last = log.view().entries().next_back().unwrap().seq;
    assert!(pending(&log.view()).contains(&last));
}

#[test]
fn g2_a_clock_that_runs_backwards_changes_no_order() {
    let place = Place::new();
    place.write_log(line(0).replace("\"ts\":5", "\"ts\":99999999999999") + "\n");
    let (log, _) = place.open();
    let newer = log.append(&patch("C", "m0", "x")).unwrap().entry;
    assert!(newer.ts < log.view().entry(0).unwrap().ts);
    assert_eq!(log.view().entries().next_back().unwrap().seq, newer.seq);
}

#[test]
fn g3_the_newest_active_entry_decides_a_revert() {
    let place = Place::new();
    let file = place.source("a.bt", "  m => 1\n");
    let (log, _) = place.open();
    let remove = NewEntry {
        prev_source: Some(b"  m => 1\n"),
        source_file: Some(&file),
        span: Some(Span { start: 0, end: 9 }),
        ..removal("A", "m", Side::Instance)
    };
    log.append(&remove).unwrap();
    log.append(&NewEntry { source_file: Some(&file), ..patch("A", "m", "m => 9") }).unwrap();
    let RevertStep::NeedSpan { entry, file: text } = log.find_revert_target("A", "m", None) else { panic!() };
    assert_eq!((entry.seq, &*text), (1, &b"  m => 1\n"[..]));
    assert_eq!(
        after_span(Arc::clone(&entry), SpanAnswer::Found(b"m => 1")),
        RevertTarget::Body(b"m => 1".to_vec(), Arc::clone(&entry))
    );
    assert_eq!(
        after_span(Arc::clone(&entry), SpanAnswer::SelectorNotFound),
        RevertTarget::Remove(Arc::clone(&entry))
    );
    assert_eq!(after_span(entry, SpanAnswer::Failed), RevertTarget::NoPrevSource);
    log.append(&remove).unwrap();
    fs::write(&file, "something else").unwrap();
    let RevertStep::Decided(RevertTarget::Body(body, entry)) =
        log.find_revert_target("A", "m", Some(Side::Instance))
    else {
        panic!()
    };
    assert_eq!((&*body, entry.seq), (&b"  m => 1\n"[..], 2));
    assert_eq!(fs::read(&file).unwrap(), b"something else", "nothing writes the file");
    assert_eq!(
        log.find_revert_target("A", "m", Some(Side::Class)),
        RevertStep::Decided(RevertTarget::NoEntry)
    );
}

#[test]
fn a_revert_never_answers_remove_where_a_body_had_been_recorded() {
    let place = Place::new();
    let file = place.source("a.bt", "x");
    let (log, _) = place.open();
    let entry = NewEntry { prev_source: Some(b"old"), source_file: Some(&file), ..patch("A", "m", "new") };
    log.append(&entry).unwrap();
    fs::remove_file(place.dir.join("sources/000000-prev.bt")).unwrap();
    let RevertStep::NeedSpan { entry, .. } = log.find_revert_target("A", "m", None) else { panic!() };
    assert_eq!(after_span(entry, SpanAnswer::SelectorNotFound), RevertTarget::NoPrevSource);
}

#[test]
fn whole_class_changes_are_reached_by_the_placeholder_alone() {
    let (log, _) = ChangeLog::open(Settings::memory()).unwrap();
    let class = |kind| NewEntry { source: Some(b"text"), ..NewEntry::new("A", None, kind) };
    log.append(&class(Kind::NewClass)).unwrap();
    let RevertStep::Decided(RevertTarget::Remove(entry)) = log.find_revert_target("A", WHOLE_CLASS, None)
    else {
        panic!()
    };
    assert_eq!(entry.seq, 0);
    assert_eq!(
        log.find_revert_target("A", WHOLE_CLASS, Some(Side::Instance)),
        RevertStep::Decided(RevertTarget::NoEntry)
    );
    let entry = log.append(&class(Kind::RemoveClass)).unwrap().entry;
    assert_eq!(pending(&log.view()), [1], "both address the class");
    assert_eq!(
        log.find_revert_target("A", WHOLE_CLASS, None),
        RevertStep::Decided(RevertTarget::NoPrevSource)
    );
    assert_eq!(log.read_source_body(&entry), Err(Error::NoWorkspace));
    assert_eq!(log.read_prev_source_body(&entry), Err(Error::NoPrevSource));
    assert_eq!((entry.epoch, entry.source_ref.as_deref()), (0, Some("000001-source.bt")));
    assert_eq!(log.view().dirty()["A"].iter().copied().collect::<Vec<_>>(), ["new-class"]);
}

#[test]
fn an_extensions_removal_can_be_told_from_a_methods() {
    let place = Place::new();
    let (log, _) = place.open();
    let entry = NewEntry {
        layer: Some("extension"),
        owner: Some("shout"),
        prev_source: Some(b"shout => 1"),
        flushable: false,
        not_flushable_reason: Some("extension"),
        ..removal("String", "shout", Side::Instance)
    };
    log.append(&entry).unwrap();
    log.append(&removal("String", "size", Side::Instance)).unwrap();
    assert!(!place.lines()[1].contains("layer") && !place.lines()[1].contains("owner"));
    drop(log);
    let (log, _) = place.open();
    let view = log.view();
    let entry = view.entry(0).unwrap();
    assert_eq!((entry.layer.as_deref(), entry.owner.as_deref()), (Some("extension"), Some("shout")));
    assert_eq!(view.entry(1).unwrap().layer, None);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let place = Place::new();
    for (bound, slack, name) in [(0, 0, "bound"), (5, 5, "slack")] {
        let settings = Settings { bound, slack, ..Settings::durable(&place.dir) };
        let Err(Error::BadSetting { setting, .. }) = ChangeLog::open(settings) else { panic!() };
        assert_eq!(setting, name);
    }
    assert!(!place.dir.exists());
}
