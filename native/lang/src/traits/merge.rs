//! Which provisions reach a class: steps 1 to 4 of flattening (ADR 0127 §3), with conflicts (§4).
//!
//! Nothing here looks at superclasses: whether a provision may replace what is inherited, and whether requirements are
//! met, is asked afterwards, of what [`merge`] leaves.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{ClassDef, Method, ProtocolDef, SlotKind, UsesLine};
use crate::facts::{Side, setter};
use crate::span::Span;

/// A method by its place in a class: side and selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodKey {
    /// Whether it is a class-side method.
    pub class_side: bool,
    /// Its selector.
    pub selector: String,
}

impl MethodKey {
    fn of(method: Method<'_>) -> Self {
        Self { class_side: method.is_class_side(), selector: method.selector_text().into_owned() }
    }

    fn instance(selector: &str) -> Self {
        Self { class_side: false, selector: selector.to_owned() }
    }

    /// Its side, as facts name it.
    #[must_use]
    pub fn side(&self) -> Side {
        if self.class_side { Side::Class } else { Side::Instance }
    }
}

/// A provision that the class takes over.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'p> {
    /// The protocol it comes from: the origin of the flattened method.
    pub origin: &'p str,
    /// The method in the protocol's file.
    pub method: Method<'p>,
}

/// What is wrong with the uses of a class. Spans lie in the class's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A used protocol is not known.
    UnknownProtocol {
        /// Its name as written, without package.
        protocol: String,
        /// The name in the `uses:` line.
        at: Span,
    },
    /// One protocol stands on two lines.
    UsedTwice {
        /// Its name.
        protocol: String,
        /// The later line.
        at: Span,
    },
    /// `excluding:` names what the protocol does not provide.
    NothingToExclude {
        /// The protocol of the line.
        protocol: String,
        /// The selector.
        selector: String,
        /// The symbol in the clause.
        at: Span,
    },
    /// Several protocols provide one method, and neither the class nor a clause decides.
    Conflict {
        /// The method.
        key: MethodKey,
        /// Every origin, sorted by name.
        origins: Vec<String>,
        /// The class's name.
        at: Span,
    },
}

/// What a class gets from its uses.
#[derive(Debug, Default)]
pub struct Merged<'p> {
    /// The provisions taken over; a method in conflict is not among them.
    pub taken: BTreeMap<MethodKey, Taken<'p>>,
    /// Provisions that the class's own methods or accessors replace, with their origins.
    pub replaced: BTreeMap<MethodKey, BTreeSet<&'p str>>,
    /// In the order of the lines, conflicts last and ordered by method.
    pub faults: Vec<Fault>,
}

/// The methods that the class body defines: written ones, and the accessors that a value class gets for its slots, which
/// count as written (§3).
#[must_use]
pub fn own_methods(class: ClassDef<'_>) -> BTreeSet<MethodKey> {
    let accessors =
        class.slots().filter(|slot| slot.kind() == SlotKind::Field).filter_map(|slot| slot.name());
    let accessors =
        accessors.flat_map(|name| [MethodKey::instance(name.text), MethodKey::instance(&setter(name.text))]);
    class.methods().map(MethodKey::of).chain(accessors).collect()
}

/// Collects the provisions of every protocol that the class uses, leaves out what its line excludes, lets the class's own
/// methods win, and finds the conflicts among the rest. `protocols` answers a protocol by its name without package. The
/// order of the lines changes only the order of faults. Cost: linear in class and protocols, but for sorting.
pub fn merge<'p>(class: ClassDef<'_>, protocols: impl Fn(&str) -> Option<ProtocolDef<'p>>) -> Merged<'p> {
    let mut merged = Merged::default();
    let mut provided: BTreeMap<MethodKey, BTreeMap<&'p str, Method<'p>>> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for line in class.uses() {
        let Some(name) = line.protocol().and_then(|protocol| protocol.name()) else { continue };
        let Some((origin, protocol)) =
            protocols(name.text).and_then(|protocol| Some((protocol.name()?.text, protocol)))
        else {
            merged.faults.push(Fault::UnknownProtocol { protocol: name.text.to_owned(), at: name.span });
            continue;
        };
        if !used.insert(origin) {
            merged.faults.push(Fault::UsedTwice { protocol: origin.to_owned(), at: name.span });
            continue;
        }
        let excluded = excluded(line, origin, protocol, &mut merged.faults);
        for method in protocol.provisions().filter(|method| !excluded.contains(&*method.selector_text())) {
            provided.entry(MethodKey::of(method)).or_default().insert(origin, method);
        }
    }
    let own = own_methods(class);
    let at = class.name().map_or_else(|| class.span(), |name| name.span);
    for (key, origins) in provided {
        if own.contains(&key) {
            merged.replaced.insert(key, origins.into_keys().collect());
            continue;
        }
        let mut each = origins.iter();
        match (each.next(), each.next()) {
            (Some((origin, method)), None) => {
                merged.taken.insert(key, Taken { origin, method: *method });
            }
            _ => {
                let origins = origins.into_keys().map(str::to_owned).collect();
                merged.faults.push(Fault::Conflict { key, origins, at });
            }
        }
    }
    merged
}

fn excluded(
    line: UsesLine<'_>,
    origin: &str,
    protocol: ProtocolDef<'_>,
    faults: &mut Vec<Fault>,
) -> BTreeSet<String> {
    let provides: BTreeSet<_> =
        protocol.provisions().map(|method| method.selector_text().into_owned()).collect();
    let mut excluded = BTreeSet::new();
    for symbol in line.excluding() {
        if provides.contains(&*symbol.text) {
            excluded.insert(symbol.text.into_owned());
        } else {
            let (protocol, selector) = (origin.to_owned(), symbol.text.into_owned());
            faults.push(Fault::NothingToExclude { protocol, selector, at: symbol.span });
        }
    }
    excluded
}
