//! The ChangeLog against a model that is a plain list, and the model against planted faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::seeds::{Seed, plant};
use super::*;

const BOUND: usize = 8;
const SLACK: usize = 3;
const CLASSES: [&str; 2] = ["A", "B"];
const SELECTORS: [&str; 2] = ["m", "n"];
/// The second is the first in another layout.
const TEXTS: [&str; 4] = ["m => 1", "    m => 1  \n", "m => 2", "m =>\n  3"];
const RUBBISH: &str = "no entry, and nobody's to remove";

#[derive(Debug, Clone)]
enum Op {
    Append(Change),
    Mark(Vec<u8>),
    Clear,
    Restart,
    /// What stands in the source file: one of the texts, or nothing.
    Edit(Option<usize>),
    LosePrev(u8),
}

#[derive(Debug, Clone)]
struct Change {
    class: usize,
    selector: usize,
    kind: Kind,
    side: Side,
    source: usize,
    prev: bool,
    file: bool,
    durable: bool,
    flushable: bool,
}

fn change() -> impl Strategy<Value = Change> {
    let kinds = prop_oneof![
        4 => Just(Kind::Instance),
        3 => Just(Kind::Class),
        4 => Just(Kind::RemoveMethod),
        1 => Just(Kind::NewClass),
        1 => Just(Kind::RemoveClass),
    ];
    let sides = prop_oneof![Just(Side::Instance), Just(Side::Class)];
    (0..2usize, 0..2usize, kinds, sides, 0..TEXTS.len(), any::<[bool; 4]>()).prop_map(
        |(class, selector, kind, side, source, [prev, file, durable, flushable])| Change {
            class,
            selector,
            kind,
            side,
            source,
            prev,
            file,
            durable,
            flushable,
        },
    )
}

fn histories() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => change().prop_map(Op::Append),
        3 => proptest::collection::vec(0..10u8, 1..4).prop_map(Op::Mark),
        1 => Just(Op::Clear),
        2 => Just(Op::Restart),
        2 => proptest::option::of(0..TEXTS.len()).prop_map(Op::Edit),
        1 => (0..10u8).prop_map(Op::LosePrev),
    ];
    proptest::collection::vec(op, 1..40)
}

#[derive(Debug, Clone)]
struct Known {
    seq: u64,
    epoch: u64,
    change: Change,
    flushed: bool,
    prior: bool,
    prev_lost: bool,
}

impl Known {
    fn whole_class(&self) -> bool {
        matches!(self.change.kind, Kind::NewClass | Kind::RemoveClass)
    }
    fn selector(&self) -> Option<&'static str> {
        (!self.whole_class()).then(|| SELECTORS[self.change.selector])
    }
    fn side(&self) -> Option<Side> {
        match self.change.kind {
            Kind::Instance => Some(Side::Instance),
            Kind::Class => Some(Side::Class),
            Kind::RemoveMethod => Some(self.change.side),
            _ => None,
        }
    }
    fn key(&self) -> (usize, Option<&'static str>, Option<&'static str>) {
        (self.change.class, self.selector(), self.side().map(Side::word))
    }
    fn active(&self) -> bool {
        !self.prior && !self.flushed
    }
}

struct Model {
    live: Vec<Known>,
    epoch: u64,
    next: u64,
    disk: Option<usize>,
}

impl Model {
    fn shadowed(&self, known: &Known) -> bool {
        known.active()
            && self
                .live
                .iter()
                .any(|other| other.active() && other.key() == known.key() && other.seq > known.seq)
    }

    fn rotate(&mut self) {
        if self.live.len() <= BOUND {
            return;
        }
        while self.live.len() > BOUND - SLACK {
            let goes = self
                .live
                .iter()
                .position(|known| !known.active())
                .or_else(|| self.live.iter().position(|known| self.shadowed(known)))
                .unwrap_or(0);
            self.live.remove(goes);
        }
    }

    fn clean(&self, known: &Known) -> bool {
        let method = matches!(known.change.kind, Kind::Instance | Kind::Class) && known.change.file;
        let same = |disk: usize, memory: usize| disk == memory || disk + memory == 1;
        known.active()
            && !self.shadowed(known)
            && method
            && self.disk.is_some_and(|disk| same(disk, known.change.source))
    }

    fn revert(&self, class: usize, selector: &str, side: Option<Side>) -> String {
        let newest = self.live.iter().rev().find(|known| {
            known.active()
                && known.change.class == class
                && known.selector().unwrap_or("new-class") == selector
                && (side.is_none() || known.side() == side)
        });
        let Some(known) = newest else { return "no entry".to_owned() };
        let seq = known.seq;
        let readable = known.change.prev && !known.prev_lost;
        match known.change.kind {
            Kind::NewClass => format!("remove {seq}"),
            Kind::RemoveClass if readable => format!("reinstall {seq} prev {seq}"),
            Kind::RemoveClass if known.change.file => {
                format!("reinstall {seq} {}", self.disk.map_or("", |text| TEXTS[text]))
            }
            Kind::RemoveClass => "nothing".to_owned(),
            _ if readable => format!("body {seq} prev {seq}"),
            _ if !known.change.file => "nothing".to_owned(),
            _ => match self.disk {
                Some(text) => format!("body {seq} {}", TEXTS[text]),
                None if known.change.prev => "nothing".to_owned(),
                None => format!("remove {seq}"),
            },
        }
    }
}

struct World {
    dir: PathBuf,
    file: String,
    log: Option<ChangeLog>,
    model: Model,
}

fn settings(dir: &Path) -> Settings {
    Settings { bound: BOUND, slack: SLACK, ..Settings::durable(dir) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, real: T, model: T) -> Result<(), String> {
    if real == model { Ok(()) } else { Err(format!("{what}: {real:?}, expected {model:?}")) }
}

impl World {
    fn new(temp: &Path) -> Self {
        let dir = temp.join("changes");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("changes.jsonl"), format!("{RUBBISH}\n")).unwrap();
        let file = temp.join("a.bt");
        fs::write(&file, "").unwrap();
        let (log, _) = ChangeLog::open(settings(&dir)).unwrap();
        let model = Model { live: Vec::new(), epoch: 1, next: 0, disk: None };
        Self { file: file.to_str().unwrap().to_owned(), dir, log: Some(log), model }
    }

    fn log(&self) -> &ChangeLog {
        self.log.as_ref().unwrap()
    }

    fn apply(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Append(change) => {
                let seq = self.model.next;
                let prev = format!("prev {seq}");
                let known = Known {
                    seq,
                    epoch: self.model.epoch,
                    change: change.clone(),
                    flushed: false,
                    prior: false,
                    prev_lost: false,
                };
                let removal = matches!(change.kind, Kind::RemoveMethod | Kind::RemoveClass);
                let entry = NewEntry {
                    side: (change.kind == Kind::RemoveMethod).then_some(change.side),
                    source: (!removal).then_some(TEXTS[change.source].as_bytes()),
                    prev_source: change.prev.then_some(prev.as_bytes()),
                    source_file: change.file.then_some(&self.file),
                    intent: if change.durable { Intent::Durable } else { Intent::Ephemeral },
                    flushable: change.flushable,
                    ..NewEntry::new(CLASSES[change.class], known.selector(), change.kind)
                };
                let appended = self.log().append(&entry).map_err(|error| error.to_string())?;
                same("number", (appended.entry.seq, appended.entry.epoch), (seq, self.model.epoch))?;
                self.model.next += 1;
                self.model.live.push(known);
                self.model.rotate();
            }
            Op::Mark(picks) => {
                let seqs: Vec<u64> = picks
                    .iter()
                    .filter_map(|pick| Some(self.model.live.get(usize::from(*pick))?.seq))
                    .collect();
                self.log().mark_flushed(&seqs).map_err(|error| error.to_string())?;
                for known in self.model.live.iter_mut().filter(|known| seqs.contains(&known.seq)) {
                    known.flushed = true;
                }
            }
            Op::Clear => {
                self.log().clear().map_err(|error| error.to_string())?;
                self.model.live.clear();
            }
            Op::Restart => {
                self.log = None;
                let (log, report) =
                    ChangeLog::open(settings(&self.dir)).map_err(|error| error.to_string())?;
                self.model.epoch += 1;
                same("epoch", report.epoch, self.model.epoch)?;
                same("repairs", report.repairs, vec![])?;
                self.log = Some(log);
                for known in &mut self.model.live {
                    known.prior = true;
                }
                self.model.rotate();
            }
            Op::Edit(text) => {
                self.model.disk = *text;
                fs::write(&self.file, text.map_or("", |text| TEXTS[text])).unwrap();
            }
            Op::LosePrev(pick) => {
                if let Some(known) = self.model.live.get_mut(usize::from(*pick)) {
                    known.prev_lost = true;
                    let _ = fs::remove_file(self.dir.join("sources").join(bodies::prev_name(known.seq)));
                }
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let (log, model) = (self.log(), &self.model);
        let view = log.view();
        let rows = view.rows();
        same("size", (view.len(), rows.len()), (model.live.len(), model.live.len()))?;
        let mut pending = BTreeSet::new();
        let mut dirty: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let listing = log.listing();
        same("listing", listing.len(), rows.len())?;
        for ((row, known), listed) in rows.iter().zip(&model.live).zip(listing) {
            let entry = &row.entry;
            same("entry", (entry.seq, entry.epoch, entry.kind), (known.seq, known.epoch, known.change.kind))?;
            same("flags", (entry.flushed, entry.prior_epoch), (known.flushed, known.prior))?;
            same("row", (row.active, row.shadowed), (known.active(), model.shadowed(known)))?;
            let clean = match log.delta_step(row) {
                DeltaStep::NeedSpan { file, memory, .. } => delta(&file, &memory) == Delta::Clean,
                _ => false,
            };
            same("clean", clean, model.clean(known))?;
            // What earlier steps of the history handed in must still be true.
            let remembered = match listed.step {
                ListedStep::Known { clean, .. } => clean,
                ListedStep::NeedSpan { file, memory, key } => {
                    let clean = delta(&file, &memory) == Delta::Clean;
                    log.remember_delta(entry.seq, key, clean, None);
                    clean
                }
                ListedStep::NewText { key, .. } => {
                    log.remember_delta(entry.seq, key, false, None);
                    false
                }
                ListedStep::Nothing => false,
            };
            same("clean in a listing", remembered, clean)?;
            if known.active() {
                let name = known.selector().unwrap_or(WHOLE_CLASS);
                dirty.entry(CLASSES[known.change.class]).or_default().insert(name);
                if known.change.durable && known.change.flushable {
                    pending.insert(known.seq);
                }
            }
            if entry.source_ref.is_some() {
                let text = log.read_source_body(entry).map_err(|error| error.to_string())?;
                same("body", text, TEXTS[known.change.source].as_bytes().to_vec())?;
            }
            if entry.prev_source_ref.is_some() {
                same("earlier body", log.read_prev_source_body(entry).is_ok(), !known.prev_lost)?;
            }
        }
        same("pending", view.flushable_pending().map(|entry| entry.seq).collect(), pending)?;
        same("dirty", view.dirty(), dirty)?;
        for (class, name) in CLASSES.iter().enumerate() {
            for selector in [SELECTORS[0], SELECTORS[1], WHOLE_CLASS] {
                for side in [None, Some(Side::Instance), Some(Side::Class)] {
                    let found = tell(log.find_revert_target(name, selector, side));
                    same("revert", found, model.revert(class, selector, side))?;
                }
            }
        }
        let text = fs::read_to_string(self.dir.join("changes.jsonl")).map_err(|error| error.to_string())?;
        let rubbish = text.lines().filter(|line| *line == RUBBISH).count();
        same("lines", text.lines().count(), model.live.len() + rubbish)?;
        Ok(())
    }
}

/// As the host answers: the whole file is the method, an empty file has none.
fn tell(step: RevertStep) -> String {
    let target = match step {
        RevertStep::Decided(target) => target,
        RevertStep::NeedSpan { entry, file } if file.is_empty() => {
            after_span(entry, SpanAnswer::SelectorNotFound)
        }
        RevertStep::NeedSpan { entry, file } => after_span(entry, SpanAnswer::Found(&file)),
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    match target {
        RevertTarget::NoEntry => "no entry".to_owned(),
        RevertTarget::NoPrevSource => "nothing".to_owned(),
        RevertTarget::Remove(entry) => format!("remove {}", entry.seq),
        RevertTarget::ReinstallClass(body, entry) => format!("reinstall {} {}", entry.seq, text(body)),
        RevertTarget::Body(body, entry) => format!("body {} {}", entry.seq, text(body)),
    }
}

fn run(history: &[Op]) -> Result<(), String> {
    let temp = tempfile::TempDir::new().unwrap();
    let mut world = World::new(temp.path());
    let mut rubbish = true;
    for op in history {
        world.apply(op)?;
        rubbish &= !matches!(op, Op::Clear);
        let text = fs::read_to_string(world.dir.join("changes.jsonl")).unwrap();
        same("rubbish", text.contains(RUBBISH), rubbish)?;
    }
    // A last restart shows what the disk has of it all.
    world.apply(&Op::Restart)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_reads_as_the_model_says(history in histories()) {
        run(&history).map_err(TestCaseError::fail)?;
    }
}

/// A model that lets a fault pass proves nothing: each planted one must be found within a few histories.
#[test]
fn every_planted_fault_is_found() {
    let mut missed = Vec::new();
    for &seed in Seed::ALL {
        let mut runner = TestRunner::deterministic();
        let strategy = histories();
        let found = (0..400).any(|_| {
            let history = strategy.new_tree(&mut runner).unwrap().current();
            plant(Some(seed), || run(&history)).is_err()
        });
        if !found {
            missed.push(seed);
        }
    }
    assert_eq!(missed, []);
    let mut runner = TestRunner::deterministic();
    for _ in 0..20 {
        let history = histories().new_tree(&mut runner).unwrap().current();
        plant(None, || run(&history)).unwrap();
    }
}
