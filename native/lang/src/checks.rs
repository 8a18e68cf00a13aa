//! Rules that a file must keep beyond its grammar, as far as the file alone can tell (grammar reference §6).

use std::collections::HashSet;

use crate::ast::{ClassDef, File, Item, Method, SlotKind, Word};
use crate::diag::{Code, Diagnostic, Severity};
use crate::tree::Tree;

/// A slot keyword that classes of this kind do not have.
pub const SLOT_KEYWORD: Code = Code::new("slot_keyword");
/// A method for an operator that is built in.
pub const BUILT_IN_OPERATOR: Code = Code::new("built_in_operator");
/// A class, protocol or alias named like another one of the file.
pub const DUPLICATE_NAME: Code = Code::new("duplicate_name");

/// The codes that [`file()`] may report.
pub const ALL: &[Code] = &[SLOT_KEYWORD, BUILT_IN_OPERATOR, DUPLICATE_NAME];

/// Who wrote a file: the standard library may define what others may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The standard library.
    Library,
    /// Anybody else.
    User,
}

/// The findings of a file, in its order:
///
/// * `state:` belongs to actors, `field:` to values, neither to other objects. The kind of a class is known here only if
///   its superclass is named `Actor`, `Value` or `Object`; nothing is said of others.
/// * `==`, `/=`, `=:=` and `=/=` are built in and never dispatched.
/// * Classes, protocols and aliases share one name space.
///
/// Cost: linear in the declarations; expressions are not looked at.
#[must_use]
pub fn file(tree: &Tree<'_>, author: Author) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    for item in tree.root().as_file().into_iter().flat_map(File::items) {
        let name = match item {
            Item::Class(class) => {
                slots(class, &mut found);
                if author == Author::User {
                    class.methods().for_each(|method| built_in(method, &mut found));
                }
                class.name()
            }
            Item::Protocol(protocol) => {
                if author == Author::User {
                    protocol.provisions().for_each(|method| built_in(method, &mut found));
                }
                protocol.name()
            }
            Item::Extension(extension) => {
                if author == Author::User {
                    extension.method().into_iter().for_each(|method| built_in(method, &mut found));
                }
                None
            }
            Item::Alias(alias) => alias.name(),
            _ => None,
        };
        if let Some(name) = name
            && !names.insert(name.text)
        {
            let message = format!("`{}` is declared twice in this file", name.text);
            found.push(error(
                DUPLICATE_NAME,
                name,
                message,
                "classes, protocols and aliases share their names",
            ));
        }
    }
    found
}

fn error(code: Code, at: Word<'_>, message: String, hint: &'static str) -> Diagnostic {
    Diagnostic {
        code,
        severity: Severity::Error,
        span: at.span,
        message: message.into(),
        hint: Some(hint.into()),
    }
}

fn slots(class: ClassDef<'_>, found: &mut Vec<Diagnostic>) {
    let Some(superclass) = class.superclass().and_then(|name| name.name()) else { return };
    let (kind, hint) = match superclass.text {
        "Actor" => (Some(SlotKind::State), "an actor's slots are declared by `state:`"),
        "Value" => (Some(SlotKind::Field), "a value's slots are declared by `field:`"),
        "Object" => (None, "make it a subclass of `Value` or `Actor`"),
        _ => return,
    };
    for slot in class.slots().filter(|s| s.kind() != SlotKind::ClassState && Some(s.kind()) != kind) {
        if let Some(word) = Word::first(slot.node()) {
            let message = format!("a subclass of `{}` has no `{}`", superclass.text, word.text);
            found.push(error(SLOT_KEYWORD, word, message, hint));
        }
    }
}

fn built_in(method: Method<'_>, found: &mut Vec<Diagnostic>) {
    let Some(word) = method.selector().and_then(|s| s.words().next()) else { return };
    if matches!(word.text, "==" | "/=" | "=:=" | "=/=") {
        let message = format!("`{}` is built in and cannot be defined", word.text);
        found.push(error(BUILT_IN_OPERATOR, word, message, "define a method of another name"));
    }
}
