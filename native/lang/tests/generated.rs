//! Methods made up together with what they send, name and touch: the reader must find exactly that, whatever the layout.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod common;
use beamtalk_lang::facts::{Recv, Side};
use common::{codes, entries, method_codes, methods, slice};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Expr {
    Word(&'static str),
    Class(&'static str),
    Super,
    Literal(&'static str),
    Slot(&'static str),
    Module(&'static str),
    Hole(Box<Expr>),
    Unary(Box<Expr>, &'static str),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Keyword(Box<Expr>, Vec<(&'static str, Expr)>, bool),
    Cascade(Box<Expr>, Vec<Message>),
    Block(Vec<&'static str>, Vec<Expr>),
    Collection(&'static str, Vec<Expr>),
    Map(Vec<(&'static str, Expr)>),
    Match(Box<Expr>, Vec<(&'static str, Expr)>),
    Assign(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
enum Message {
    Unary(&'static str),
    Binary(&'static str, Expr),
    Keyword(&'static str, Expr),
}

/// What an expression is: where it may stand without parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Primary,
    Unary,
    Binary,
    Keyword,
    Cascade,
    Statement,
}

fn precedence(op: &str) -> u32 {
    match op {
        "**" => 7,
        "*" | "/" | "%" => 6,
        "+" | "-" | "++" => 5,
        "<" | ">" | "<=" | ">=" => 4,
        "==" | "/=" | "=:=" | "=/=" => 3,
        ">>" => 2,
        _ => 1,
    }
}

const OPERATORS: [&str; 12] = ["**", "*", "%", "+", "-", "++", "<", ">=", "=:=", "/=", ">>", "->"];

impl Expr {
    fn level(&self) -> Level {
        match self {
            Expr::Unary(..) | Expr::Module(_) => Level::Unary,
            Expr::Binary(..) => Level::Binary,
            Expr::Keyword(..) | Expr::Match(..) => Level::Keyword,
            Expr::Cascade(..) => Level::Cascade,
            Expr::Assign(..) => Level::Statement,
            _ => Level::Primary,
        }
    }

    fn at(&self, highest: Level) -> String {
        if self.level() > highest { format!("({})", self.text()) } else { self.text() }
    }

    fn operand(&self, op: &str, left: bool) -> String {
        if let Expr::Binary(own, ..) = self {
            let (own, other) = (precedence(own), precedence(op));
            let fits = own > other || own == other && (left != (op == "**"));
            return if fits { self.text() } else { format!("({})", self.text()) };
        }
        self.at(Level::Unary)
    }

    fn text(&self) -> String {
        match self {
            Expr::Word(text) | Expr::Class(text) | Expr::Literal(text) => (*text).to_string(),
            Expr::Super => "super".to_string(),
            Expr::Slot(name) => format!("self.{name}"),
            Expr::Module(name) => format!("Erlang {name}"),
            Expr::Hole(inner) => format!("\"a {{{}}} \\{{b\\}} \"\"\"", inner.at(Level::Keyword)),
            Expr::Unary(receiver, word) => format!("{} {word}", receiver.at(Level::Unary)),
            Expr::Binary(op, left, right) => {
                format!("{} {op} {}", left.operand(op, true), right.operand(op, false))
            }
            Expr::Keyword(receiver, parts, wrapped) => {
                let gap = if *wrapped { "\n      " } else { " " };
                let parts: Vec<String> =
                    parts.iter().map(|(word, arg)| format!("{word} {}", arg.at(Level::Binary))).collect();
                format!("{}{gap}{}", receiver.at(Level::Binary), parts.join(gap))
            }
            Expr::Cascade(head, messages) => {
                let message = |message: &Message| match message {
                    Message::Unary(word) => (*word).to_string(),
                    Message::Binary(op, arg) => format!("{op} {}", arg.at(Level::Unary)),
                    Message::Keyword(word, arg) => format!("{word} {}", arg.at(Level::Binary)),
                };
                let messages: Vec<String> = messages.iter().map(message).collect();
                format!("{}; {}", head.text(), messages.join("; "))
            }
            Expr::Block(params, statements) => {
                let params: String = params.iter().map(|p| format!(":{p} ")).collect();
                let bar = if params.is_empty() { "" } else { "| " };
                format!("[{params}{bar}{}]", lines(statements, ". "))
            }
            Expr::Collection(open, elements) => {
                let close = if *open == "#(" { ")" } else { "]" };
                let elements: Vec<String> = elements.iter().map(|e| e.at(Level::Keyword)).collect();
                format!("{open}{}{close}", elements.join(", "))
            }
            Expr::Map(pairs) => {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(key, value)| format!("{key} => {}", value.at(Level::Keyword)))
                    .collect();
                format!("#{{{}}}", pairs.join(", "))
            }
            Expr::Match(receiver, arms) => {
                let arms: Vec<String> = arms
                    .iter()
                    .map(|(pattern, body)| format!("{pattern} -> {}", body.at(Level::Keyword)))
                    .collect();
                format!("{} match: [{}]", receiver.at(Level::Binary), arms.join(";\n      "))
            }
            Expr::Assign(target, value) => format!("{} := {}", target.text(), value.text()),
        }
    }

    fn recv(&self) -> Recv {
        match self {
            Expr::Word("self") => Recv::SelfRecv,
            Expr::Super => Recv::Super,
            Expr::Module(_) => Recv::ErlangFfi,
            _ => Recv::Other,
        }
    }

    fn module(&self) -> Option<String> {
        match self {
            Expr::Module(name) => Some((*name).to_string()),
            _ => None,
        }
    }

    fn facts(&self, out: &mut Facts) {
        let mut send = |selector: &str, receiver: &Expr| {
            out.sends.push((selector.to_string(), receiver.recv(), receiver.module()));
        };
        match self {
            Expr::Word(_) | Expr::Super | Expr::Literal(_) => {}
            Expr::Class(name) => out.references.push((*name).to_string()),
            Expr::Slot(name) => out.slots.push(((*name).to_string(), false)),
            Expr::Module(name) => {
                out.sends.push(((*name).to_string(), Recv::ErlangFfi, Some((*name).to_string())));
                out.references.push("Erlang".into());
            }
            Expr::Hole(inner) => inner.facts(out),
            Expr::Unary(receiver, word) => {
                send(word, receiver);
                receiver.facts(out);
            }
            Expr::Binary(op, left, right) => {
                send(op, left);
                left.facts(out);
                right.facts(out);
            }
            Expr::Keyword(receiver, parts, _) => {
                send(&parts.iter().map(|p| p.0).collect::<String>(), receiver);
                receiver.facts(out);
                parts.iter().for_each(|(_, arg)| arg.facts(out));
            }
            Expr::Cascade(head, messages) => {
                head.facts(out);
                let receiver = match head.as_ref() {
                    Expr::Unary(receiver, _) | Expr::Binary(_, receiver, _) | Expr::Keyword(receiver, ..) => {
                        receiver
                    }
                    other => panic!("{other:?} is no send"),
                };
                for message in messages {
                    let (selector, arg) = match message {
                        Message::Unary(word) => (word, None),
                        Message::Binary(word, arg) | Message::Keyword(word, arg) => (word, Some(arg)),
                    };
                    out.sends.push(((*selector).to_string(), receiver.recv(), receiver.module()));
                    if let Some(arg) = arg {
                        arg.facts(out);
                    }
                }
            }
            Expr::Block(_, inner) | Expr::Collection(_, inner) => inner.iter().for_each(|e| e.facts(out)),
            Expr::Map(pairs) => pairs.iter().for_each(|(_, value)| value.facts(out)),
            Expr::Match(receiver, arms) => {
                receiver.facts(out);
                for (pattern, body) in arms {
                    match *pattern {
                        "n :: Integer" => out.references.push("Integer".into()),
                        "Ok value: v" => out.references.push("Ok".into()),
                        _ => {}
                    }
                    body.facts(out);
                }
            }
            Expr::Assign(target, value) => {
                match target.as_ref() {
                    Expr::Slot(name) => out.slots.push(((*name).to_string(), true)),
                    other => other.facts(out),
                }
                value.facts(out);
            }
        }
    }
}

fn lines(statements: &[Expr], separator: &str) -> String {
    statements.iter().map(Expr::text).collect::<Vec<_>>().join(separator)
}

#[derive(Debug, Default, PartialEq)]
struct Facts {
    sends: Vec<(String, Recv, Option<String>)>,
    references: Vec<String>,
    slots: Vec<(String, bool)>,
}

fn of_entry(entry: beamtalk_lang::facts::MethodEntry) -> Facts {
    Facts {
        sends: entry.sends.into_iter().map(|s| (s.selector, s.recv, s.target_module)).collect(),
        references: entry.references.into_iter().map(|r| r.class).collect(),
        slots: entry.slot_accesses.into_iter().map(|s| (s.slot, s.write)).collect(),
    }
}

fn leaf() -> impl Strategy<Value = Expr> {
    prop_oneof![
        prop::sample::select(&["self", "x", "other", "nil", "true", "class", "type"][..])
            .prop_map(Expr::Word),
        prop::sample::select(&["Tank", "Integer", "Self"][..]).prop_map(Expr::Class),
        prop::sample::select(
            &[
                "1", "-1", "2.5", "16rFF", "1e3", "$a", "$\\n", "\"s\"", "\"\"\"\"", "\"a\nb\"", "#sym",
                "#at:put:", "#+"
            ][..]
        )
        .prop_map(Expr::Literal),
        prop::sample::select(&["level", "items"][..]).prop_map(Expr::Slot),
        prop::sample::select(&["lists", "math"][..]).prop_map(Expr::Module),
        Just(Expr::Super),
    ]
}

const PATTERNS: [&str; 9] =
    ["_", "nil", "n", "n :: Integer", "-1", "#on", "{a, #[_]}", "Ok value: v", "#[p, ...q]"];

/// A keyword send. `match:` before a bracket would be another construct.
fn keyword(receiver: Box<Expr>, mut parts: Vec<(&'static str, Expr)>, wrapped: bool) -> Expr {
    if let Some((word, arg)) = parts.first_mut()
        && *word == "match:"
        && arg.at(Level::Binary).starts_with('[')
    {
        *word = "at:";
    }
    Expr::Keyword(receiver, parts, wrapped)
}

fn expr() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(5, 40, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let unary = prop::sample::select(&["foo", "size", "class", "sealed"][..]);
        let op = prop::sample::select(&OPERATORS[..]);
        let part = || prop::sample::select(&["at:", "put:", "with:", "match:", "state:", "uses:"][..]);
        let send = prop_oneof![
            (boxed.clone(), unary.clone()).prop_map(|(r, w)| Expr::Unary(r, w)),
            (op.clone(), boxed.clone(), boxed.clone()).prop_map(|(o, l, r)| Expr::Binary(o, l, r)),
            (boxed.clone(), prop::collection::vec((part(), inner.clone()), 1..4), any::<bool>())
                .prop_map(|(r, parts, wrapped)| keyword(r, parts, wrapped)),
        ];
        let message = prop_oneof![
            unary.prop_map(Message::Unary),
            (op, inner.clone()).prop_map(|(o, a)| Message::Binary(o, a)),
            (part(), inner.clone()).prop_map(|(w, a)| Message::Keyword(w, a)),
        ];
        let many = |n| prop::collection::vec(inner.clone(), 0..n);
        prop_oneof![
            4 => send.clone(),
            1 => (send.prop_map(Box::new), prop::collection::vec(message, 1..3))
                .prop_map(|(head, messages)| Expr::Cascade(head, messages)),
            1 => boxed.clone().prop_map(Expr::Hole),
            1 => (prop::sample::subsequence(vec!["p", "q"], 0..=2), many(3))
                .prop_map(|(params, statements)| Expr::Block(params, statements)),
            1 => (prop::sample::select(&["#(", "#["][..]), many(3)).prop_map(|(o, e)| Expr::Collection(o, e)),
            1 => prop::collection::vec(
                (prop::sample::select(&["#a", "\"b\"", "(x)"][..]), inner.clone()), 0..3).prop_map(Expr::Map),
            1 => (boxed.clone(), prop::collection::vec(
                (prop::sample::select(&PATTERNS[..]), inner.clone()), 1..4))
                .prop_map(|(r, arms)| Expr::Match(r, arms)),
            1 => (prop_oneof![Just(Expr::Word("y")), Just(Expr::Slot("level"))], boxed)
                .prop_map(|(target, value)| Expr::Assign(Box::new(target), value)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_method_reads_as_it_was_made(
        statements in prop::collection::vec(expr(), 1..4),
        dots in any::<bool>(),
    ) {
        let separator = if dots { ".\n    " } else { "\n\n    // between\n    " };
        let method = format!("  /// Doc.\n  m =>\n    {}\n", lines(&statements, separator));
        let mut expected = Facts::default();
        statements.iter().for_each(|s| s.facts(&mut expected));

        prop_assert_eq!(method_codes(&method), [""; 0], "{}", method);
        let file = format!("Value subclass: Q\n  a => 1\n\n{method}  // after\n  z => 2\n");
        prop_assert_eq!(codes(&file), [""; 0], "{}", file);
        prop_assert_eq!(methods(&file), ["a", "m", "z"], "{}", file);
        prop_assert_eq!(slice(&file, "Q", "m", Side::Instance), Ok(method.clone()));
        let entry = entries(&file).into_iter().nth(1).unwrap();
        prop_assert_eq!(of_entry(entry), expected, "{}", file);

        let provided = format!("Protocol define: Q\n  a -> X\n{method}  < o :: Self\n");
        prop_assert_eq!(codes(&provided), [""; 0], "{}", provided);
        prop_assert_eq!(methods(&provided), ["m"], "{}", provided);
        prop_assert_eq!(slice(&provided, "Q", "m", Side::Instance), Ok(method));
    }
}
