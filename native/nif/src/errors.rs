//! From a panic to the log: what failed inside is told on the runtime's side, not on standard error alone.

use std::sync::Once;

use parking_lot::Mutex;

static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Keeps the text of a panic for whoever asks; the caller sees `error:nif_panicked`.
pub(crate) fn hand_panics_to_the_log() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            *LAST_PANIC.lock() = Some(info.to_string());
            before(info);
        }));
    });
}

/// The text of the last panic, once.
#[rustler::nif]
fn last_panic() -> Option<String> {
    LAST_PANIC.lock().take()
}
