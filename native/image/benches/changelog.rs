//! Appends and opening, at both levels of durability, on the file system under the temporary folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use beamtalk_image::changelog::*;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

const WARM: Duration = Duration::from_millis(300);
const MEASURE: Duration = Duration::from_secs(1);
const BODY: &[u8] = &[b'x'; 300];

fn change(selector: &str) -> NewEntry<'_> {
    NewEntry {
        source: Some(BODY),
        prev_source: Some(BODY),
        ..NewEntry::new("Counter", Some(selector), Kind::Instance)
    }
}

fn open(dir: &Path, durability: Durability) -> ChangeLog {
    ChangeLog::open(Settings { durability, ..Settings::durable(dir) }).unwrap().0
}

fn fill(log: &ChangeLog, entries: usize) {
    for index in 0..entries {
        log.append(&change(&format!("m{index}"))).unwrap();
    }
}

fn appends(c: &mut Criterion) {
    let mut group = c.benchmark_group("append, two bodies of 300 bytes");
    group.throughput(Throughput::Elements(1)).sample_size(10).warm_up_time(WARM).measurement_time(MEASURE);
    for (name, durability) in [("os", Durability::Os), ("fsync", Durability::Fsync)] {
        // Cleared before it is full, so that no rotation falls into the measurement.
        group.bench_function(format!("{name}, below the bound"), |b| {
            let temp = TempDir::new().unwrap();
            let log = open(&temp.path().join("changes"), durability);
            b.iter_custom(|count| {
                let mut spent = Duration::ZERO;
                for _ in 0..count {
                    if log.view().len() >= 900 {
                        log.clear().unwrap();
                    }
                    let start = Instant::now();
                    black_box(log.append(&change("m")).unwrap());
                    spent += start.elapsed();
                }
                spent
            });
        });
        // Rotations included: over a hundred appends or more, each pays its share.
        group.bench_function(format!("{name}, past the bound"), |b| {
            let temp = TempDir::new().unwrap();
            let dir = temp.path().join("changes");
            fill(&open(&dir, Durability::Os), 1000);
            let log = open(&dir, durability);
            b.iter_custom(|count| {
                let turns = count.div_ceil(101) * 101;
                let start = Instant::now();
                for _ in 0..turns {
                    black_box(log.append(&change("m")).unwrap());
                }
                start.elapsed().mul_f64(count as f64 / turns as f64)
            });
        });
    }
    group.bench_function("memory", |b| {
        let (log, _) = ChangeLog::open(Settings::memory()).unwrap();
        b.iter(|| black_box(log.append(&change("m")).unwrap()));
    });
    group.finish();
}

fn tails(c: &mut Criterion) {
    let _ = c;
    for (name, durability, writers) in [
        ("os, one writer", Durability::Os, 1),
        ("os, two writers", Durability::Os, 2),
        ("fsync, one writer", Durability::Fsync, 1),
        ("fsync, two writers", Durability::Fsync, 2),
    ] {
        let temp = TempDir::new().unwrap();
        let log = open(&temp.path().join("changes"), durability);
        let mut times: Vec<Duration> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..writers)
                .map(|_| {
                    scope.spawn(|| {
                        (0..600 / writers)
                            .map(|_| {
                                let start = Instant::now();
                                log.append(&change("m")).unwrap();
                                start.elapsed()
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        times.sort();
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        eprintln!("append, {name}: median {:?}, p99 {:?}, worst {:?}", at(0.5), at(0.99), at(1.0));
    }
}

fn opening(c: &mut Criterion) {
    let mut group = c.benchmark_group("open 1,000 entries");
    group.sample_size(10).warm_up_time(WARM).measurement_time(MEASURE);
    let temp = TempDir::new().unwrap();
    let source = temp.path().join("counter.bt");
    fs::write(&source, BODY).unwrap();
    let source = source.to_str().unwrap();
    let dir = temp.path().join("changes");
    {
        let log = open(&dir, Durability::Os);
        for index in 0..1000 {
            let selector = format!("m{index}");
            let span = Some(Span { start: 0, end: 300 });
            log.append(&NewEntry { source_file: Some(source), span, ..change(&selector) }).unwrap();
        }
    }
    for (name, orphan_checks) in [("plain", false), ("with orphan checks", true)] {
        group.bench_function(name, |b| {
            b.iter_batched(
                || (),
                |()| {
                    let settings = Settings { orphan_checks, ..Settings::durable(&dir) };
                    let (log, report) = ChangeLog::open(settings).unwrap();
                    assert_eq!(report.entries, 1000);
                    log
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, appends, tails, opening);
criterion_main!(benches);
