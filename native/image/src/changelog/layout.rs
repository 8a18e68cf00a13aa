//! Texts compared without their layout.

use std::borrow::Cow;

/// The text without the white space at its end and without the indentation (spaces and tabs) that all its lines
/// share. Lines that hold only spaces and tabs have no say; they lose as much of the shared part as they have.
#[must_use]
pub fn normalise(text: &[u8]) -> Cow<'_, [u8]> {
    let text = trim_end(text);
    let shared = shared_indentation(text);
    if shared.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let common = line.iter().zip(shared).take_while(|(a, b)| a == b).count();
        out.extend_from_slice(line.get(common..).unwrap_or_default());
    }
    Cow::Owned(out)
}

/// Whether both texts are the same but for layout (see [`normalise`]).
#[must_use]
pub fn body_equal_ignoring_layout(one: &[u8], other: &[u8]) -> bool {
    if super::seeds::on(super::seeds::Seed::LayoutCountsAsDifference) {
        return one == other;
    }
    normalise(one) == normalise(other)
}

fn trim_end(mut text: &[u8]) -> &[u8] {
    // The white space of patterns in Unicode: ASCII's, next line, the two marks, and both separators.
    const WIDE: [&[u8]; 5] =
        [b"\xC2\x85", b"\xE2\x80\x8E", b"\xE2\x80\x8F", b"\xE2\x80\xA8", b"\xE2\x80\xA9"];
    loop {
        if let [rest @ .., b'\t'..=b'\r' | b' '] = text {
            text = rest;
        } else if let Some(rest) = WIDE.iter().find_map(|space| text.strip_suffix(*space)) {
            text = rest;
        } else {
            return text;
        }
    }
}

fn shared_indentation(text: &[u8]) -> &[u8] {
    let mut shared: Option<&[u8]> = None;
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let width = line.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        let (indentation, rest) = line.split_at(width);
        if rest.is_empty() {
            continue;
        }
        shared = Some(match shared {
            None => indentation,
            Some(shared) => {
                let common = shared.iter().zip(indentation).take_while(|(a, b)| a == b).count();
                shared.get(..common).unwrap_or_default()
            }
        });
    }
    shared.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_moved_to_the_right_is_no_difference() {
        assert!(body_equal_ignoring_layout(b"a =>\n  1\n  2\n", b"    a =>\n      1\n      2"));
        assert!(body_equal_ignoring_layout(b"\ta => 1", b"a => 1 \n\n"));
        assert!(body_equal_ignoring_layout(b"", b" \n"));
    }

    #[test]
    fn indentation_that_only_some_lines_have_is_a_difference() {
        assert!(!body_equal_ignoring_layout(b"a =>\n  1", b"  a =>\n1"));
        assert!(!body_equal_ignoring_layout(b"a =>\n\t1\n\t2", b"a =>\n  1\n  2"));
        assert!(!body_equal_ignoring_layout(b"a =>\n  1\n\n  2", b"a =>\n  1\n   \n  2"));
    }

    #[test]
    fn a_blank_line_shorter_than_the_indentation_does_not_stop_it() {
        assert_eq!(&*normalise(b"    a =>\n  \n      1\n"), b"a =>\n\n  1");
        assert_eq!(&*normalise(b"  a\r\n  b\r\n"), b"a\r\nb");
    }
}
