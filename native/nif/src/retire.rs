//! Where large values are dropped, so that no scheduler waits for it.

use std::any::Any;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// Drops the value on the library's own thread; here, if there can be no thread.
pub(crate) fn later(value: impl Send + 'static) {
    static THREAD: OnceLock<Option<Sender<Box<dyn Any + Send>>>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (sender, values) = channel::<Box<dyn Any + Send>>();
        let thread = std::thread::Builder::new().name("beamtalk_image_drop".into());
        thread.spawn(move || values.into_iter().for_each(drop)).ok().map(|_detached| sender)
    });
    if let Some(thread) = thread {
        // A thread that has gone gives the value back, and it is dropped with the error.
        let _ended = thread.send(Box::new(value));
    }
}
