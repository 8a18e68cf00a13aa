//! Reading a log file line by line, in bounded memory.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read};

use super::entry::{Entry, UnknownWord};
use super::io::{DiskFile, FileReader};

/// One line of the log as it stands on disk, without its newline.
#[derive(Debug)]
pub(crate) struct Line {
    /// The entry it is, if it is one that readers see.
    pub(crate) seq: Option<u64>,
    pub(crate) raw: Raw,
}

#[derive(Debug)]
pub(crate) enum Raw {
    Kept(Box<[u8]>),
    /// Too long to be kept in memory: where it stands in the current log file.
    Long {
        offset: u64,
        length: u64,
    },
}

/// A line that is no entry. It stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: u64,
    /// Its first byte in the file when it was read.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Why it is no entry.
    pub why: String,
}

/// The end of the file, if it is not a newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tail {
    /// A whole entry that merely lacks its newline, ending there.
    Unterminated { end: u64 },
    /// No entry: the text from `start` to `end`, then zeros up to the end of the file.
    Torn { start: u64, end: u64 },
}

#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) lines: Vec<Line>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) skipped: Vec<SkippedLine>,
    pub(crate) skipped_count: u64,
    pub(crate) unknown: Vec<UnknownWord>,
    pub(crate) tail: Option<Tail>,
    pub(crate) length: u64,
}

/// How many skipped lines and unknown words are listed one by one.
const LISTED: usize = 1000;
const CHUNK: usize = 1 << 18;

/// Reads a file whole. Lines over `max_line` bytes are no entries and are not kept in memory.
pub(crate) fn scan(file: &dyn DiskFile, max_line: u64) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut reader = BufReader::with_capacity(CHUNK, FileReader { file, offset: 0 });
    let mut line: Vec<u8> = Vec::new();
    let mut start: u64 = 0;
    let mut number: u64 = 0;
    loop {
        line.clear();
        let mut length = reader.by_ref().take(max_line + 1).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            break;
        }
        let mut ended = line.last() == Some(&b'\n');
        if !ended && length > max_line {
            length += reader.skip_until(b'\n')? as u64;
            let mut last = [0];
            file.read_at(start + length - 1, &mut last)?;
            ended = last == *b"\n";
        }
        if !ended {
            scan.tail(file, number + 1, start, length, &line, max_line)?;
            start += length;
            break;
        }
        number += 1;
        line.pop();
        scan.line(number, start, length - 1, &line, max_line);
        start += length;
    }
    scan.length = start;
    scan.settle();
    Ok(scan)
}

/// Where the text in a range ends and only zeros follow.
fn end_of_text(file: &dyn DiskFile, start: u64, mut end: u64) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    while end > start {
        let from = end.saturating_sub(CHUNK as u64).max(start);
        let want = usize::try_from(end - from).unwrap_or(CHUNK);
        let read = file.read_at(from, buffer.get_mut(..want).unwrap_or_default())?;
        let chunk = buffer.get(..read).unwrap_or_default();
        if let Some(index) = chunk.iter().rposition(|&byte| byte != 0) {
            return Ok(from + index as u64 + 1);
        }
        end = from;
    }
    Ok(start)
}

impl Scan {
    fn tail(
        &mut self,
        file: &dyn DiskFile,
        number: u64,
        start: u64,
        length: u64,
        line: &[u8],
        max_line: u64,
    ) -> io::Result<()> {
        let end = end_of_text(file, start, start + length)?;
        let text =
            usize::try_from(end - start).ok().and_then(|length| line.get(..length)).unwrap_or_default();
        let whole = end - start <= max_line && Entry::from_json(text, &mut Vec::new()).is_ok();
        self.tail = Some(if whole {
            self.line(number, start, end - start, text, max_line);
            Tail::Unterminated { end }
        } else {
            Tail::Torn { start, end }
        });
        Ok(())
    }

    fn line(&mut self, number: u64, offset: u64, length: u64, text: &[u8], max_line: u64) {
        if length > max_line {
            self.skip(number, offset, length, "longer than a line may be".to_owned());
            self.lines.push(Line { seq: None, raw: Raw::Long { offset, length } });
            return;
        }
        let raw = Raw::Kept(Box::from(text));
        if text.iter().all(u8::is_ascii_whitespace) {
            self.lines.push(Line { seq: None, raw });
            return;
        }
        let mut unknown = Vec::new();
        match Entry::from_json(text, &mut unknown) {
            Ok(entry) => {
                if self.unknown.len() < LISTED {
                    self.unknown.append(&mut unknown);
                }
                self.lines.push(Line { seq: Some(entry.seq), raw });
                self.entries.push(entry);
            }
            Err(why) => {
                self.skip(number, offset, length, why);
                self.lines.push(Line { seq: None, raw });
            }
        }
    }

    fn skip(&mut self, line: u64, offset: u64, length: u64, why: String) {
        self.skipped_count += 1;
        if self.skipped.len() < LISTED {
            self.skipped.push(SkippedLine { line, offset, length, why });
        }
    }

    /// Orders the entries. Of two lines with one number the later one is the entry; the other line stays on disk.
    fn settle(&mut self) {
        let sorted = self.entries.windows(2).all(|pair| matches!(pair, [a, b] if a.seq < b.seq));
        if sorted {
            return;
        }
        let mut seen = HashSet::with_capacity(self.entries.len());
        let mut place = self.entries.len();
        let mut doubles = HashSet::new();
        let mut skipped = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate().rev() {
            let Some(seq) = line.seq else { continue };
            place = place.saturating_sub(1);
            if !seen.insert(seq) {
                line.seq = None;
                doubles.insert(place);
                skipped.push((index as u64 + 1, seq));
            }
        }
        for (line, seq) in skipped.into_iter().rev() {
            self.skip(line, 0, 0, format!("seq {seq} stands in a later line, too"));
        }
        let mut place = 0;
        self.entries.retain(|_| {
            place += 1;
            !doubles.contains(&(place - 1))
        });
        self.entries.sort_by_key(|entry| entry.seq);
    }
}
