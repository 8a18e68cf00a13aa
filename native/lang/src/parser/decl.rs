//! Files, classes, protocols, extensions, methods.

use super::expr::Until;
use super::lookahead::{Decl, MemberEnd, begins_selector};
use super::{Ctx, FILE, Parser, Place, is_word};
use crate::diag::code;
use crate::lexer::TokenKind;
use crate::span::Span;
use crate::tree::{Kids, NodeId, NodeKind};

/// Column of members whose first token does not stand first on its line, and where members are expected to stand.
const MEMBER_COLUMN: u32 = 2;

impl Parser<'_, '_> {
    pub(super) fn file(&mut self) -> NodeId {
        let mut kids = Kids::EMPTY;
        self.file_items(&mut kids);
        self.end_of_file(kids)
    }

    /// One method without a class.
    pub(super) fn fragment(&mut self) -> NodeId {
        let mut kids = Kids::EMPTY;
        if self.header(self.pos).is_some() {
            let ctx = Ctx { place: Place::Outside, ..FILE };
            let method = self.in_ctx(ctx, |p| p.method(true));
            self.nodes.append(&mut kids, method);
            if !self.at(TokenKind::Eof) {
                self.unexpected("the end of the method");
            }
        } else if !self.at(TokenKind::Eof) || self.toks.len() <= 1 {
            self.error_here(code::EXPECTED_NAME, "a method header with `=>` is expected here", None);
        }
        self.file_items(&mut kids);
        self.end_of_file(kids)
    }

    fn end_of_file(&mut self, kids: Kids) -> NodeId {
        let end = self.toks.len() as u32;
        self.nodes.add(NodeKind::File, 0, end, kids)
    }

    fn in_ctx<T>(&mut self, ctx: Ctx, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.ctx, ctx);
        let open = std::mem::take(&mut self.open);
        let answer = read(self);
        self.ctx = outer;
        self.open = open;
        answer
    }

    fn file_items(&mut self, kids: &mut Kids) {
        let mut before: Option<NodeId> = None;
        let mut definitions = 0;
        while !self.at(TokenKind::Eof) {
            let decl = self.decl_at(self.pos);
            if let Some(decl) = decl {
                if matches!(decl, Decl::Class | Decl::Protocol) {
                    definitions += 1;
                    if definitions == 2 {
                        self.error_here(
                            code::SEVERAL_DEFINITIONS,
                            "a file defines one class or one protocol",
                            Some("move this definition to a file of its own"),
                        );
                    }
                }
                let node = match decl {
                    Decl::Alias => self.alias(),
                    Decl::Protocol => self.protocol(),
                    Decl::Class => self.class(),
                    Decl::Extension => self.extension(),
                };
                self.nodes.append(kids, node);
                before = Some(node);
            } else if begins_selector(self.kind()) && self.header(self.pos).is_some() {
                self.error_here(
                    code::UNEXPECTED_TOKEN,
                    "a method stands outside of a class",
                    Some("write `Class >> selector => …`"),
                );
                let ctx = Ctx { place: Place::Outside, ..FILE };
                let method = self.in_ctx(ctx, |p| p.method(true));
                self.nodes.append(kids, method);
                before = Some(method);
            } else if self.at(TokenKind::Error)
                && before.is_some_and(|b| self.nodes.kind(b) == NodeKind::Error)
            {
                // One fault, however many characters it has.
                before = Some(self.recover(before, kids, "a statement"));
            } else if self.begins_expression() || self.at(TokenKind::Caret) {
                let statement = self.statement();
                self.nodes.append(kids, statement);
                before = Some(statement);
            } else if !self.eat(TokenKind::Period) {
                before = Some(self.recover(before, kids, "a declaration or a statement"));
            }
        }
    }

    // Names.

    /// `Name` or `package@Name`.
    fn qual_name(&mut self) -> NodeId {
        let first = self.here();
        if !self.at_word() {
            return self.missing(code::EXPECTED_NAME, "a name is missing here");
        }
        self.bump();
        if self.at(TokenKind::At) {
            self.bump();
            if self.at_word() {
                self.bump();
            } else {
                let gap = self.missing(code::EXPECTED_NAME, "a name is missing behind `@`");
                return self.node_of(NodeKind::QualName, first, &[gap]);
            }
        }
        self.node(NodeKind::QualName, first, Kids::EMPTY)
    }

    fn decl_name(&mut self) -> NodeId {
        if self.at_word() {
            return self.leaf(NodeKind::DeclName);
        }
        if self.at(TokenKind::Symbol) {
            self.error_here(
                code::EXPECTED_NAME,
                "a declared name is no symbol",
                Some("write the name without `#`"),
            );
            return self.leaf(NodeKind::Error);
        }
        self.missing(code::EXPECTED_NAME, "a name is missing here")
    }

    fn class_modifiers(&mut self, kids: &mut Kids) {
        while self.is_class_modifier(self.pos) && is_word(self.next_kind()) {
            let modifier = self.leaf(NodeKind::Modifier);
            self.nodes.append(kids, modifier);
        }
    }

    fn alias(&mut self) -> NodeId {
        let first = self.here();
        self.document(first);
        let mut kids = Kids::EMPTY;
        if self.text() == b"internal" {
            let modifier = self.leaf(NodeKind::Modifier);
            self.nodes.append(&mut kids, modifier);
        }
        self.bump();
        if self.tok().span().len() == 1 {
            self.error_here(
                code::ALIAS_NAME,
                "an alias is named by more than one letter",
                Some("single letters are type parameters"),
            );
        }
        let name = self.decl_name();
        self.nodes.append(&mut kids, name);
        self.bump();
        let ty = self.type_expr();
        self.nodes.append(&mut kids, ty);
        self.node(NodeKind::AliasDef, first, kids)
    }

    // Classes.

    fn class(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        self.document(first);
        let mut kids = Kids::EMPTY;
        self.class_modifiers(&mut kids);
        let superclass = self.qual_name();
        self.nodes.append(&mut kids, superclass);
        if self.at(K::LParen) {
            let args = self.type_args();
            self.nodes.append(&mut kids, args);
        }
        self.bump();
        let name = self.decl_name();
        self.nodes.append(&mut kids, name);
        if let Some(params) = self.type_params() {
            self.nodes.append(&mut kids, params);
        }
        self.class_clauses(&mut kids);
        let ctx = Ctx { place: Place::Class, h: MEMBER_COLUMN, brackets: 0, slot: false, map: false };
        self.in_ctx(ctx, |p| p.class_members(&mut kids));
        self.node(NodeKind::ClassDef, first, kids)
    }

    fn type_args(&mut self) -> NodeId {
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.type_list(&mut kids);
        self.node(NodeKind::TypeArgs, first, kids)
    }

    fn class_clauses(&mut self, kids: &mut Kids) {
        use TokenKind as K;
        let mut last = 0;
        while self.at(K::Keyword) {
            let first = self.here();
            let word = self.text();
            let (rank, kind, argument) = match word {
                b"native:" => (1, NodeKind::NativeClause, K::Ident),
                b"handleScope:" => (2, NodeKind::HandleScopeClause, K::Symbol),
                b"shapeVersion:" => (3, NodeKind::ShapeVersionClause, K::Integer),
                _ => return,
            };
            if rank <= last {
                self.error_here(
                    code::HEADER_CLAUSE,
                    "this header clause stands in the wrong place",
                    Some("the order is `native:`, `handleScope:`, `shapeVersion:`, each once"),
                );
            }
            last = last.max(rank);
            self.bump();
            let found = self.at(argument) || argument == K::Ident && self.at(K::Name);
            let clause = if found && !(rank == 1 && self.nl()) {
                self.bump();
                self.node(kind, first, Kids::EMPTY)
            } else {
                let gap = self.missing(code::HEADER_CLAUSE, "the argument of this header clause is missing");
                self.node_of(kind, first, &[gap])
            };
            self.nodes.append(kids, clause);
        }
    }

    fn class_members(&mut self, kids: &mut Kids) {
        use TokenKind as K;
        let mut seen = false;
        let mut column = MEMBER_COLUMN;
        loop {
            self.ctx = Ctx { place: Place::Class, h: column, brackets: 0, slot: false, map: false };
            let i = self.pos;
            if self.at(K::Eof) {
                return;
            }
            if self.eat(K::Period) {
                continue;
            }
            if self.decl_at(i).is_some() {
                return;
            }
            if self.at(K::AtExpect) {
                let expect = self.expect_member();
                self.nodes.append(kids, expect);
                continue;
            }
            // Reserved by line: a header would run across lines and read the next method into a `uses:`.
            let is_uses = self.uses_at(i);
            let is_slot = self.slot_at(i);
            let member = if !is_uses && (is_slot || self.header_at(i)) {
                column = self.tok().col().unwrap_or(MEMBER_COLUMN);
                self.ctx.h = column;
                seen = true;
                if is_slot { self.slot() } else { self.method(false) }
            } else if is_uses {
                column = self.tok().col().unwrap_or(MEMBER_COLUMN);
                self.ctx.h = column;
                if seen {
                    self.error_here(
                        code::USES_AFTER_MEMBER,
                        "`uses:` lines must come before state and method declarations",
                        Some("move this line directly below the class header"),
                    );
                } else if !self.nl() {
                    self.error_here(
                        code::BAD_USES_LINE,
                        "`uses:` must stand first on its line",
                        Some("put it on a line of its own below the header"),
                    );
                }
                self.uses_line()
            } else if self.tok().col() == Some(0) && !self.at(K::Keyword) {
                return;
            } else {
                if self.at(K::Keyword) {
                    let word = String::from_utf8_lossy(self.text()).into_owned();
                    self.error_here(
                        code::UNEXPECTED_KEYWORD_LINE,
                        format!("unexpected `{word}` in class body"),
                        Some("a member is a `uses:` line, a slot, or a method with `=>`"),
                    );
                } else {
                    self.unexpected("a slot or a method");
                }
                self.skip_to_member(column)
            };
            self.nodes.append(kids, member);
        }
    }

    /// An error node up to the next line that begins at or left of `column`.
    fn skip_to_member(&mut self, column: u32) -> NodeId {
        let first = self.here();
        while !self.at(TokenKind::Eof) {
            if self.here() > first && self.tok().col().is_some_and(|c| c <= column) {
                break;
            }
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    fn expect_member(&mut self) -> NodeId {
        let first = self.here();
        self.document(first);
        self.bump();
        self.expect_rest();
        self.node(NodeKind::Expect, first, Kids::EMPTY)
    }

    fn slot(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        self.document(first);
        let mut kids = Kids::EMPTY;
        self.bump();
        while self.at_word() && is_word(self.next_kind()) && !self.tok_at(self.pos + 1).nl() {
            let modifier = self.leaf(NodeKind::Modifier);
            self.nodes.append(&mut kids, modifier);
        }
        let name = self.decl_name();
        self.nodes.append(&mut kids, name);
        self.ctx.slot = true;
        if self.eat(K::DColon) {
            let ty = self.type_expr();
            self.nodes.append(&mut kids, ty);
        }
        // The next member may be a method named `=`.
        if self.at(K::Eq) && !self.at_boundary() {
            self.bump();
            let default = self.statement();
            self.nodes.append(&mut kids, default);
        }
        self.ctx.slot = false;
        self.end_of_line(&mut kids, "the end of the declaration");
        self.node(NodeKind::Slot, first, kids)
    }

    /// Takes what is left of a member's line as an error.
    fn end_of_line(&mut self, kids: &mut Kids, wanted: &'static str) {
        if matches!(self.kind(), TokenKind::Eof | TokenKind::Period) || self.nl() {
            return;
        }
        if self.header(self.pos).is_some() || self.slot_at(self.pos) {
            return;
        }
        self.unexpected(wanted);
        let skipped = self.skip_to_member(self.ctx.h);
        self.nodes.append(kids, skipped);
    }

    fn uses_line(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.bump();
        if self.nl() || !self.at_word() {
            let gap = self.missing(code::BAD_USES_LINE, "`uses:` needs a protocol's name on its line");
            self.nodes.append(&mut kids, gap);
        } else {
            let name = self.qual_name();
            self.nodes.append(&mut kids, name);
            if self.at(K::LParen) && !self.nl() {
                let args = self.type_args();
                self.nodes.append(&mut kids, args);
            }
        }
        let mut seen = [false; 3];
        while self.at(K::Keyword) && !self.nl() {
            let (kind, slot) = match self.text() {
                b"excluding:" => (NodeKind::ExcludingClause, 0),
                b"overriding:" => (NodeKind::OverridingClause, 1),
                b"aliasing:" => (NodeKind::AliasingClause, 2),
                _ => break,
            };
            if let Some(seen) = seen.get_mut(slot)
                && std::mem::replace(seen, true)
            {
                self.error_here(code::BAD_USES_LINE, "this clause stands twice", None);
            }
            let clause = self.uses_clause(kind);
            self.nodes.append(&mut kids, clause);
        }
        if !self.nl() && !matches!(self.kind(), K::Eof | K::Period) {
            if self.at(K::Comma) {
                let hint = Some("write a `uses:` line for each protocol");
                self.error_here(code::BAD_USES_LINE, "a `uses:` line names one protocol", hint);
            } else {
                self.unexpected("`excluding:`, `overriding:` or the end of the line");
            }
            let skipped = self.skip_to_member(self.ctx.h);
            self.nodes.append(&mut kids, skipped);
        }
        self.node(NodeKind::UsesLine, first, kids)
    }

    fn uses_clause(&mut self, kind: NodeKind) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.bump();
        let aliasing = kind == NodeKind::AliasingClause;
        let (open, close) = if aliasing { (K::HashBrace, K::RBrace) } else { (K::HashParen, K::RParen) };
        if !self.at(open) {
            let wanted = if aliasing { "`#{…}`" } else { "`#(…)`" };
            self.error_here(code::BAD_USES_LINE, format!("{wanted} is missing behind this clause"), None);
            let gap = self.empty_error();
            self.nodes.append(&mut kids, gap);
            return self.node(kind, first, kids);
        }
        let opener = self.here();
        self.open_bracket();
        while self.at(K::Symbol) {
            let entry = self.here();
            let symbol = self.leaf(NodeKind::Symbol);
            let entry = if aliasing {
                let source = if self.eat(K::FatArrow) && self.at(K::Symbol) {
                    self.leaf(NodeKind::Symbol)
                } else {
                    self.missing(code::BAD_USES_LINE, "`=>` and a symbol are missing here")
                };
                self.node_of(NodeKind::AliasPair, entry, &[symbol, source])
            } else {
                symbol
            };
            self.nodes.append(&mut kids, entry);
            if !self.group_separator(close, &mut kids) {
                break;
            }
        }
        self.close_bracket(close, opener, &mut kids);
        self.node(kind, first, kids)
    }

    // Protocols.

    fn protocol(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        self.document(first);
        let mut kids = Kids::EMPTY;
        self.class_modifiers(&mut kids);
        self.bump();
        self.bump();
        let name = self.decl_name();
        self.nodes.append(&mut kids, name);
        if let Some(params) = self.type_params() {
            self.nodes.append(&mut kids, params);
        }
        if self.at(K::Keyword) && self.text() == b"extending:" {
            let clause = self.here();
            self.bump();
            let parent = self.qual_name();
            let clause = self.node_of(NodeKind::ExtendingClause, clause, &[parent]);
            self.nodes.append(&mut kids, clause);
        }
        let ctx = Ctx { place: Place::Protocol, h: MEMBER_COLUMN, brackets: 0, slot: false, map: false };
        self.in_ctx(ctx, |p| p.protocol_members(&mut kids));
        self.node(NodeKind::ProtocolDef, first, kids)
    }

    /// The token that begins the next member of a protocol, seen from the member that begins at the current one.
    fn protocol_member_end(&mut self, column: u32) -> usize {
        // Several members may share a line, and those that do not begin theirs count as standing at the usual column.
        let memo = usize::from(self.tok().nl());
        let known = self.look.member_ends.get(memo).copied().unwrap_or_default();
        if known.column == column && (known.from..known.end).contains(&self.pos) {
            return known.end;
        }
        let mut i = self.pos + 1;
        while self.kind_at(i) != TokenKind::Eof && self.tok_at(i).col().is_none_or(|c| c > column) {
            i += 1;
        }
        if let Some(known) = self.look.member_ends.get_mut(memo) {
            *known = MemberEnd { column, from: self.pos, end: i };
        }
        i
    }

    fn protocol_members(&mut self, kids: &mut Kids) {
        use TokenKind as K;
        let mut inner = false;
        loop {
            let i = self.pos;
            if self.at(K::Eof) || self.decl_at(i).is_some() {
                return;
            }
            if self.eat(K::Period) {
                continue;
            }
            let column = self.tok().col().unwrap_or(MEMBER_COLUMN);
            self.ctx = Ctx { place: Place::Protocol, h: column, brackets: 0, slot: false, map: false };
            let end = self.protocol_member_end(column);
            let provided = self.look_until(end, |p| p.header(i).is_some());
            if column == 0 && inner && !provided {
                return;
            }
            inner |= column > 0;
            let reserved = self.at(K::Keyword)
                && matches!(self.text(), b"uses:" | b"overriding:")
                && !self.line_has_fat_arrow(i);
            let member = if self.at(K::AtExpect) {
                self.expect_member()
            } else if reserved {
                self.protocol_reserved_line()
            } else if self.slot_at(i) {
                self.slot()
            } else if provided
                || begins_selector(self.kind()) && self.look_until(end, |p| p.line_has_fat_arrow(i))
            {
                self.method(false)
            } else if begins_selector(self.kind()) {
                self.requirement(end)
            } else {
                self.unexpected("a signature or a method");
                self.skip_to_member(column)
            };
            self.nodes.append(kids, member);
        }
    }

    fn protocol_reserved_line(&mut self) -> NodeId {
        if self.text() == b"uses:" {
            return self.uses_line();
        }
        self.error_here(
            code::UNEXPECTED_KEYWORD_LINE,
            "unexpected `overriding:` in protocol body",
            Some("it stands only behind `uses:`, in a class"),
        );
        self.skip_to_member(self.ctx.h)
    }

    fn requirement(&mut self, end: usize) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        self.document(first);
        let mut kids = Kids::EMPTY;
        while self.at(K::Ident)
            && matches!(self.text(), b"class" | b"sealed" | b"internal")
            && self.pos + 1 < end
            && (begins_selector(self.next_kind()))
        {
            let modifier = self.leaf(NodeKind::Modifier);
            self.nodes.append(&mut kids, modifier);
        }
        let selector = self.selector(end);
        self.nodes.append(&mut kids, selector);
        if self.pos < end
            && let Some(ret) = self.return_type()
        {
            self.nodes.append(&mut kids, ret);
        }
        if self.pos < end && !self.at(K::Period) {
            self.unexpected("the end of the signature");
            let skipped = self.here();
            while self.pos < end {
                self.skip_unit();
            }
            let skipped = self.node(NodeKind::Error, skipped, Kids::EMPTY);
            self.nodes.append(&mut kids, skipped);
        }
        self.node(NodeKind::Requirement, first, kids)
    }

    // Methods.

    fn extension(&mut self) -> NodeId {
        let first = self.here();
        self.document(first);
        let ctx = Ctx { place: Place::Outside, ..FILE };
        let mut kids = Kids::EMPTY;
        let target = self.qual_name();
        self.nodes.append(&mut kids, target);
        if self.text() == b"class" {
            let side = self.leaf(NodeKind::Modifier);
            self.nodes.append(&mut kids, side);
        }
        self.bump();
        let method = self.in_ctx(ctx, |p| p.method(true));
        self.nodes.append(&mut kids, method);
        self.node(NodeKind::Extension, first, kids)
    }

    /// A method from its first token to its last statement. `outside` says that it stands in no class or protocol.
    fn method(&mut self, outside: bool) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        self.document(first);
        if !outside {
            self.ctx.h = self.tok().col().unwrap_or(MEMBER_COLUMN);
        }
        let mut kids = Kids::EMPTY;
        while self.is_method_modifier(self.pos) && begins_selector(self.next_kind()) {
            let modifier = self.leaf(NodeKind::Modifier);
            self.nodes.append(&mut kids, modifier);
        }
        let selector = self.selector(usize::MAX);
        self.nodes.append(&mut kids, selector);
        if let Some(ret) = self.return_type() {
            self.nodes.append(&mut kids, ret);
        }
        if !self.at(K::FatArrow) {
            self.error_here(code::BAD_TYPE, "this header cannot be read up to its `=>`", None);
            let skipped = self.skip_to_fat_arrow();
            self.nodes.append(&mut kids, skipped);
        }
        let arrow = self.tok().span();
        if self.eat(K::FatArrow) {
            let body_first = self.here();
            let mut statements = Kids::EMPTY;
            self.statements(Until::BodyEnd, &mut statements);
            if statements.is_empty() {
                let start = self.tok_at(first as usize).start;
                self.error(
                    code::EMPTY_METHOD_BODY,
                    Span::new(start, arrow.end),
                    "this method has no body",
                    Some("write a statement behind `=>`"),
                );
            }
            let body = self.node(NodeKind::Body, body_first, statements);
            self.nodes.append(&mut kids, body);
        }
        self.node(NodeKind::Method, first, kids)
    }

    fn skip_to_fat_arrow(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut depth = 0u32;
        while !matches!(self.kind(), K::Eof | K::HoleClose) {
            let kind = self.kind();
            if depth == 0 && kind == K::FatArrow || self.here() > first && depth == 0 && self.nl() {
                break;
            }
            if super::is_opener(kind) {
                depth += 1;
            } else if super::is_closer(kind) {
                depth = depth.saturating_sub(1);
            }
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    /// Selector words and parameters. Reads no token from `end` on.
    fn selector(&mut self, end: usize) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        match self.kind() {
            K::Ident | K::Name => self.bump(),
            K::Keyword => {
                while self.at(K::Keyword) && self.pos < end {
                    self.bump();
                    let param = self.param(end);
                    self.nodes.append(&mut kids, param);
                    if self.bad_param_rest(end) {
                        self.error_here(code::BAD_TYPE, "this parameter's type cannot be read", None);
                        let skipped = self.skip_param_rest(end);
                        self.nodes.append(&mut kids, skipped);
                    }
                }
            }
            kind if begins_selector(kind) => {
                self.bump();
                let param = self.param(end);
                self.nodes.append(&mut kids, param);
            }
            _ => {
                let gap = self.missing(code::EXPECTED_NAME, "a selector is missing here");
                self.nodes.append(&mut kids, gap);
            }
        }
        self.node(NodeKind::Selector, first, kids)
    }

    fn bad_param_rest(&self, end: usize) -> bool {
        use TokenKind as K;
        end == usize::MAX
            && !matches!(self.kind(), K::Keyword | K::FatArrow | K::Arrow | K::DColon | K::Eof)
            && !self.nl()
    }

    fn skip_param_rest(&mut self, end: usize) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        while self.pos < end
            && !matches!(self.kind(), K::Keyword | K::FatArrow | K::Arrow | K::Eof | K::HoleClose)
            && !(self.here() > first && self.nl())
        {
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    fn param(&mut self, end: usize) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        if self.pos >= end {
            return self.missing(code::EXPECTED_NAME, "a parameter name is missing here");
        }
        let old = match self.kind() {
            K::Keyword => true,
            kind if is_word(kind) => self.next_kind() == K::Colon,
            _ => return self.missing(code::EXPECTED_NAME, "a parameter name is missing here"),
        };
        if old {
            let hint = Some("write `name :: Type`");
            self.error_here(code::OLD_PARAMETER_TYPE, "a parameter's type stands behind `::`", hint);
            if !self.at(K::Keyword) {
                self.bump();
            }
            self.bump();
            let gap = self.empty_error();
            self.nodes.append(&mut kids, gap);
            let ty = self.type_expr();
            self.nodes.append(&mut kids, ty);
        } else {
            self.bump();
            // `:: ->` is the return type in the style of extensions.
            if self.at(K::DColon) && self.pos < end && self.next_kind() != K::Arrow {
                self.bump();
                let ty = self.type_expr();
                self.nodes.append(&mut kids, ty);
            }
        }
        self.node(NodeKind::Param, first, kids)
    }

    fn return_type(&mut self) -> Option<NodeId> {
        use TokenKind as K;
        let first = self.here();
        if self.at(K::DColon) && self.next_kind() == K::Arrow {
            self.bump();
        } else if self.at(K::DColon) && self.next_kind() == K::FatArrow {
            self.bump();
            let gap = self.missing(code::BAD_TYPE, "a return type is missing here");
            return Some(self.node_of(NodeKind::ReturnType, first, &[gap]));
        }
        if !self.eat(K::Arrow) {
            return None;
        }
        let ty = self.type_expr();
        Some(self.node_of(NodeKind::ReturnType, first, &[ty]))
    }

    /// Whether the method body being read ends before the current token. `by_newline` says that a statement precedes
    /// and only a line end separates it from here.
    pub(super) fn body_ends(&self, by_newline: bool) -> bool {
        use TokenKind as K;
        let i = self.pos;
        if matches!(self.kind(), K::Eof | K::HoleClose) {
            return true;
        }
        let col = self.tok().col();
        let member_column = col.is_none_or(|c| c <= self.ctx.h);
        match self.ctx.place {
            Place::Class => {
                if col == Some(0) {
                    return true;
                }
                if member_column
                    && (self.at(K::AtExpect) || self.header_at(i) || col.is_some() && self.at(K::Keyword))
                {
                    return true;
                }
            }
            Place::Protocol => {
                if col.is_some_and(|c| c <= self.ctx.h) || col.is_none() && self.header(i).is_some() {
                    return true;
                }
            }
            Place::Outside | Place::File => {
                if col == Some(0) && by_newline || self.header(i).is_some() {
                    return true;
                }
            }
        }
        if self.slot_at(i) {
            return true;
        }
        match self.decl_at(i) {
            None => false,
            Some(Decl::Alias) => self.ctx.place != Place::Class || member_column,
            Some(_) => true,
        }
    }
}
