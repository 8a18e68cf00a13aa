//! Files made up together with their declarations: the reader must find exactly these, in any order and layout.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod common;
use beamtalk_lang::ast::{Item, SlotKind};
use beamtalk_lang::facts::{self, Origin, Side};
use beamtalk_lang::parser::parse;
use common::{check_tree, codes};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Type {
    text: &'static str,
    names: &'static [&'static str],
}

const TYPES: [Type; 12] = [
    Type { text: "Integer", names: &["Integer"] },
    Type { text: "Integer | nil", names: &["Integer", "nil"] },
    Type { text: "Map(K, List(V))", names: &["Map", "K", "List", "V"] },
    Type { text: "Block(E, Boolean)", names: &["Block", "E", "Boolean"] },
    Type { text: "#on | #off", names: &[] },
    Type { text: "Valve class", names: &["Valve"] },
    Type { text: "Symbol \\ #on", names: &["Symbol"] },
    Type { text: "Pipe & Sealable & X", names: &["Pipe", "Sealable", "X"] },
    Type { text: "(A | B) & C", names: &["A", "B", "C"] },
    Type { text: "Self", names: &[] },
    Type { text: "Self class", names: &[] },
    Type { text: "List(\n      A,\n      B)", names: &["List", "A", "B"] },
];

#[derive(Clone, Debug)]
struct Header {
    modifiers: Vec<&'static str>,
    words: Vec<&'static str>,
    params: Vec<Option<Type>>,
    result: Option<Type>,
    wrapped: bool,
    extension_style: bool,
}

impl Header {
    fn selector(&self) -> String {
        self.words.concat()
    }

    fn class_side(&self) -> bool {
        self.modifiers.contains(&"class")
    }

    fn references(&self) -> Vec<&'static str> {
        let types = self.params.iter().flatten().chain(&self.result);
        types.flat_map(|ty| ty.names.iter().copied()).collect()
    }

    fn signature(&self) -> String {
        let mut text = String::new();
        for (i, word) in self.words.iter().enumerate() {
            if i > 0 {
                text.push_str(if self.wrapped { "\n      " } else { " " });
            }
            text.push_str(word);
            if let Some(ty) = self.params.get(i) {
                text.push_str(&format!(" p{i}"));
                text.push_str(&ty.as_ref().map_or_else(String::new, |ty| format!(" :: {}", ty.text)));
            }
        }
        if let Some(ty) = &self.result {
            text.push_str(if self.extension_style { " :: -> " } else { " -> " });
            text.push_str(ty.text);
        }
        text
    }

    fn text(&self) -> String {
        let modifiers: String = self.modifiers.iter().map(|m| format!("{m} ")).collect();
        format!("{modifiers}{}", self.signature())
    }
}

fn ty() -> impl Strategy<Value = Type> {
    prop::sample::select(&TYPES[..])
}

fn header() -> impl Strategy<Value = Header> {
    let unary = prop::sample::select(&["size", "class", "internal", "type", "native", "Upper", "_x"][..])
        .prop_map(|word| (vec![word], 0));
    let binary = prop::sample::select(&["+", "-", "**", "<=", "->", ">>", ",", "=", "&", "\\"][..])
        .prop_map(|word| (vec![word], 1));
    let part =
        prop::sample::select(&["at:", "put:", "uses:", "class:", "state:", "excluding:", "subclassOf:"][..]);
    let keyword = prop::collection::vec(part, 1..4).prop_map(|words| {
        let n = words.len();
        (words, n)
    });
    let modifiers = prop::sample::subsequence(vec!["class", "sealed", "internal"], 0..=3).prop_shuffle();
    let shape = prop_oneof![3 => unary, 1 => binary, 3 => keyword];
    (
        shape,
        modifiers,
        prop::collection::vec(prop::option::of(ty()), 3),
        prop::option::of(ty()),
        any::<(bool, bool)>(),
    )
        .prop_map(|((words, n), mut modifiers, mut params, result, (wrapped, extension_style))| {
            params.truncate(n);
            if words[0] == "->" {
                // `class -> x =>` is a method named `class` with a result.
                modifiers.retain(|m| *m == "sealed");
            }
            // A clause's or slot's word begins a method only if the whole header stands on its line.
            let on_one_line = matches!(words[0], "uses:" | "state:");
            let wrapped = wrapped && !on_one_line;
            let fits = |ty: &Type| !on_one_line || !ty.text.contains('\n');
            params.iter_mut().for_each(|ty| *ty = ty.take().filter(fits));
            let result = result.filter(fits);
            Header { modifiers, words, params, result, wrapped, extension_style }
        })
}

#[derive(Clone, Debug)]
enum Member {
    Slot(&'static str, &'static str, Option<Type>, Option<&'static str>),
    Method { doc: bool, header: Header, body: &'static str, sends: usize },
    Comment,
    Expect,
}

const BODIES: [(&str, usize); 8] = [
    (" 1", 0),
    (" self foo", 1),
    ("\n    self foo.\n    self bar", 2),
    (" @primitive \"x\"", 0),
    ("\n    x := self foo: [\n      ^ 1\n    ]\n\n    // end\n    x", 1),
    (" #{#a => 1, #b => self c}", 1),
    (" x match: [\n    #a -> self b\n    _ -> nil\n  ]", 1),
    (" self foo; bar. // tail", 2),
];

fn member() -> impl Strategy<Value = Member> {
    let slot = (
        prop::sample::select(&["field:", "state:", "classState:"][..]),
        prop::sample::select(&["a", "level", "class"][..]),
        prop::option::of(ty()),
        prop::option::of(prop::sample::select(
            &["1", "#(\n    1, 2)", "x foo: 1\n      bar: 2", "[:x | x]"][..],
        )),
    );
    prop_oneof![
        2 => slot.prop_map(|(word, name, ty, value)| Member::Slot(word, name, ty, value)),
        6 => (any::<bool>(), header(), prop::sample::select(&BODIES[..]))
            .prop_map(|(doc, header, (body, sends))| Member::Method { doc, header, body, sends }),
        1 => Just(Member::Comment),
        1 => Just(Member::Expect),
    ]
}

impl Member {
    fn text(&self) -> String {
        match self {
            Member::Slot(word, name, ty, value) => {
                let ty = ty.as_ref().map_or_else(String::new, |ty| format!(" :: {}", ty.text));
                let value = value.map_or_else(String::new, |value| format!(" = {value}"));
                format!("  {word} {name}{ty}{value}\n")
            }
            Member::Method { header, body, .. } => {
                format!("{}  {} =>{body}\n", self.doc_text(), header.text())
            }
            Member::Comment => "\n  // === Group ===\n\n".into(),
            Member::Expect => "  @expect dnu \"why\"\n".into(),
        }
    }

    fn doc_text(&self) -> &'static str {
        if matches!(self, Member::Method { doc: true, .. }) { "  /// One.\n  /// Two.\n" } else { "" }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_class_reads_as_it_was_made(
        modifiers in prop::sample::subsequence(vec!["abstract", "sealed", "typed", "internal"], 0..=4).prop_shuffle(),
        superclass in prop::sample::select(&["Value", "tools@Value", "List(Integer)", "nil"][..]),
        params in prop::sample::select(&["", "(A)", "(A, B :: Bound)"][..]),
        clauses in prop::sample::select(&["", " native: m", "\n  handleScope: #s", " native: m\n  handleScope: #s shapeVersion: 2"][..]),
        uses in prop::sample::subsequence(
            vec!["P", "tools@P(Integer)", "Q excluding: #(#a, #<)", "R overriding: #(#b) excluding: #()"], 0..=4),
        members in prop::collection::vec(member(), 0..8),
    ) {
        let mut source: String = modifiers.iter().map(|m| format!("{m} ")).collect();
        source.push_str(&format!("{superclass} subclass: Q{params}{clauses}\n"));
        uses.iter().for_each(|line| source.push_str(&format!("  uses: {line}\n")));
        let mut starts = Vec::new();
        for member in &members {
            starts.push(source.len());
            source.push_str(&member.text());
        }

        let parse = parse(source.as_bytes());
        check_tree(source.as_bytes(), &parse);
        prop_assert_eq!(codes(&source), [""; 0], "{}", source);
        let class = parse.tree.root().as_file().unwrap().classes().next().unwrap();
        prop_assert_eq!(parse.tree.root().as_file().unwrap().items().count(), 1);
        prop_assert_eq!(class.modifiers().map(|m| m.text).collect::<Vec<_>>(), modifiers);
        prop_assert_eq!(class.name().unwrap().text, "Q");
        prop_assert_eq!(class.type_params().count(), params.matches(['A', ',']).count());
        prop_assert_eq!(class.native().is_some(), clauses.contains("native"));
        prop_assert_eq!(class.handle_scope().is_some(), clauses.contains("handleScope"));
        prop_assert_eq!(class.shape_version().is_some(), clauses.contains("shapeVersion"));
        prop_assert_eq!(class.uses().count(), uses.len());

        let slots: Vec<_> = class
            .slots()
            .map(|s| (s.kind(), s.name().unwrap().text, s.ty().is_some(), s.default().is_some()))
            .collect();
        let made: Vec<_> = members
            .iter()
            .filter_map(|m| match m {
                Member::Slot(word, name, ty, value) => {
                    let kind = match *word {
                        "field:" => SlotKind::Field,
                        "state:" => SlotKind::State,
                        _ => SlotKind::ClassState,
                    };
                    Some((kind, *name, ty.is_some(), value.is_some()))
                }
                _ => None,
            })
            .collect();
        prop_assert_eq!(slots, made, "{}", source);

        let entries = facts::method_entries(&parse.tree);
        let mut entries = entries.iter().filter(|e| e.origin == Origin::ClassBody);
        for (member, start) in members.iter().zip(&starts) {
            let Member::Method { header, sends, .. } = member else { continue };
            let entry = entries.next().unwrap();
            prop_assert_eq!(&entry.selector, &header.selector(), "{}", source);
            prop_assert_eq!(entry.side == Side::Class, header.class_side(), "{}", source);
            prop_assert_eq!(entry.sends.len(), *sends, "{}", source);
            let references: Vec<_> = entry.references.iter().map(|r| r.class.as_str()).collect();
            prop_assert_eq!(references, header.references(), "{}", source);
            // Its source is its own lines with its docs.
            let text = member.text();
            prop_assert_eq!(entry.span.start as usize, *start, "{}", source);
            prop_assert_eq!(entry.span.slice(source.as_bytes()), text.as_bytes(), "{}", source);
            prop_assert_eq!(entry.line as usize, 1 + member.doc_text().lines().count());
        }
        prop_assert!(entries.next().is_none(), "{}", source);
    }

    #[test]
    fn a_protocol_reads_as_it_was_made(
        extending in prop::sample::select(&["", " extending: tools@P", "(E) extending: P", "(E)"][..]),
        members in prop::collection::vec((header(), prop::option::of(prop::sample::select(&BODIES[..]))), 0..8),
    ) {
        let mut source = format!("Protocol define: Q{extending}\n");
        let mut required = Vec::new();
        let mut provided = Vec::new();
        for (mut header, body) in members {
            header.modifiers.retain(|m| *m == "class" && body.is_none());
            // Without a body these are reserved, or a modifier.
            let reserved = matches!(header.words[0], "uses:" | "overriding:" | "state:" | "class" | "internal");
            if body.is_none() && reserved {
                continue;
            }
            let side = if header.class_side() { "class " } else { "" };
            match body {
                Some((body, _)) => {
                    source.push_str(&format!("  {} =>{body}\n", header.text()));
                    provided.push(header.selector());
                }
                None => {
                    source.push_str(&format!("  {}\n", header.text()));
                    required.push(format!("{side}{}", header.selector()));
                }
            }
        }
        let parse = parse(source.as_bytes());
        check_tree(source.as_bytes(), &parse);
        prop_assert_eq!(codes(&source), [""; 0], "{}", source);
        let items: Vec<_> = parse.tree.root().as_file().unwrap().items().collect();
        let [Item::Protocol(protocol)] = items[..] else { panic!("{items:?}") };
        let found: Vec<_> = protocol
            .requirements()
            .map(|r| format!("{}{}", if r.is_class_side() { "class " } else { "" }, r.selector_text()))
            .collect();
        prop_assert_eq!(found, required, "{}", source);
        let found: Vec<_> = protocol.provisions().map(|m| m.selector_text().into_owned()).collect();
        prop_assert_eq!(found, provided, "{}", source);
        prop_assert_eq!(protocol.extending().is_some(), extending.contains("extending"));
    }
}
