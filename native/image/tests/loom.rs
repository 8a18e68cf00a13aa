//! Every interleaving of a few threads over the registries' own sources.
//!
//! The files of the crate are compiled here a second time, with names that make their cell and their lock
//! loom's: what is explored is the code that ships, not a copy of its idea. Two things are stand-ins.
//! [`ArcSwap`] is a lock around the pointer, so the cell is as strong as the real one promises to be and not
//! one bit weaker; and the presence counts of the extension registry are plain atomics of the standard
//! library, which loom does not see: their protocol is explored on its own, below, as a model.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p beamtalk-image --test loom loom_`
#![allow(unexpected_cfgs)]
#![cfg(loom)]
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

extern crate self as arc_swap;
extern crate self as parking_lot;

#[path = "../src/extensions.rs"]
pub mod extensions;
#[path = "../src/patience.rs"]
mod patience;
#[path = "../src/protocols.rs"]
pub mod protocols;
#[path = "../src/sym.rs"]
pub mod sym;
#[path = "../src/xref/mod.rs"]
pub mod xref;

use std::ops::Deref;
use std::sync::Arc;

pub use patience::{Busy, Patience};
pub use sym::Sym;

use loom::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use loom::sync::{Mutex as LoomMutex, MutexGuard as LoomGuard};
use loom::thread;

/// Stands in for the lock of the crate.
pub struct Mutex<T>(LoomMutex<T>);

pub type MutexGuard<'a, T> = LoomGuard<'a, T>;

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(LoomMutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Stands in for the swapped pointer: each load, store and swap is one indivisible step.
pub struct ArcSwap<T>(LoomMutex<Arc<T>>);

pub struct Guard<P>(P);

impl<P> Deref for Guard<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    pub fn from_pointee(value: T) -> Self {
        Self(LoomMutex::new(Arc::new(value)))
    }

    pub fn load(&self) -> Guard<Arc<T>> {
        Guard(Arc::clone(&self.0.lock().unwrap()))
    }

    pub fn store(&self, next: Arc<T>) {
        drop(self.swap(next));
    }

    pub fn swap(&self, next: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut *self.0.lock().unwrap(), next)
    }
}

impl<T: Default> Default for ArcSwap<T> {
    fn default() -> Self {
        Self::from_pointee(T::default())
    }
}

fn name(word: u32) -> Sym {
    Sym::new(word).unwrap()
}

fn explore(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // More switches than this find nothing new here and take minutes.
    builder.preemption_bound = Some(3);
    builder.check(check);
}

fn asking_for(selector: u32) -> protocols::Names {
    protocols::Names { required: vec![name(selector)], ..protocols::Names::default() }
}

/// The host's facts change, then the registry is told. Whoever asks after that gets the new answer, however
/// slowly anybody computed the old one.
#[test]
fn loom_an_answer_begun_before_an_invalidation_is_never_served_after_it() {
    explore(|| {
        let registry = Arc::new(protocols::Protocols::<()>::default());
        let (class, protocol) = (name(1), name(2));
        registry.register(protocol, (), asking_for(3));
        let fact = Arc::new(AtomicUsize::new(0));
        let asker = {
            let (registry, fact) = (Arc::clone(&registry), Arc::clone(&fact));
            thread::spawn(move || {
                if let protocols::Conformance::Open(stamp) = registry.conformance(class, protocol) {
                    let answer = fact.load(Ordering::SeqCst) == 1;
                    registry.remember(class, protocol, stamp, answer);
                }
            })
        };
        fact.store(1, Ordering::SeqCst);
        registry.invalidate();
        let told = registry.conformance(class, protocol);
        assert_ne!(told, protocols::Conformance::Known(false), "a stale answer was served");
        asker.join().unwrap();
        let told = registry.conformance(class, protocol);
        assert_ne!(told, protocols::Conformance::Known(false), "a stale answer was remembered");
    });
}

/// A definition changes while somebody answers about the earlier one.
#[test]
fn loom_an_answer_about_a_replaced_definition_is_never_served() {
    explore(|| {
        let registry = Arc::new(protocols::Protocols::<()>::default());
        let (class, protocol) = (name(1), name(2));
        registry.register(protocol, (), asking_for(3));
        let asker = {
            let registry = Arc::clone(&registry);
            thread::spawn(move || {
                if let protocols::Conformance::Open(stamp) = registry.conformance(class, protocol)
                    && let protocols::Asked::For(asked) = registry.requirements(protocol, 9)
                {
                    // The class understands what the first definition asks for, and nothing else.
                    let answer = asked.instance == [name(3)];
                    registry.remember(class, protocol, stamp, answer);
                }
            })
        };
        registry.register(protocol, (), asking_for(4));
        assert_ne!(registry.conformance(class, protocol), protocols::Conformance::Known(true));
        asker.join().unwrap();
        assert_ne!(registry.conformance(class, protocol), protocols::Conformance::Known(true));
    });
}

/// Two answers at once are both kept, for they belong to one stamp.
#[test]
fn loom_answers_given_at_once_are_both_remembered() {
    explore(|| {
        let registry = Arc::new(protocols::Protocols::<()>::default());
        let protocol = name(2);
        registry.register(protocol, (), asking_for(3));
        let answering = |class: u32| {
            let registry = Arc::clone(&registry);
            move || {
                let protocols::Conformance::Open(stamp) = registry.conformance(name(class), protocol) else {
                    panic!("answered before anybody asked");
                };
                assert!(registry.remember(name(class), protocol, stamp, true));
            }
        };
        let other = thread::spawn(answering(10));
        answering(11)();
        other.join().unwrap();
        for class in [10, 11] {
            let told = registry.conformance(name(class), protocol);
            assert_eq!(told, protocols::Conformance::Known(true), "an answer is lost");
        }
    });
}

/// Owners that register one key at once: one replaces the other and both are remembered.
#[test]
fn loom_two_owners_of_one_key_never_lose_the_conflict() {
    explore(|| {
        let registry = Arc::new(extensions::Extensions::<u32>::default());
        let key = (name(1), name(2));
        let registering = |owner: u32| {
            let registry = Arc::clone(&registry);
            move || registry.register(key, owner, name(owner), None, Patience::Wait).unwrap()
        };
        let other = thread::spawn(registering(10));
        let mine = registering(11)();
        let other = other.join().unwrap();
        let replaced = [mine.replaced_owner, other.replaced_owner];
        assert!(
            replaced == [Some(name(10)), None] && mine.version > other.version
                || replaced == [None, Some(name(11))] && other.version > mine.version,
            "both or neither replaced the other: {replaced:?}"
        );
        let conflicts = registry.conflicts();
        assert_eq!(conflicts.len(), 1);
        assert_eq!(*conflicts[0].1, [name(10), name(11)]);
    });
}

/// A class is replaced while a reader looks twice: each look sees one version, and the second none before the
/// first.
#[test]
fn loom_a_reader_of_a_class_goes_forward_only() {
    let bare = |line: u32| {
        let facts = xref::MethodFacts {
            line,
            status: xref::SourceStatus::Indexed,
            provenance: xref::Provenance::ClassBody,
            origin: None,
            extension_version: 0,
            sends: vec![],
            references: vec![],
            unresolved: vec![],
        };
        [1, 2].map(|selector| xref::Method::new(name(7), false, name(selector), facts.clone())).to_vec()
    };
    explore(move || {
        let index = Arc::new(xref::Xref::default());
        index.open();
        index.register_class(name(7), bare(1)).unwrap();
        let writer = {
            let index = Arc::clone(&index);
            thread::spawn(move || index.register_class(name(7), bare(2)).unwrap())
        };
        let look = || {
            let view = index.view();
            let lines = [1, 2].map(|selector| view.method((name(7), false, name(selector))).unwrap().line);
            assert_eq!(lines[0], lines[1], "one look sees two versions");
            (lines[0], view.version())
        };
        let (first, second) = (look(), look());
        assert!(first <= second, "{first:?} is followed by {second:?}");
        writer.join().unwrap();
        assert_eq!(look().0, 2);
    });
}

/// Impatient writers: a refused write changes nothing, an accepted one is there.
#[test]
fn loom_a_refused_write_changes_nothing() {
    explore(|| {
        let index = Arc::new(xref::Xref::default());
        index.open();
        let before = index.view().version();
        let put = |selector: u32| {
            let index = Arc::clone(&index);
            move || index.purge_method((name(7), false, name(selector)), Patience::Refuse).is_ok()
        };
        let other = thread::spawn(put(1));
        let mine = put(2)();
        let other = other.join().unwrap();
        let accepted = u64::from(mine) + u64::from(other);
        assert!(accepted >= 1, "both were refused");
        assert_eq!(index.view().version(), before + accepted);
    });
}

/// A model of the presence counts, not the code: one writer enters its key before publishing it and leaves
/// after taking it back; another key shares the place. A reader who knows that a registration returned must
/// find it.
#[test]
fn loom_model_a_key_in_a_shared_place_is_never_missed() {
    struct Model {
        place: AtomicU8,
        writer: Mutex<()>,
        state: ArcSwap<(bool, bool)>,
    }
    impl Model {
        fn enter(&self) {
            let _one_writer = self.writer.lock();
            self.place.store(self.place.load(Ordering::Relaxed) + 1, Ordering::Release);
            let now = **self.state.load();
            self.state.store(Arc::new((true, now.1)));
        }

        fn leave_the_other(&self) {
            let _one_writer = self.writer.lock();
            let now = **self.state.load();
            self.state.store(Arc::new((now.0, false)));
            self.place.store(self.place.load(Ordering::Relaxed) - 1, Ordering::Release);
        }

        fn has(&self) -> bool {
            self.place.load(Ordering::Acquire) > 0 && (**self.state.load()).0
        }
    }
    explore(|| {
        let model = Arc::new(Model {
            place: AtomicU8::new(1),
            writer: Mutex::new(()),
            state: ArcSwap::from_pointee((false, true)),
        });
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.leave_the_other())
        };
        model.enter();
        assert!(model.has(), "a registration that returned is not found");
        other.join().unwrap();
        assert!(model.has(), "the neighbour took the key along");
    });
}
