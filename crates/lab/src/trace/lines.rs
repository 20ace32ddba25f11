//! The lines of a trace's text. Invariant: a line keeps the number that it has in the file; empty lines, comments and a
//! byte-order mark say nothing.

use super::TraceError;

/// How text in UTF-8 and in UTF-16 may begin.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xfe\xff", b"\xff\xfe"];

/// How comments begin.
const COMMENTS: [&str; 2] = ["#", "//"];

/// The bytes after the mark of UTF-8, if there is any.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes)
}

/// The text of a trace.
pub fn text_of(bytes: &[u8]) -> Result<&str, TraceError> {
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        let reason = "it is UTF-16, and not UTF-8: iconv -f UTF-16 -t UTF-8 converts it";
        return Err(TraceError { line: 1, reason: reason.into() });
    }
    let bytes = without_mark(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        TraceError { line, reason: "it is not UTF-8".into() }
    })
}

/// Whether a line is empty or a comment.
fn says_nothing(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || COMMENTS.iter().any(|comment| line.starts_with(comment))
}

/// The lines that say something, with their numbers.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !says_nothing(line))
}

/// The first line that says something.
pub fn first_line(bytes: &[u8]) -> Option<&str> {
    let lines = without_mark(bytes).split(|&byte| byte == b'\n');
    let mut texts = lines.map(|line| std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)));
    texts.find(|text| !text.is_ok_and(says_nothing))?.ok()
}
