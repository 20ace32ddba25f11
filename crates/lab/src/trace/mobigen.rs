//! MobiGen's traces of phones: `THREAD MICROSECONDS CALL ARGUMENTS`, thread after thread. Invariant: the times of a thread never
//! go back.
//!
//! Most descriptors have the same path, a placeholder: each of those is a file of its own here.

use super::calls::{Call, Called, Direction, Flags, path, trace};
use super::{Trace, TraceError};

/// The path of a descriptor whose file is not known.
const PLACEHOLDER: &str = "data/data";

/// What a call that failed has for its result.
const FAILED: &str = "-1";

/// Whether a line looks like one.
pub(super) fn begins(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    number() && number() && words.next().is_some_and(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
}

pub(super) fn read<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let mut calls = Vec::new();
    let mut before: Option<(u64, u64)> = None;
    for (line, text) in lines {
        let wrong = |reason| TraceError { line, reason };
        let (thread, at_us, call) = parse(text).map_err(wrong)?;
        if before.is_some_and(|(before, before_us)| before == thread && before_us > at_us) {
            return Err(wrong(format!("its time is before that of thread {thread}'s call above")));
        }
        before = Some((thread, at_us));
        let at_ns = at_us.checked_mul(1000).ok_or_else(|| wrong("its time is too large".into()))?;
        // Threads share their descriptors.
        calls.extend(call.map(|call| Called { line, at_ns, process: 0, call }));
    }
    trace(calls)
}

/// Thread, time and call of a line; `None` for a call that moves nothing, or that failed.
fn parse(text: &str) -> Result<(u64, u64, Option<Call>), String> {
    let mut words = text.split_whitespace();
    let thread = number(words.next(), "the thread")?;
    let at_us = number(words.next(), "the time, µs")?;
    let name = words.next().ok_or("the call is missing")?;
    let rest: Vec<&str> = words.collect();
    Ok((thread, at_us, call(name, &rest)?))
}

fn number<T: std::str::FromStr>(word: Option<&str>, what: &str) -> Result<T, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("{what} is no number that can be: {word:?}"))
}

fn call(name: &str, rest: &[&str]) -> Result<Option<Call>, String> {
    let arguments = match name {
        "open" | "pwrite" | "pread" => 3,
        "write" | "read" | "fsync" | "unlink" | "close" | "stat64" | "fstat64" | "access" => 2,
        _ => return Err(format!("no call is called {name:?}")),
    };
    let [first, second, more @ ..] = rest else {
        return Err(format!("{name} has {arguments} arguments, and here it has {}", rest.len()));
    };
    if rest.len() != arguments {
        return Err(format!("{name} has {arguments} arguments, and here it has {}", rest.len()));
    }
    let fd = || number::<i64>(Some(first), "the descriptor");
    let moved = |direction, offset, bytes: &str| {
        let what = "the number of bytes";
        // What failed moved none.
        Ok(match bytes {
            FAILED => None,
            bytes => Some(Call::Transfer { direction, fd: fd()?, offset, bytes: number(Some(bytes), what)? }),
        })
    };
    let third = || more.first().copied().unwrap_or_default();
    let at = || number(Some(second), "the offset").map(Some);
    match name {
        "open" => {
            let (flags, fd) = (Flags::from_text(second)?, number::<i64>(Some(third()), "the descriptor")?);
            Ok(if fd < 0 { None } else { Some(Call::Open { path: opened(first, fd)?, flags, fd }) })
        }
        "write" => moved(Direction::Write, None, second),
        "read" => moved(Direction::Read, None, second),
        "pwrite" => moved(Direction::Write, at()?, third()),
        "pread" => moved(Direction::Read, at()?, third()),
        "fsync" => Ok(Some(Call::Sync { fd: fd()? })),
        "close" => Ok(Some(Call::Close { fd: fd()? })),
        "unlink" if number::<i64>(Some(second), "the result")? == 0 => {
            Ok(Some(Call::Remove { path: unquoted(first)? }))
        }
        _ => Ok(None),
    }
}

/// The file that a descriptor was opened on.
fn opened(text: &str, fd: i64) -> Result<String, String> {
    let path = unquoted(text)?;
    Ok(if path == PLACEHOLDER { format!("{path}/descriptor-{fd}") } else { path })
}

/// A path, which may have marks about it: a leading one alone, or one before a suffix.
fn unquoted(text: &str) -> Result<String, String> {
    let text = text.trim_start_matches('"');
    path(text.split('"').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::{Op, read};

    #[test]
    fn threads_are_read_one_after_the_other_and_come_in_the_order_of_their_times() {
        let text =
            "1 5 open /data/data O_RDWR|O_CREAT 36\n1 900 write 36 4\n2 100 pwrite 36 8192 4096\n2 200 fsync 36 0\n";
        let trace = read(text.as_bytes()).unwrap();
        let asked: Vec<(u64, Op)> = trace.requests.iter().map(|request| (request.at_ns, request.op.clone())).collect();
        let write = |offset, bytes| Op::Write { offset, bytes };
        assert_eq!(asked, [(0, Op::Make), (95_000, write(8192, 4096)), (195_000, Op::Sync), (895_000, write(0, 4))]);
        assert!(trace.requests.iter().all(|request| request.file == "data/data/descriptor-36"));
    }
}
