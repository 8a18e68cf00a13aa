//! One recorded change, and the line of JSON that it is on disk.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::Error;

/// The largest sequence number and epoch: larger ones are not exact in every reader of JSON.
pub(crate) const MAX_NUMBER: u64 = (1 << 53) - 1;

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// The word that stands for it in the log.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

word_enum! {
    /// What a change did.
    Kind {
        /// A method of the instance side was installed.
        Instance = "instance",
        /// A method of the class side was installed.
        Class = "class",
        /// A class was made.
        NewClass = "new-class",
        /// A method was removed; the entry's side says from where.
        RemoveMethod = "remove-method",
        /// A class was removed.
        RemoveClass = "remove-class",
        /// A word that this version does not know. The line keeps it.
        Unknown = "unknown",
    }
}

word_enum! {
    /// The side of a class.
    Side {
        /// Its instances.
        Instance = "instance",
        /// The class itself.
        Class = "class",
    }
}

word_enum! {
    /// Whether the change is meant to last.
    Intent {
        /// To be flushed to a source file.
        Durable = "durable",
        /// A trial.
        Ephemeral = "ephemeral",
        /// A word that this version does not know. The line keeps it.
        Unknown = "unknown",
    }
}

word_enum! {
    /// Who made the change.
    AuthorKind {
        /// A person.
        Human = "human",
        /// A program acting for one.
        Agent = "agent",
        /// A word that this version does not know. The line keeps it.
        Unknown = "unknown",
    }
}

/// Byte offsets into a source file, half open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// What a caller hands in to be recorded. Texts are whole; names are text.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// The class name, never a tag.
    pub class: &'a str,
    /// The selector; `None` for changes of whole classes.
    pub selector: Option<&'a str>,
    /// What was done. [`Kind::Unknown`] is refused.
    pub kind: Kind,
    /// The side, for kinds that do not tell it.
    pub side: Option<Side>,
    /// The new text, any bytes.
    pub source: Option<&'a [u8]>,
    /// The earlier text, any bytes.
    pub prev_source: Option<&'a [u8]>,
    /// The source file that a flush would change.
    pub source_file: Option<&'a str>,
    /// Where in that file the earlier text stands.
    pub span: Option<Span>,
    /// Whether a flush may write it.
    pub flushable: bool,
    /// Why not.
    pub not_flushable_reason: Option<&'a str>,
    /// Whether it is meant to last.
    pub intent: Intent,
    /// Who made it.
    pub author: &'a str,
    /// What kind of author.
    pub author_kind: AuthorKind,
    /// For removals: the layer the method was removed from (`extension` or `local`).
    pub layer: Option<&'a str>,
    /// For removals of extensions: the package that contributed the method.
    pub owner: Option<&'a str>,
}

impl<'a> NewEntry<'a> {
    /// A durable, flushable change by a person, without texts; the other fields are then set one by one.
    #[must_use]
    pub fn new(class: &'a str, selector: Option<&'a str>, kind: Kind) -> Self {
        Self {
            class,
            selector,
            kind,
            side: None,
            source: None,
            prev_source: None,
            source_file: None,
            span: None,
            flushable: true,
            not_flushable_reason: None,
            intent: Intent::Durable,
            author: "repl",
            author_kind: AuthorKind::Human,
            layer: None,
            owner: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let unknown = |field| Err(Error::BadField { field, why: "no word of this version" });
        if self.kind == Kind::Unknown {
            return unknown("kind");
        }
        if self.intent == Intent::Unknown {
            return unknown("intent");
        }
        if self.author_kind == AuthorKind::Unknown {
            return unknown("author_kind");
        }
        match self.span {
            Some(span) if span.start > MAX_NUMBER || span.end > MAX_NUMBER => {
                Err(Error::BadField { field: "span", why: "offset out of range" })
            }
            _ => Ok(()),
        }
    }
}

/// A recorded change as readers see it. Never altered: a change of its flags is another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Unique in the workspace, rising.
    pub seq: u64,
    /// The run in which it was recorded.
    pub epoch: u64,
    /// Wall clock at that time, milliseconds since 1970. Says nothing about order.
    pub ts: i64,
    /// The class name.
    pub class: Box<str>,
    /// The selector, if any.
    pub selector: Option<Box<str>>,
    /// What was done.
    pub kind: Kind,
    /// The side as stored; see [`Entry::side`].
    pub stored_side: Option<Side>,
    /// Whether a flush may write it.
    pub flushable: bool,
    /// Why not.
    pub not_flushable_reason: Option<Box<str>>,
    /// Whether it was flushed, or a class removal was undone.
    pub flushed: bool,
    /// Whether it is meant to last.
    pub intent: Intent,
    /// Who made it.
    pub author: Box<str>,
    /// What kind of author.
    pub author_kind: AuthorKind,
    /// The source file that a flush would change.
    pub source_file: Option<Box<str>>,
    /// Where in that file the earlier text stands.
    pub span: Option<Span>,
    /// The body file of the new text, as recorded (not checked).
    pub source_ref: Option<Box<str>>,
    /// The body file of the earlier text, as recorded (not checked).
    pub prev_source_ref: Option<Box<str>>,
    /// The layer that a removal took the method from.
    pub layer: Option<Box<str>>,
    /// The package that had contributed a removed extension.
    pub owner: Option<Box<str>>,
    /// Whether the disk no longer holds what the entry was based on; judged when the log is opened, never stored.
    pub orphan: bool,
    /// Whether it was recorded in an earlier run; never stored.
    pub prior_epoch: bool,
}

/// A word in an enumerated field that this version does not know. The line keeps it; the entry reads as `unknown`,
/// an unknown side as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// The entry.
    pub seq: u64,
    /// The field, as it is called in the log.
    pub field: &'static str,
    /// The word.
    pub value: String,
}

#[derive(Deserialize)]
struct Wire<'a> {
    ts: i64,
    seq: u64,
    epoch: u64,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    author: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    intent: Cow<'a, str>,
    #[serde(borrow)]
    author_kind: Cow<'a, str>,
    flushable: bool,
    #[serde(borrow, default)]
    selector: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "sourceFile")]
    source_file: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    source_ref: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    prev_source_ref: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    not_flushable_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    side: Option<Cow<'a, str>>,
    #[serde(default)]
    span: Option<Span>,
    #[serde(default)]
    flushed: Option<bool>,
    #[serde(borrow, default)]
    layer: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    owner: Option<Cow<'a, str>>,
}

/// Where the value of `flushed` stands in a line.
#[derive(Deserialize)]
struct FlushedField<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    flushed: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Entry {
    /// The side that the entry addresses: the stored one, else the one its kind tells, else none.
    #[must_use]
    pub fn side(&self) -> Option<Side> {
        self.stored_side.or(match self.kind {
            Kind::Instance => Some(Side::Instance),
            Kind::Class => Some(Side::Class),
            _ => None,
        })
    }

    /// Whether the entry still stands for a difference between image and disk: of this run, neither orphaned nor
    /// flushed.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.prior_epoch && !self.orphan && !self.flushed
    }

    /// Whether a flush would write it: active, durable and flushable.
    #[must_use]
    pub fn is_flushable_pending(&self) -> bool {
        self.is_active() && self.intent == Intent::Durable && self.flushable
    }

    /// What the entry addresses; of two active entries with one target the one with the higher `seq` counts.
    #[must_use]
    pub fn target(&self) -> Target<'_> {
        let side = self.side();
        let side = if super::seeds::on(super::seeds::Seed::SideNotInKey) { None } else { side };
        Target { class: &self.class, selector: self.selector.as_deref(), side }
    }

    /// Reads a line (without its newline). The entry counts as of this run and not orphaned. Words that are not
    /// known are added to `unknown`.
    ///
    /// # Errors
    /// A sentence saying why the line is no entry: no JSON object, a mandatory field missing, a wrong type.
    pub fn from_json(line: &[u8], unknown: &mut Vec<UnknownWord>) -> Result<Self, String> {
        let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        let wire: Wire<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if wire.seq > MAX_NUMBER || wire.epoch > MAX_NUMBER {
            return Err("number out of range".to_owned());
        }
        let seq = wire.seq;
        let mut note = |field, value: &str| unknown.push(UnknownWord { seq, field, value: value.to_owned() });
        let kind = Kind::from_word(&wire.kind).unwrap_or_else(|| {
            note("kind", &wire.kind);
            Kind::Unknown
        });
        let intent = Intent::from_word(&wire.intent).unwrap_or_else(|| {
            note("intent", &wire.intent);
            Intent::Unknown
        });
        let author_kind = AuthorKind::from_word(&wire.author_kind).unwrap_or_else(|| {
            note("author_kind", &wire.author_kind);
            AuthorKind::Unknown
        });
        let stored_side = wire.side.as_deref().and_then(|word| {
            let side = Side::from_word(word);
            if side.is_none() {
                note("side", word);
            }
            side
        });
        let boxed = |text: Option<Cow<'_, str>>| text.map(|text| Box::from(&*text));
        Ok(Self {
            seq,
            epoch: wire.epoch,
            ts: wire.ts,
            class: Box::from(&*wire.class),
            selector: boxed(wire.selector),
            kind,
            stored_side,
            flushable: wire.flushable,
            not_flushable_reason: boxed(wire.not_flushable_reason),
            flushed: wire.flushed.unwrap_or(false),
            intent,
            author: Box::from(&*wire.author),
            author_kind,
            source_file: boxed(wire.source_file),
            span: wire.span,
            source_ref: boxed(wire.source_ref),
            prev_source_ref: boxed(wire.prev_source_ref),
            layer: boxed(wire.layer),
            owner: boxed(wire.owner),
            orphan: false,
            prior_epoch: false,
        })
    }

    /// The line for the entry, without newline: every field but `layer` and `owner`, which are written only where
    /// they say something; keys in the order of their bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut line = Line(Vec::with_capacity(400));
        line.text("author", &self.author);
        line.text("author_kind", self.author_kind.word());
        line.text("class", &self.class);
        line.number("epoch", self.epoch);
        line.flag("flushable", self.flushable);
        line.flag("flushed", self.flushed);
        line.text("intent", self.intent.word());
        line.text("kind", self.kind.word());
        if let Some(layer) = &self.layer {
            line.text("layer", layer);
        }
        line.optional("not_flushable_reason", self.not_flushable_reason.as_deref());
        if let Some(owner) = &self.owner {
            line.text("owner", owner);
        }
        line.optional("prev_source_ref", self.prev_source_ref.as_deref());
        line.optional("selector", self.selector.as_deref());
        line.number("seq", self.seq);
        line.optional("side", self.stored_side.map(Side::word));
        line.optional("sourceFile", self.source_file.as_deref());
        line.optional("source_ref", self.source_ref.as_deref());
        match self.span {
            Some(span) => {
                line.raw("span", format_args!("{{\"end\":{},\"start\":{}}}", span.end, span.start));
            }
            None => line.raw("span", format_args!("null")),
        }
        line.raw("ts", format_args!("{}", self.ts));
        line.0.push(b'}');
        line.0
    }
}

/// The class, selector and side that an entry addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target<'a> {
    /// The class name.
    pub class: &'a str,
    /// The selector, if any.
    pub selector: Option<&'a str>,
    /// The side, if any.
    pub side: Option<Side>,
}

/// The line with `flushed` set, every other byte as it was. `None` if the line is no object.
pub(crate) fn line_with_flushed(line: &[u8]) -> Option<Vec<u8>> {
    let field: FlushedField<'_> = serde_json::from_slice(line).ok()?;
    let (start, end, text): (usize, usize, &[u8]) = match field.flushed {
        Some(value) => {
            let start = (value.get().as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
            (start, start + value.get().len(), b"true")
        }
        None => {
            let start = line.iter().position(|&byte| byte == b'{')? + 1;
            (start, start, b"\"flushed\":true,")
        }
    };
    let mut changed = Vec::with_capacity(line.len() + text.len());
    changed.extend_from_slice(line.get(..start)?);
    changed.extend_from_slice(text);
    changed.extend_from_slice(line.get(end..)?);
    Some(changed)
}

struct Line(Vec<u8>);

impl Line {
    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        push_string(&mut self.0, key);
        self.0.push(b':');
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        push_string(&mut self.0, value);
    }

    fn optional(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, format_args!("null")),
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.raw(key, format_args!("{value}"));
    }

    fn number(&mut self, key: &str, value: u64) {
        self.raw(key, format_args!("{value}"));
    }

    fn raw(&mut self, key: &str, value: std::fmt::Arguments<'_>) {
        use std::io::Write;
        self.key(key);
        // Writing to a vector does not fail.
        let _ = self.0.write_fmt(value);
    }
}

/// Escapes what JSON demands, and no more, in the forms that earlier versions of the log have.
fn push_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'"');
    for &byte in text.as_bytes() {
        let escape = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x0C => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..=0x1F => {
                out.extend_from_slice(b"\\u00");
                out.push(if byte < 0x10 { b'0' } else { b'1' });
                out.extend(HEX.get(usize::from(byte & 0x0F)));
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escape]);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str = include_str!("../../../../test/fixtures/changelog/original/changes.jsonl");

    #[test]
    fn a_line_of_the_original_decoded_and_encoded_has_the_same_bytes() {
        for line in ORIGINAL.lines() {
            let entry = Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap();
            assert_eq!(String::from_utf8(entry.to_json()).unwrap(), line);
        }
        assert_eq!(ORIGINAL.lines().count(), 9);
    }

    #[test]
    fn a_control_character_in_a_selector_does_not_end_the_line() {
        let text = "a\nb\r\u{1f}\u{0}\u{7f}\u{2028}\"\\";
        let mut out = Vec::new();
        push_string(&mut out, text);
        assert!(!out.contains(&b'\n'));
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }

    #[test]
    fn marking_a_line_leaves_odd_spacing_unknown_fields_and_escapes_alone() {
        let line = br#" { "x":[1, 2.50], "flushed" : false , "author":"\u00e9"} "#;
        let marked = line_with_flushed(line).unwrap();
        assert_eq!(marked, br#" { "x":[1, 2.50], "flushed" : true , "author":"\u00e9"} "#);
        assert_eq!(line_with_flushed(b"{\"a\":1}").unwrap(), b"{\"flushed\":true,\"a\":1}");
        assert_eq!(line_with_flushed(b"{\"flushed\":null,\"a\":1}").unwrap(), b"{\"flushed\":true,\"a\":1}");
        assert_eq!(line_with_flushed(b"rubbish"), None);
    }

    #[test]
    fn a_number_beyond_every_reader_is_no_entry() {
        let line = r#"{"ts":1,"seq":18446744073709551615,"epoch":1,"class":"C","author":"a","kind":"instance","intent":"durable","author_kind":"human","flushable":true}"#;
        assert!(Entry::from_json(line.as_bytes(), &mut Vec::new()).is_err());
        let line = line.replace("18446744073709551615", "7");
        let entry = Entry::from_json(line.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!((entry.side(), entry.flushed), (Some(Side::Instance), false));
    }
}
