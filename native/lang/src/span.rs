//! Byte spans.

/// Half-open range of byte offsets into one source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`; an inverted pair becomes the empty span at `start`.
    #[must_use]
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether the span holds no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Whether `inner` lies inside this span.
    #[must_use]
    pub fn contains(self, inner: Span) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// The bytes of the span; those inside `source` if the span reaches beyond it.
    #[must_use]
    pub fn slice(self, source: &[u8]) -> &[u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Translates offsets to lines and columns.
///
/// Building it costs one pass over the text, a query one binary search.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes `source`. Only LF ends a line.
    #[must_use]
    pub fn new(source: &[u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(source.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i as u32 + 1));
        Self { starts }
    }

    /// Line (from 1) of the byte at `offset`.
    #[must_use]
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|s| *s <= offset) as u32
    }

    /// Line and byte column, both from 1.
    #[must_use]
    pub fn line_col(&self, offset: u32) -> (u32, u32) {
        let line = self.line(offset);
        (line, offset - self.line_start(line) + 1)
    }

    /// Offset of the first byte of `line` (from 1); the last line's for a number beyond the text.
    #[must_use]
    pub fn line_start(&self, line: u32) -> u32 {
        let last = self.starts.len() - 1;
        self.starts.get((line.max(1) as usize - 1).min(last)).copied().unwrap_or(0)
    }
}
