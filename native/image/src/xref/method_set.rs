//! A persistent set of methods: the posting lists of the index and the tables of a class.
//!
//! Most selectors are sent by few methods and a few by very many, so a set grows through three shapes.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use equivalent::{Comparable, Equivalent};
use imbl::OrdSet;

use super::method::{Method, MethodKey};

/// From here on a set is a tree: replacing one method of many must not copy them all.
const MOST_IN_A_ROW: usize = 32;

/// A method that is ordered by its key, so that a tree need not hold the key beside it.
#[derive(Clone)]
struct Keyed(Arc<Method>);

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(&other.0.key())
    }
}

/// A key to look a method up by.
struct Key(MethodKey);

impl Equivalent<Keyed> for Key {
    fn equivalent(&self, method: &Keyed) -> bool {
        self.0 == method.0.key()
    }
}

impl Comparable<Keyed> for Key {
    fn compare(&self, method: &Keyed) -> Ordering {
        self.0.cmp(&method.0.key())
    }
}

#[derive(Clone)]
enum Shape {
    One(Arc<Method>),
    Row(Arc<[Arc<Method>]>),
    Tree(OrdSet<Keyed>),
}

/// Methods by key. Cloning shares; a change copies a path, or a row of at most [`MOST_IN_A_ROW`] pointers.
#[derive(Clone, Default)]
pub(crate) struct MethodSet(Option<Shape>);

impl MethodSet {
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            None => 0,
            Some(Shape::One(_)) => 1,
            Some(Shape::Row(row)) => row.len(),
            Some(Shape::Tree(tree)) => tree.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get(&self, key: MethodKey) -> Option<&Arc<Method>> {
        match self.0.as_ref()? {
            Shape::One(only) => (only.key() == key).then_some(only),
            Shape::Row(row) => row.iter().find(|method| method.key() == key),
            Shape::Tree(tree) => tree.get(&Key(key)).map(|method| &method.0),
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = &Arc<Method>> + '_> {
        match &self.0 {
            None => Box::new(std::iter::empty()),
            Some(Shape::One(only)) => Box::new(std::iter::once(only)),
            Some(Shape::Row(row)) => Box::new(row.iter()),
            Some(Shape::Tree(tree)) => Box::new(tree.iter().map(|method| &method.0)),
        }
    }

    /// Puts a method in, in place of one with its key.
    pub(crate) fn insert(&mut self, method: Arc<Method>) {
        self.0 = Some(match self.0.take() {
            None => Shape::One(method),
            Some(Shape::One(only)) if only.key() == method.key() => Shape::One(method),
            Some(Shape::One(only)) => Shape::Row(Arc::from([only, method])),
            Some(Shape::Row(row)) => with(&row, method),
            Some(Shape::Tree(mut tree)) => {
                tree.insert(Keyed(method));
                Shape::Tree(tree)
            }
        });
    }

    pub(crate) fn remove(&mut self, key: MethodKey) {
        self.0 = match self.0.take() {
            None => None,
            Some(Shape::One(only)) => (only.key() != key).then_some(Shape::One(only)),
            Some(Shape::Row(row)) if row.iter().all(|method| method.key() != key) => Some(Shape::Row(row)),
            Some(Shape::Row(row)) => {
                in_a_row(row.iter().filter(|method| method.key() != key).cloned().collect::<Vec<_>>())
            }
            Some(Shape::Tree(mut tree)) => {
                tree.remove(&Key(key));
                if tree.len() * 2 > MOST_IN_A_ROW {
                    Some(Shape::Tree(tree))
                } else {
                    in_a_row(tree.iter().map(|method| Arc::clone(&method.0)).collect())
                }
            }
        };
    }

    /// Bytes of the set itself, the methods aside.
    pub(crate) fn bytes(&self) -> usize {
        let pointer = size_of::<usize>();
        match &self.0 {
            None | Some(Shape::One(_)) => 0,
            Some(Shape::Row(row)) => (row.len() + 2) * pointer,
            // Nodes are on average two thirds full.
            Some(Shape::Tree(tree)) => tree.len() * size_of::<Keyed>() * 3 / 2,
        }
    }
}

impl FromIterator<Arc<Method>> for MethodSet {
    /// Of two methods with one key the first stays.
    fn from_iter<I: IntoIterator<Item = Arc<Method>>>(methods: I) -> Self {
        let mut seen = HashSet::new();
        let distinct: Vec<Arc<Method>> =
            methods.into_iter().filter(|method| seen.insert(method.key())).collect();
        if distinct.len() > MOST_IN_A_ROW {
            Self(Some(Shape::Tree(distinct.into_iter().map(Keyed).collect())))
        } else {
            Self(in_a_row(distinct))
        }
    }
}

fn in_a_row(methods: Vec<Arc<Method>>) -> Option<Shape> {
    let mut methods = methods;
    match methods.len() {
        0 => None,
        1 => methods.pop().map(Shape::One),
        _ => Some(Shape::Row(methods.into())),
    }
}

fn with(row: &[Arc<Method>], method: Arc<Method>) -> Shape {
    let key = method.key();
    let place = row.iter().position(|earlier| earlier.key() == key);
    if place.is_none() && row.len() == MOST_IN_A_ROW {
        let methods = row.iter().cloned().chain([method]);
        return Shape::Tree(methods.map(Keyed).collect());
    }
    let kept = row.iter().enumerate().map(|(index, earlier)| match place {
        Some(place) if place == index => Arc::clone(&method),
        _ => Arc::clone(earlier),
    });
    Shape::Row(kept.chain(place.is_none().then(|| Arc::clone(&method))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xref::method::tests_support::{bare, sym};
    use std::collections::BTreeMap;

    /// The shapes must agree with a plain map through every growth and shrinkage.
    #[test]
    fn growing_and_shrinking_through_all_shapes_loses_and_keeps_nothing_extra() {
        let mut set = MethodSet::default();
        let mut model = BTreeMap::new();
        let order = (1..=100u32).chain((1..=100).rev().step_by(3)).chain(1..=40);
        for (step, n) in order.enumerate() {
            let method = Arc::new(bare(n, step % 2 == 0, 7));
            if step % 5 == 4 {
                set.remove(method.key());
                model.remove(&method.key());
            } else {
                model.insert(method.key(), Arc::clone(&method));
                set.insert(method);
            }
            assert_eq!(set.len(), model.len());
            let mut got: Vec<_> = set.iter().map(|method| method.key()).collect();
            got.sort_unstable();
            assert_eq!(got, model.keys().copied().collect::<Vec<_>>());
        }
        for key in model.keys().copied().collect::<Vec<_>>() {
            assert!(set.get(key).is_some());
            set.remove(key);
        }
        assert!(set.is_empty());
    }

    #[test]
    fn of_two_methods_with_one_key_the_first_of_a_list_stays() {
        let mut first = bare(1, false, 2);
        first.line = 11;
        let set: MethodSet = [first, bare(1, false, 2)].map(Arc::new).into_iter().collect();
        assert_eq!(set.len(), 1);
        assert_eq!(set.get((sym(1), false, sym(2))).unwrap().line, 11);
    }
}
