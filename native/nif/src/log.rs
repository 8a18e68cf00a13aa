//! From the core's `tracing` events to the BEAM's logger.
//!
//! Events are for diagnosis. They leave the thread that emits them through a bounded queue and reach Erlang from a
//! thread of their own; a full queue drops them and counts what it dropped. Switched off, an event costs one relaxed
//! load.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Once, OnceLock};

use parking_lot::Mutex;
use rustler::{Atom, Encoder, Env, Error, LocalPid, NifResult, OwnedEnv};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::atoms;

/// Events waiting for the thread.
const LONGEST_QUEUE: usize = 1_024;

/// What travels through the queue.
struct Line {
    level: Level,
    target: &'static str,
    text: String,
}

static QUEUE: OnceLock<SyncSender<Line>> = OnceLock::new();
static READER: Mutex<Option<LocalPid>> = Mutex::new(None);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static THRESHOLD: AtomicU8 = AtomicU8::new(OFF);
static START: Once = Once::new();

const OFF: u8 = 0;

fn filters() -> [(Atom, LevelFilter); 6] {
    [
        (atoms::off(), LevelFilter::OFF),
        (atoms::error(), LevelFilter::ERROR),
        (atoms::warning(), LevelFilter::WARN),
        (atoms::info(), LevelFilter::INFO),
        (atoms::debug(), LevelFilter::DEBUG),
        (atoms::trace(), LevelFilter::TRACE),
    ]
}

fn threshold() -> LevelFilter {
    let place = usize::from(THRESHOLD.load(Ordering::Relaxed));
    filters().get(place).map_or(LevelFilter::OFF, |(_, filter)| *filter)
}

/// Starts the thread and takes over what the core emits and what panics say. Once; a thread that cannot start leaves
/// the library without a log, which `info/0` shows as dropped lines.
pub(crate) fn start() {
    START.call_once(|| {
        let (sender, receiver) = sync_channel(LONGEST_QUEUE);
        let thread = std::thread::Builder::new().name("beamtalk_image_log".into());
        if thread.spawn(move || forward(&receiver)).is_err() {
            return;
        }
        if QUEUE.set(sender).is_ok() {
            let _already_set = tracing::subscriber::set_global_default(ToLogger);
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            enqueue(Line { level: Level::ERROR, target: "panic", text: panic.to_string() });
            before(panic);
        }));
    });
}

fn enqueue(line: Line) {
    if let Some(queue) = QUEUE.get()
        && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = queue.try_send(line)
    {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn forward(lines: &Receiver<Line>) {
    let mut env = OwnedEnv::new();
    while let Ok(line) = lines.recv() {
        let Some(reader) = *READER.lock() else {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let sent = env.send_and_clear(&reader, |env| {
            (atoms::beamtalk_image_log(), level_atom(line.level), line.target, line.text).encode(env)
        });
        if sent.is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn level_atom(level: Level) -> Atom {
    match level {
        Level::ERROR => atoms::error(),
        Level::WARN => atoms::warning(),
        Level::INFO => atoms::info(),
        // The logger knows nothing below debug.
        Level::DEBUG | Level::TRACE => atoms::debug(),
    }
}

struct ToLogger;

impl Subscriber for ToLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= threshold()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(threshold())
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let metadata = event.metadata();
        enqueue(Line { level: *metadata.level(), target: metadata.target(), text: text.0 });
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

/// The message of an event, then its fields as `name=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { ", " };
        let _never_fails = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
    }
}

/// Makes the calling process the one that events are sent to.
#[rustler::nif]
fn log_to_me(env: Env<'_>) -> Atom {
    *READER.lock() = Some(env.pid());
    atoms::ok()
}

/// `off`, `error`, `warning`, `info`, `debug` or `trace`.
#[rustler::nif(schedule = "DirtyCpu")]
fn log_level(level: Atom) -> NifResult<Atom> {
    let place = filters().iter().position(|(name, _)| *name == level).ok_or(Error::BadArg)?;
    THRESHOLD.store(u8::try_from(place).unwrap_or(OFF), Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
    Ok(atoms::ok())
}

/// Events that found no room or no reader.
#[rustler::nif]
fn log_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}
