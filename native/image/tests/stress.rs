//! Readers and writers at once: what a reader is promised while others write. Threads start at a barrier;
//! each test counts what its readers could judge, so that none passes by having seen nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use beamtalk_image::extensions::Extensions;
use beamtalk_image::protocols::{Conformance, Names, Protocols, Use};
use beamtalk_image::sym::SymHash;
use beamtalk_image::xref::{
    Method, MethodFacts, Provenance, RecvKind, RecvType, Reference, Refused, Send, SourceStatus, Xref,
};
use beamtalk_image::{Patience, Sym};

const READERS: usize = 3;

fn sym(word: u32) -> Sym {
    Sym::new(word).unwrap()
}

const CLASS: u32 = 1;
const SENT: u32 = 200;
const MENTIONED: u32 = 3;
const METHODS: u32 = 40;

/// Every row of the method carries the version in its line.
fn tagged(owner: u32, class_side: bool, selector: u32, version: u32, provenance: Provenance) -> Method {
    let send = Send {
        selector: sym(SENT),
        line: version,
        kind: RecvKind::ErlangFfi,
        target: Some(sym(300)),
        recv_type: RecvType::Dynamic,
    };
    let facts = MethodFacts {
        line: version,
        status: SourceStatus::Indexed,
        provenance,
        origin: None,
        extension_version: u64::from(version),
        sends: vec![send],
        references: vec![Reference { class: sym(MENTIONED), line: version }],
        unresolved: vec![],
    };
    Method::new(sym(owner), class_side, sym(selector), facts)
}

fn whole_class(owner: u32, version: u32) -> Vec<Method> {
    (0..METHODS).map(|n| tagged(owner, n % 2 == 1, 1_000 + n / 2, version, Provenance::ClassBody)).collect()
}

/// Writes until the last of the writers is done; readers go on meanwhile. Answers how often each reader read.
fn race(writers: Vec<Box<dyn FnOnce() + std::marker::Send + '_>>, read: impl Fn(usize) + Sync) -> Vec<usize> {
    let start = Barrier::new(writers.len() + READERS);
    let writing = AtomicUsize::new(writers.len());
    thread::scope(|scope| {
        for write in writers {
            scope.spawn(|| {
                // Counted down also when a writer fails, or the readers would never end.
                struct Done<'a>(&'a AtomicUsize);
                impl Drop for Done<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::Release);
                    }
                }
                let _done = Done(&writing);
                start.wait();
                write();
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (read, start, writing) = (&read, &start, &writing);
                scope.spawn(move || {
                    start.wait();
                    let mut rounds = 0;
                    while writing.load(Ordering::Acquire) > 0 {
                        read(reader);
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    })
}

/// Whole-class replacement is atomic in every kind of read, whoever else writes; versions only rise.
#[test]
fn a_class_is_never_seen_empty_torn_or_mixed() {
    const VERSIONS: u32 = 300;
    let index = Xref::default();
    index.open();
    index.register_class(sym(CLASS), whole_class(CLASS, 1)).unwrap();
    let latest: Vec<AtomicU64> = (0..READERS).map(|_| AtomicU64::new(0)).collect();
    let distinct: Vec<AtomicUsize> = (0..READERS).map(|_| AtomicUsize::new(0)).collect();

    let rounds = race(
        vec![
            Box::new(|| {
                for version in 2..=VERSIONS {
                    index.register_class(sym(CLASS), whole_class(CLASS, version)).unwrap();
                    let seen = index.view().method((sym(CLASS), false, sym(1_000))).map(|method| method.line);
                    assert_eq!(seen, Some(version), "a write that returned is not visible");
                }
            }),
            // Neighbours: another class in the same posting lists, and an extension that comes and goes.
            Box::new(|| {
                for version in 1..=VERSIONS {
                    index.register_class(sym(2), whole_class(2, version)).unwrap();
                    index.purge_class(sym(2)).unwrap();
                }
            }),
            Box::new(|| {
                for version in 1..=VERSIONS {
                    let extension = tagged(CLASS, false, 5_000, version, Provenance::Extension);
                    index.put_method(extension, false, Patience::Wait).unwrap();
                    index.purge_extension(sym(CLASS), sym(5_000), Patience::Wait).unwrap();
                }
            }),
        ],
        |reader| {
            let guard = index.view();
            let own =
                |method: &Method| method.owner == sym(CLASS) && method.provenance == Provenance::ClassBody;
            let class = [sym(CLASS)].into();
            let sides = [false, true].map(|side| {
                let methods =
                    guard.methods_of(&class).filter(|method| own(method) && method.class_side == side);
                methods.map(|method| method.line).collect::<Vec<_>>()
            });
            for (side, rows) in [false, true].into_iter().zip(&sides) {
                let listed =
                    guard.selectors(sym(CLASS), side, |first, second| first.cmp(&second), |all| all.len());
                assert!((rows.len()..=rows.len() + 1).contains(&listed), "{listed} selectors are listed");
            }
            let senders: Vec<u32> = guard
                .senders(sym(SENT), None)
                .filter(|row| own(row.method))
                .map(|row| match row.send {
                    beamtalk_image::xref::Found::Resolved(send) => send.line,
                    beamtalk_image::xref::Found::Unresolved(send) => send.line,
                })
                .collect();
            let references: Vec<u32> = guard
                .references(sym(MENTIONED))
                .filter(|(method, _)| own(method))
                .map(|(_, reference)| reference.line)
                .collect();
            let callers = guard.native_callers(Some(sym(300)), None, usize::MAX).unwrap();
            let callers: Vec<u32> =
                callers.into_iter().filter(|(method, _)| own(method)).map(|(_, line)| line).collect();
            let [instance, class_side] = sides;
            let version = instance[0];
            for (read, rows) in [("instance", &instance), ("class", &class_side)] {
                assert_eq!(rows.len(), METHODS as usize / 2, "{read} side: rows are missing");
                assert!(rows.iter().all(|line| *line == version), "{read} side mixes versions: {rows:?}");
            }
            for (read, rows) in [("senders", &senders), ("references", &references), ("callers", &callers)] {
                assert_eq!(rows.len(), METHODS as usize, "{read}: rows are missing");
                assert!(rows.iter().all(|line| *line == version), "{read} mix versions: {rows:?}");
            }
            let before = latest[reader].swap(guard.version(), Ordering::Relaxed);
            assert!(before <= guard.version(), "the version fell from {before} to {}", guard.version());
            if before < guard.version() {
                distinct[reader].fetch_add(1, Ordering::Relaxed);
            }
        },
    );
    let versions_seen: usize = distinct.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert!(versions_seen > 10, "{rounds:?} rounds saw only {versions_seen} versions");
}

/// Writers that refuse to wait retry, and nobody's write is lost or done twice.
#[test]
fn no_write_is_lost_among_impatient_writers() {
    const EACH: u32 = 200;
    let index = Xref::default();
    index.open();
    let version = index.view().version();
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for writer in 0..4u32 {
            let (index, start) = (&index, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..EACH {
                    loop {
                        let method =
                            tagged(CLASS, false, 1_000 + writer * EACH + n, 1, Provenance::PutMethod);
                        match index.put_method(method, false, Patience::Refuse) {
                            Ok(true) => break,
                            Err(Refused::Busy) => thread::yield_now(),
                            other => panic!("{other:?}"),
                        }
                    }
                }
            });
        }
    });
    let view = index.view();
    assert_eq!(view.method_count(sym(CLASS)), 4 * EACH as usize);
    assert_eq!(view.senders(sym(SENT), None).count(), 4 * EACH as usize);
    assert_eq!(view.version(), version + u64::from(4 * EACH), "a version for each write and no more");
}

/// Two owners that register one key at once: one of them replaces the other, and both are remembered.
#[test]
fn owners_that_meet_never_lose_the_conflict() {
    const ROUNDS: u32 = 500;
    let registry = Extensions::default();
    let owners = [sym(301), sym(302)];
    let start = Barrier::new(owners.len());
    let outcomes = thread::scope(|scope| {
        let writers = owners.map(|owner| {
            let (registry, start) = (&registry, &start);
            scope.spawn(move || {
                let register = |round: u32| {
                    start.wait();
                    registry.register((sym(1), sym(round)), round, owner, None, Patience::Wait).unwrap()
                };
                (1..=ROUNDS).map(register).collect::<Vec<_>>()
            })
        });
        writers.map(|writer| writer.join().unwrap())
    });
    let conflicts = registry.conflicts();
    assert_eq!(conflicts.len(), ROUNDS as usize);
    assert!(conflicts.iter().all(|(_, both)| **both == owners), "an owner is forgotten");
    let [first, second] = &outcomes;
    let mut versions = BTreeSet::new();
    for (round, (first, second)) in first.iter().zip(second).enumerate() {
        let (early, late, loser, winner) = if first.version < second.version {
            (first, second, owners[0], owners[1])
        } else {
            (second, first, owners[1], owners[0])
        };
        assert_eq!((early.replaced_owner, late.replaced_owner), (None, Some(loser)), "round {round}");
        let key = (sym(1), sym(u32::try_from(round).unwrap() + 1));
        let now = registry.lookup(key).unwrap();
        assert_eq!((now.owner, now.version), (winner, late.version), "round {round}");
        versions.extend([first.version, second.version]);
    }
    assert_eq!(versions.len(), 2 * ROUNDS as usize, "a version is used twice");
}

/// A record is swapped whole, and an entry that moves along a chain is on some level at every moment.
#[test]
fn a_function_is_never_paired_with_anothers_text() {
    const VERSIONS: u32 = 4_000;
    let registry = Extensions::default();
    let (upper, lower, selector) = (sym(1), sym(2), sym(200));
    let register = |class_key: Sym, version: u32| {
        let owner = sym(300 + version % 3);
        let source = version.to_le_bytes();
        registry
            .register((class_key, selector), version, owner, Some(source.into()), Patience::Wait)
            .unwrap();
    };
    register(lower, 1);
    let hits = AtomicUsize::new(0);
    let rounds = race(
        vec![Box::new(|| {
            for version in 2..=VERSIONS {
                let (to, from) = if version % 2 == 0 { (upper, lower) } else { (lower, upper) };
                register(to, version);
                registry.unregister((from, selector), Patience::Wait).unwrap();
            }
        })],
        |_| {
            let check = |hit: &beamtalk_image::extensions::Extension<u32>| {
                assert_eq!(hit.source.as_deref(), Some(&hit.fun.to_le_bytes()[..]));
                assert_eq!(hit.owner, sym(300 + hit.fun % 3));
                hits.fetch_add(1, Ordering::Relaxed);
            };
            let found = registry.with_first([upper, lower], selector, |_, hit| check(hit));
            assert!(found.is_some(), "the entry was on neither level");
            let found = registry.with_first([lower, upper], selector, |_, hit| check(hit));
            assert!(found.is_some(), "the entry was on neither level");
            registry.with((upper, selector), check);
            let sourced = registry.sourced();
            assert!((1..=2).contains(&sourced.len()), "{} entries", sourced.len());
            sourced.iter().for_each(|(_, hit)| check(hit));
        },
    );
    assert!(hits.load(Ordering::Relaxed) > 1_000, "only {rounds:?} rounds");
}

/// Registered keys are found at every moment while others come and go, also those that share a place with
/// them in the counts by which a look-up sees at once that there is nothing.
#[test]
fn a_registered_key_is_never_missed() {
    const ROUNDS: u32 = 100;
    let place = |selector: u32| SymHash.hash_one((sym(1), sym(selector))) % (1 << 17);
    let neighbours: Vec<u32> = (1..3_000_000).filter(|selector| place(*selector) == place(1)).collect();
    assert!(neighbours.len() > 8, "only {} keys share a place", neighbours.len());
    let (stays, moves) = neighbours.split_at(2);
    let registry = Extensions::default();
    let register = |selector: u32| {
        registry.register((sym(1), sym(selector)), selector, sym(300), None, Patience::Wait).unwrap()
    };
    for selector in stays {
        register(*selector);
    }
    let rounds = race(
        vec![Box::new(|| {
            for _ in 0..ROUNDS {
                for selector in moves {
                    register(*selector);
                    assert!(
                        registry.has((sym(1), sym(*selector))),
                        "a registration that returned is not visible"
                    );
                }
                for selector in moves {
                    registry.unregister((sym(1), sym(*selector)), Patience::Wait).unwrap();
                    assert!(
                        !registry.has((sym(1), sym(*selector))),
                        "a removal that returned is not visible"
                    );
                }
            }
        })],
        |_| {
            for selector in stays {
                assert!(registry.has((sym(1), sym(*selector))));
                assert_eq!(registry.with((sym(1), sym(*selector)), |hit| hit.fun), Some(*selector));
            }
        },
    );
    assert!(rounds.iter().sum::<usize>() > 1_000, "only {rounds:?} rounds");
    assert_eq!(registry.counts().entries, stays.len());
}

/// Once invalidation has returned, nobody is served an answer whose computation began before it.
#[test]
fn no_answer_survives_the_change_that_made_it_wrong() {
    const CHANGES: u64 = 1_500;
    let registry = Protocols::default();
    let (class, protocol) = (sym(100), sym(1));
    registry.register(protocol, (), Names { required: vec![sym(200)], ..Names::default() });
    // What the host would say: it changes first, then the registry is told, then the change counts as
    // published.
    let fact = AtomicU64::new(0);
    let published = AtomicU64::new(0);
    let judged = AtomicUsize::new(0);
    let right = |fact: u64| fact.is_multiple_of(2);
    let rounds = race(
        vec![Box::new(|| {
            for change in 1..=CHANGES {
                fact.store(change, Ordering::SeqCst);
                match change % 4 {
                    0 => registry.register(
                        protocol,
                        (),
                        Names { required: vec![sym(200)], ..Names::default() },
                    ),
                    1 => drop(registry.unregister_module(sym(999))),
                    2 => registry.register_uses(class, None, vec![Use { protocol, hash: None }]),
                    _ => registry.invalidate(),
                }
                published.store(change, Ordering::SeqCst);
                // Stand still until a reader has judged this state; bounded, so that a reader that failed ends the race.
                if change % 8 == 0 {
                    let seen = judged.load(Ordering::Relaxed);
                    for _ in 0..100_000 {
                        if judged.load(Ordering::Relaxed) > seen {
                            break;
                        }
                        thread::yield_now();
                    }
                }
            }
        })],
        |reader| {
            let before = published.load(Ordering::SeqCst);
            match registry.conformance(class, protocol) {
                Conformance::Known(answer) => {
                    // Only if nothing changed meanwhile is there one right answer.
                    if fact.load(Ordering::SeqCst) == before {
                        assert_eq!(answer, right(before), "a stale answer after {before} changes");
                        judged.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Conformance::Open(stamp) => {
                    let answer = right(fact.load(Ordering::SeqCst));
                    if reader == 0 {
                        // A slow host: the answer arrives after several changes.
                        thread::yield_now();
                    }
                    registry.remember(class, protocol, stamp, answer);
                }
            }
        },
    );
    assert!(
        judged.load(Ordering::Relaxed) > 100,
        "only {judged:?} answers could be judged in {rounds:?} rounds"
    );
}

/// The users index under writers of both of its directions.
#[test]
fn users_and_uses_agree_after_a_storm() {
    const ROUNDS: u32 = 200;
    let registry = Protocols::<()>::default();
    let used = |word: u32| Use { protocol: sym(word), hash: None };
    let writers = (0..4u32).map(|writer| -> Box<dyn FnOnce() + std::marker::Send> {
        let registry = &registry;
        Box::new(move || {
            let (class, module) = (sym(100 + writer), sym(300 + writer % 2));
            for round in 0..ROUNDS {
                let uses = vec![used(1 + round % 3), used(1 + (round + writer) % 3)];
                registry.register_uses(class, Some(module), uses);
                if round % 7 == writer {
                    registry.unregister_module(module);
                }
            }
            registry.register_uses(class, Some(sym(399)), vec![used(1)]);
        })
    });
    race(writers.collect(), |_| {
        for protocol in (1..=3).map(sym) {
            let users = registry.users(protocol);
            let distinct: BTreeSet<Sym> = users.iter().copied().collect();
            assert_eq!(users.len(), distinct.len(), "a user is named twice");
        }
    });
    let everybody: BTreeSet<Sym> = (100..104).map(sym).collect();
    assert_eq!(registry.users(sym(1)).into_iter().collect::<BTreeSet<_>>(), everybody);
    assert_eq!(registry.users(sym(2)).len() + registry.users(sym(3)).len(), 0);
    assert_eq!(registry.counts().users, everybody.len());
}
