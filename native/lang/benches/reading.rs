//! How fast class files are read: bare tokens, the tree (tokens included), and the facts of a tree.
//!
//! The files are made up in the proportions of real ones; see `tests/common/corpus.rs`.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "the corpus is written for tests")]

#[path = "../tests/common/corpus.rs"]
mod corpus;

use std::hint::black_box;
use std::time::Duration;

use beamtalk_lang::facts;
use beamtalk_lang::lexer::lex;
use beamtalk_lang::parser::parse;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn reading(c: &mut Criterion) {
    for lines in [50, 500, 5_000] {
        let source = corpus::class_file(lines, 11).into_bytes();
        let mut group = c.benchmark_group("reading");
        group.throughput(Throughput::Bytes(source.len() as u64));
        group.sample_size(30).measurement_time(Duration::from_secs(3));
        group.bench_with_input(BenchmarkId::new("tokens", lines), &source, |b, source| {
            b.iter(|| lex(black_box(source)));
        });
        group.bench_with_input(BenchmarkId::new("tree", lines), &source, |b, source| {
            b.iter(|| parse(black_box(source)));
        });
        let read = parse(&source);
        group.bench_with_input(BenchmarkId::new("facts", lines), &read, |b, read| {
            b.iter(|| facts::method_entries(black_box(&read.tree)));
        });
        group.finish();
    }
}

criterion_group!(benches, reading);
criterion_main!(benches);
