//! What the model tests share: how often they run, how a difference is told, how seeded faults are hunted.

use std::fmt::Debug;

use beamtalk_image::Sym;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Histories that a property is tried with, and within which every seeded fault must be caught.
pub(crate) const CASES: u32 = 160;

pub(crate) fn sym(word: u32) -> Sym {
    Sym::new(word).unwrap()
}

pub(crate) fn config() -> Config {
    Config { cases: CASES, failure_persistence: None, ..Config::default() }
}

pub(crate) fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items
}

/// Fails with the lines that only one of the two has, which is what a reader of two large tables wants to
/// see.
pub(crate) fn same<T: Debug + PartialEq>(
    got: &T,
    wanted: &T,
    about: impl FnOnce() -> String,
) -> Result<(), TestCaseError> {
    if got == wanted {
        return Ok(());
    }
    let (got, wanted) = (format!("{got:#?}"), format!("{wanted:#?}"));
    let only = |mine: &str, others: &str, mark: char| -> String {
        let others: std::collections::HashSet<&str> = others.lines().collect();
        let lines = mine.lines().filter(|line| !others.contains(line)).take(20);
        lines.map(|line| format!("\n{mark} {line}")).collect()
    };
    let difference = only(&wanted, &got, '-') + &only(&got, &wanted, '+');
    Err(TestCaseError::fail(format!("{}: wanted (-) and got (+):{difference}", about())))
}

/// The faults that a comparison does not notice within the cases that it usually runs.
pub(crate) fn survivors<F: Debug + Copy, H: Strategy>(
    faults: impl IntoIterator<Item = F>,
    history: impl Fn() -> H,
    compare: impl Fn(F, H::Value) -> Result<(), TestCaseError>,
) -> Vec<String> {
    let survives = |fault: &F| {
        let config = Config { max_shrink_iters: 0, ..config() };
        // The same histories each time: a hunt that succeeds by luck is none.
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let caught =
            TestRunner::new_with_rng(config, rng).run(&history(), |history| compare(*fault, history));
        !matches!(caught, Err(TestError::Fail(..)))
    };
    faults.into_iter().filter(survives).map(|fault| format!("{fault:?}")).collect()
}
