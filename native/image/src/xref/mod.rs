//! The cross-reference index: who defines, sends and references what.
//!
//! Readers hold one immutable [`View`] and see each class before or after a change, never between. Writers build the
//! next view from shared parts, one at a time, and swap it in; a version is never used twice.
//!
//! Rows of a class lie in two layers. The class's own rows come from compiled code and live patches, an extension's
//! rows from the packages that extend it. Only winners are in the index: the upper layer is reported, and removing it
//! shows the one beneath.

mod method;
mod method_set;
mod view;

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use crate::patience::{Busy, Patience};
use crate::sym::Sym;
pub use method::{
    LAST_LINE, Layer, Method, MethodFacts, MethodKey, Provenance, RecvKind, RecvType, RecvTypeRef, Reference,
    Send, SendRef, SourceStatus, UnresolvedSend, Word,
};
pub use view::{Counts, Found, SendRow, View};

/// Why a write was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The index is not open: nobody runs it, or it came to an orderly end.
    Closed,
    /// Another write is under way and the caller would not wait.
    Busy,
}

impl From<Busy> for Refused {
    fn from(_busy: Busy) -> Self {
        Self::Busy
    }
}

/// The index. All writes go through it, one at a time.
#[derive(Default)]
pub struct Xref {
    view: ArcSwap<View>,
    writer: Mutex<()>,
}

impl Xref {
    /// What readers see now. Takes no lock; what it answers never changes.
    pub fn view(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// Opens the index. One that is open already keeps what it holds; answers whether it was.
    pub fn open(&self) -> bool {
        let _one_writer = self.writer.lock();
        let now = self.view.load();
        let was_open = now.is_open();
        if !was_open {
            self.view.store(Arc::new(View::opened_after(&now)));
        }
        tracing::info!(kept = was_open, "cross-reference index open");
        was_open
    }

    /// Brings the index to an orderly end: empty and refusing writes. What is answered holds the old rows; drop it
    /// where a long drop does no harm.
    pub fn close(&self) -> Arc<View> {
        let _one_writer = self.writer.lock();
        let next = View::closed_after(&self.view.load());
        tracing::info!(version = next.version(), "cross-reference index closed");
        self.view.swap(Arc::new(next))
    }

    /// Empties the index and leaves it as open as it was. What is answered holds the old rows.
    pub fn clear(&self) -> Arc<View> {
        let _one_writer = self.writer.lock();
        let now = self.view.load();
        let next = if now.is_open() { View::opened_after(&now) } else { View::closed_after(&now) };
        self.view.swap(Arc::new(next))
    }

    fn edit<R>(&self, patience: Patience, change: impl FnOnce(&mut View) -> R) -> Result<R, Refused> {
        let (answer, superseded) = {
            let _one_writer = patience.lock(&self.writer)?;
            let now = self.view.load();
            if !now.is_open() {
                return Err(Refused::Closed);
            }
            let mut next = View::clone(&now);
            let answer = change(&mut next);
            (answer, self.view.swap(Arc::new(next)))
        };
        drop(superseded);
        Ok(answer)
    }

    /// Replaces all rows that the class itself defines; of two methods with one side and selector the first counts.
    /// Extension rows stay, and those that a purge had put away come back. Cost: the rows of the class, old and new.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn register_class(&self, class: Sym, methods: Vec<Method>) -> Result<(), Refused> {
        self.edit(Patience::Wait, |view| view.register_class(class, methods))
    }

    /// Removes every row that the class owns from every answer and forgets that it was indexed. Rows of extensions
    /// are put away: a registration that follows is a redefinition and shows them again.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn purge_class(&self, class: Sym) -> Result<(), Refused> {
        self.edit(Patience::Wait, |view| view.purge_class(class))
    }

    /// Removes the class altogether: rows of both layers, those put away, and recorded origins.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn forget_class(&self, class: Sym) -> Result<(), Refused> {
        self.edit(Patience::Wait, |view| view.forget_class(class))
    }

    /// Replaces the rows of one method in the layer of its provenance. Answers `false`, and changes nothing, for an
    /// extension that a later registration has replaced. With `completes` an extension is written only over the row
    /// of its own version. Cost: the rows of the method.
    ///
    /// # Errors
    /// [`Refused::Closed`], [`Refused::Busy`].
    pub fn put_method(&self, method: Method, completes: bool, patience: Patience) -> Result<bool, Refused> {
        self.edit(patience, |view| view.put_method(method, completes))
    }

    /// Removes the reported row of a method; one beneath it shows again. Unknown: no effect.
    ///
    /// # Errors
    /// [`Refused::Closed`], [`Refused::Busy`].
    pub fn purge_method(&self, key: MethodKey, patience: Patience) -> Result<(), Refused> {
        self.edit(patience, |view| view.purge_method(key))
    }

    /// Removes the extension's row of a method, shown or put away; the class's own row is never touched.
    ///
    /// # Errors
    /// [`Refused::Closed`], [`Refused::Busy`].
    pub fn purge_extension(&self, class_key: Sym, selector: Sym, patience: Patience) -> Result<(), Refused> {
        self.edit(patience, |view| view.purge_extension(class_key, selector))
    }

    /// States which of the class's instance methods come from which protocol: rows of the class's own text turn into
    /// the protocol's, now and at every registration until other origins are stated (ADR 0127 §12).
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn set_provenance(&self, class: Sym, origins: Vec<(Sym, Sym)>) -> Result<(), Refused> {
        self.edit(Patience::Wait, |view| view.set_provenance(class, origins))
    }

    /// Takes back the origins that name none of these protocols: a class has no methods of a protocol that it does not
    /// use.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn restrict_provenance(&self, class: Sym, protocols: &[Sym]) -> Result<(), Refused> {
        self.edit(Patience::Wait, |view| view.restrict_provenance(class, protocols))
    }
}
