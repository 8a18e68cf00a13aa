//! Class files made up in the proportions of real ones (grammar reference §13): kinds of classes and methods, docs and
//! comments, sends by shape and receiver, literals, blocks, matches. The same seed gives the same text.
#![allow(dead_code, unreachable_pub, reason = "each test and benchmark uses a part of it")]

use std::fmt::Write;

pub struct Corpus {
    state: u64,
    out: String,
    lines: usize,
}

/// A class file of about `lines` lines.
pub fn class_file(lines: usize, seed: u64) -> String {
    let mut corpus =
        Corpus { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, out: String::new(), lines: 0 };
    corpus.file(lines);
    corpus.out
}

const NOUNS: [&str; 16] = [
    "tank", "level", "valve", "items", "count", "name", "total", "index", "queue", "limit", "result",
    "entry", "owner", "block", "amount", "other",
];
const CLASSES: [&str; 10] =
    ["Tank", "Integer", "String", "Valve", "Dictionary", "List", "Pump", "Error", "Boolean", "Gauge"];
const UNARY: [&str; 10] =
    ["size", "new", "class", "spawn", "isNil", "isEmpty", "printString", "first", "unwrap", "drain"];
const ONE: [&str; 8] = ["at:", "add:", "includes:", "assert:", "deny:", "collect:", "do:", "fill:"];
const TWO: [&str; 5] = ["assert:equals:", "at:put:", "inject:into:", "ifTrue:ifFalse:", "should:raise:"];
const BINARY: [(&str, u64); 8] =
    [("+", 815), (">", 340), ("++", 254), ("*", 246), ("=:=", 153), ("<", 112), ("==", 99), ("-", 76)];

impl Corpus {
    fn next(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % below.max(1)
    }

    fn percent(&mut self, p: u64) -> bool {
        self.next(100) < p
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len() as u64) as usize]
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
        self.lines += 1;
    }

    fn file(&mut self, lines: usize) {
        self.line("// Copyright of the example's makers");
        self.line("");
        self.line("/// What this class is for, in a sentence.");
        self.line("///");
        self.line("/// And in some more words, as real files have them.");
        let superclass = match self.next(754) {
            0..340 => "TestCase",
            340..518 => "Actor",
            518..659 => "Value",
            _ => "Object",
        };
        let modifier = if self.percent(12) {
            "typed "
        } else if self.percent(8) {
            "sealed "
        } else {
            ""
        };
        self.line(&format!("{modifier}{superclass} subclass: Gauge"));
        let slot = match superclass {
            "Actor" => Some("state:"),
            "Value" => Some("field:"),
            _ => None,
        };
        if let Some(slot) = slot {
            for _ in 0..1 + self.next(3) {
                let (name, class, value) = (self.pick(&NOUNS), self.pick(&CLASSES), self.next(100));
                self.line(&format!("  {slot} {name} :: {class} = {value}"));
            }
        }
        let mut nth = 0;
        while self.lines < lines {
            nth += 1;
            self.member(nth, superclass == "TestCase");
        }
    }

    fn member(&mut self, nth: usize, test: bool) {
        self.line("");
        if self.percent(8) {
            self.line("  // === A group of methods ===");
            self.line("");
        }
        if self.percent(30) {
            for _ in 0..1 + self.next(5) {
                self.line("  /// Answers what the receiver holds, or an error if it was never filled.");
            }
        }
        let mut header = String::from("  ");
        if self.percent(9) {
            header.push_str("class ");
        }
        if self.percent(4) {
            header.push_str("sealed ");
        }
        match self.next(100) {
            0..80 if test => write!(header, "testCase{nth}").unwrap(),
            0..80 => write!(header, "{}{nth}", self.pick(&NOUNS)).unwrap(),
            80..99 => {
                write!(header, "{}{nth}: {}", self.pick(&NOUNS), self.pick(&NOUNS)).unwrap();
                if self.percent(60) {
                    write!(header, " :: {}", self.pick(&CLASSES)).unwrap();
                }
                if self.percent(40) {
                    write!(header, " with: second").unwrap();
                }
            }
            _ => write!(header, "{} other{nth}", self.pick(&BINARY).0).unwrap(),
        }
        if self.percent(23) {
            write!(header, " -> {}", self.pick(&CLASSES)).unwrap();
            if self.percent(15) {
                header.push_str(" | nil");
            }
        }
        header.push_str(" =>");
        if self.percent(32) {
            let body = match self.next(10) {
                0 => "self delegate".to_string(),
                1 => "@primitive".to_string(),
                _ => self.expression(2),
            };
            self.line(&format!("{header} {body}"));
            return;
        }
        self.line(&header);
        for _ in 0..1 + self.next(6) {
            if self.percent(25) {
                self.line("    // Why the next line does what it does.");
            }
            let statement = self.statement();
            self.line(&format!("    {statement}"));
        }
    }

    fn statement(&mut self) -> String {
        match self.next(100) {
            0..15 => format!("{} := {}", self.pick(&NOUNS), self.expression(3)),
            15..18 => format!("self.{} := {}", self.pick(&NOUNS), self.expression(2)),
            18..20 => format!("^ {}", self.expression(2)),
            20..21 => {
                let (a, b) = (self.expression(1), self.expression(1));
                format!(
                    "{} match: [#on -> {a}; n :: Integer when: [n > 1] -> {b}; _ -> nil]",
                    self.pick(&NOUNS)
                )
            }
            21..22 => format!("self {}; {}; {} 3", self.pick(&UNARY), self.pick(&UNARY), self.pick(&ONE)),
            22..30 => format!(
                "{} {}\n      {} {}\n      into: {}",
                self.pick(&NOUNS),
                self.pick(&UNARY),
                self.pick(&ONE),
                self.expression(1),
                self.expression(1)
            ),
            30..62 => format!("self assert: ({}) equals: {}", self.expression(2), self.expression(1)),
            _ => self.expression(3),
        }
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.atom();
        }
        match self.next(100) {
            0..22 => self.atom(),
            22..44 => format!("{} {}", self.receiver(), self.pick(&UNARY)),
            44..56 => {
                let total = BINARY.iter().map(|b| b.1).sum();
                let mut at = self.next(total);
                let op = BINARY
                    .iter()
                    .find(|b| {
                        at < b.1 || {
                            at -= b.1;
                            false
                        }
                    })
                    .map_or("+", |b| b.0);
                format!("{} {op} {}", self.receiver(), self.atom())
            }
            56..74 => {
                let argument = self.expression(depth - 1);
                format!("{} {} ({argument})", self.receiver(), self.pick(&ONE))
            }
            74..86 => {
                let two = self.pick(&TWO);
                let (first, second) = two.split_once(':').unwrap();
                let (a, b) = (self.atom(), self.atom());
                format!("{} {first}: {a} {second} {b}", self.receiver())
            }
            86..96 => {
                let inner = self.expression(depth - 1);
                match self.next(3) {
                    0 => format!("[{inner}]"),
                    _ => format!("{} {} [:each | {inner}]", self.receiver(), self.pick(&ONE)),
                }
            }
            _ => {
                let inner = self.expression(depth - 1);
                match self.next(4) {
                    0 => format!("#{{#{} => {inner}, #b => 2}}", self.pick(&NOUNS)),
                    1 => format!("\"{} is {{{} size}}\"", self.pick(&NOUNS), self.pick(&NOUNS)),
                    _ => format!("#({inner}, 2, 3)"),
                }
            }
        }
    }

    fn receiver(&mut self) -> String {
        match self.next(100) {
            0..32 => "self".into(),
            32..35 => format!("(Erlang beamtalk_{})", self.pick(&NOUNS)),
            35..50 => self.pick(&CLASSES).into(),
            50..58 => format!("self.{}", self.pick(&NOUNS)),
            _ => self.pick(&NOUNS).into(),
        }
    }

    fn atom(&mut self) -> String {
        match self.next(100) {
            0..40 => self.next(1000).to_string(),
            40..52 => format!("\"{} of the {}\"", self.pick(&NOUNS), self.pick(&NOUNS)),
            52..64 => format!("#{}", self.pick(&NOUNS)),
            64..66 => "3.25".into(),
            66..67 => "$a".into(),
            67..68 => "-1".into(),
            68..76 => self.pick(&CLASSES).into(),
            _ => self.pick(&NOUNS).into(),
        }
    }
}
