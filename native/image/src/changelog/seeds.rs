//! Faults that the model test plants on purpose, to show that it would find them.
//!
//! Outside the crate's own tests every question is answered with a constant `false`.

macro_rules! seeds {
    ($($name:ident,)*) => {
        /// A planted fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Seed { $($name,)* }

        #[cfg(test)]
        impl Seed {
            pub(crate) const ALL: &'static [Seed] = &[$(Seed::$name,)*];
        }
    };
}

seeds! {
    SideNotInKey,
    FlushedStillActive,
    PriorEpochStillActive,
    OldestSurvives,
    InactiveShadows,
    RevertTakesOldest,
    RevertIgnoresSide,
    RemoveAlthoughBodyWasRecorded,
    RotateOldestFirst,
    RotateNewestSurvivorFirst,
    PruneBodiesOfKeptEntries,
    RotationForgetsLines,
    MarkInMemoryOnly,
    ClearInMemoryOnly,
    EpochNotRaised,
    SeqRestartsAfterClear,
    EphemeralIsPending,
    LayoutCountsAsDifference,
    ComparisonOutlivesItsText,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn on(_seed: Seed) -> bool {
    false
}

#[cfg(test)]
pub(crate) use planted::{on, plant};

#[cfg(test)]
mod planted {
    use super::Seed;
    use std::cell::Cell;

    thread_local!(static PLANTED: Cell<Option<Seed>> = const { Cell::new(None) });

    pub(crate) fn on(seed: Seed) -> bool {
        PLANTED.get() == Some(seed)
    }

    /// Plants the fault in this thread while the closure runs.
    pub(crate) fn plant<T>(seed: Option<Seed>, run: impl FnOnce() -> T) -> T {
        struct Uproot;
        impl Drop for Uproot {
            fn drop(&mut self) {
                PLANTED.set(None);
            }
        }
        let _uproot = Uproot;
        PLANTED.set(seed);
        run()
    }
}
