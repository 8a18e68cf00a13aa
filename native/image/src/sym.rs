//! Names as opaque words (design decision: a name is an atom's word).

use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;

/// A name: a class key, a selector, an owner, a module. One word, copied freely, compared by identity.
///
/// The core never learns the text of a name; whoever owns the name table makes the words and turns them back.
/// The order of two `Sym`s is the order of their words and means nothing to a user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sym(NonZeroU32);

impl Sym {
    /// Makes a name from its word; zero is no name.
    #[must_use]
    pub fn new(word: u32) -> Option<Self> {
        NonZeroU32::new(word).map(Self)
    }

    /// The word the name was made from.
    #[must_use]
    pub fn word(self) -> u32 {
        self.0.get()
    }
}

impl std::hash::Hash for Sym {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.get());
    }
}

/// Hashes names with one multiplication a word.
///
/// Words come from a table that the image's own code fills, not from hostile text, so a keyed hash would only cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct SymHash;

/// The state behind [`SymHash`].
#[derive(Clone, Copy, Debug)]
pub struct SymHasher(u64);

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl BuildHasher for SymHash {
    type Hasher = SymHasher;

    fn build_hasher(&self) -> SymHasher {
        SymHasher(0)
    }
}

impl Hasher for SymHasher {
    fn write_u32(&mut self, word: u32) {
        // The rotation keeps (a, b) and (b, a) apart; the one in `finish` brings the well-mixed half down.
        self.0 = (self.0.rotate_left(29) ^ u64::from(word)).wrapping_mul(MULTIPLIER);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u32(u32::from(byte));
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u8(byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0.rotate_right(32)
    }
}

/// A persistent map keyed by names.
pub(crate) type Map<K, V> = imbl::GenericHashMap<K, V, SymHash, imbl::shared_ptr::DefaultSharedPtr>;

/// A persistent set of names.
pub(crate) type Set<K> = imbl::GenericHashSet<K, SymHash, imbl::shared_ptr::DefaultSharedPtr>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn hash(words: &[u32]) -> u64 {
        let mut hasher = SymHash.build_hasher();
        for &word in words {
            hasher.write_u32(word);
        }
        hasher.finish()
    }

    #[test]
    fn zero_is_no_name() {
        assert_eq!(Sym::new(0), None);
        assert_eq!(Sym::new(11).map(Sym::word), Some(11));
    }

    #[test]
    fn the_two_orders_of_a_pair_hash_apart() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
    }

    /// Atom words differ only above bit six; a table that looks at low bits must still tell them apart.
    #[test]
    fn words_with_equal_low_bits_spread_over_the_low_bits_of_the_hash() {
        let low: HashSet<u64> = (1..=4096u32).map(|index| hash(&[(index << 6) | 0x0B]) & 0xFFF).collect();
        assert!(low.len() > 2_300, "only {} of 4096 buckets hit", low.len());
    }
}
