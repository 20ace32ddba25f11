//! MobiGen's traces of phones: `THREAD MICROSECONDS CALL ARGUMENTS`, thread after thread; the last argument is the
//! result. Invariant: the times of a thread never go back, and a call that is not known is refused or counted.
//!
//! Most descriptors have the same path, a placeholder: each of those is a file of its own here.

use super::calls::{Call, Called, Direction, Flags, path, trace};
use super::{TraceContents, TraceError};

/// The path of a descriptor whose file is not known.
const PLACEHOLDER: &str = "data/data";

/// What a call that failed has for its result.
const FAILED: &str = "-1";

/// Calls that change nothing and read no file. `_llseek` does not belong here: MobiGen leaves out the place that it
/// moves to, from which later calls go on.
const QUIET: [&str; 22] = [
    "access",
    "faccessat",
    "faccessat2",
    "fcntl",
    "fcntl64",
    "fstat",
    "fstat64",
    "fstatat64",
    "fstatfs",
    "fstatfs64",
    "getdents",
    "getdents64",
    "lstat",
    "lstat64",
    "newfstatat",
    "readlink",
    "readlinkat",
    "stat",
    "stat64",
    "statfs",
    "statfs64",
    "statx",
];

/// Whether a line looks like one.
pub(super) fn begins(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    number() && number() && words.next().is_some_and(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
}

pub(super) fn read<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    skip_unknown: bool,
) -> Result<TraceContents, TraceError> {
    let (mut calls, mut unknown_calls) = (Vec::new(), 0);
    let mut before: Option<(u64, u64)> = None;
    for (line, text) in lines {
        let wrong = |reason| TraceError { line, reason };
        let (thread, at_us, name, rest) = parse(text).map_err(wrong)?;
        if before.is_some_and(|(before, before_us)| before == thread && before_us > at_us) {
            return Err(wrong(format!("its time is before that of thread {thread}'s call above")));
        }
        before = Some((thread, at_us));
        let at_ns = at_us.checked_mul(1000).ok_or_else(|| wrong("its time is too large".into()))?;
        let Some(arguments) = arguments_of(name) else {
            if !skip_unknown {
                return Err(wrong(format!("no call is called {name:?}")));
            }
            unknown_calls += 1;
            continue;
        };
        let call = call(name, arguments, &rest).map_err(wrong)?;
        // Threads share their descriptors.
        calls.extend(call.map(|call| Called { line, at_ns, process: 0, call }));
    }
    Ok(TraceContents { trace: trace(calls)?, unknown_calls })
}

/// Thread, time, name and arguments of a line.
fn parse(text: &str) -> Result<(u64, u64, &str, Vec<&str>), String> {
    let mut words = text.split_whitespace();
    let thread = number(words.next(), "the thread")?;
    let at_us = number(words.next(), "the time, µs")?;
    let name = words.next().ok_or("the call is missing")?;
    Ok((thread, at_us, name, words.collect()))
}

/// How many arguments a call has; `None` for a call that is not known.
fn arguments_of(name: &str) -> Option<usize> {
    match name {
        "open" | "pwrite" | "pwrite64" | "pread" | "pread64" => Some(3),
        "write" | "writev" | "read" | "readv" | "lseek" | "fsync" | "fdatasync" | "unlink" | "close" => Some(2),
        _ => QUIET.contains(&name).then_some(2),
    }
}

fn number<T: std::str::FromStr>(word: Option<&str>, what: &str) -> Result<T, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("{what} is no number that can be: {word:?}"))
}

/// The call of a line; `None` for one that moves nothing, or that failed.
fn call(name: &str, arguments: usize, rest: &[&str]) -> Result<Option<Call>, String> {
    let wrong = || format!("{name} has {arguments} arguments, and here it has {}", rest.len());
    let [first, second, more @ ..] = rest else { return Err(wrong()) };
    // A path may have spaces in it; that of a quiet call is not needed.
    if QUIET.contains(&name) {
        return Ok(None);
    }
    if rest.len() != arguments {
        return Err(wrong());
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
        "write" | "writev" => moved(Direction::Write, None, second),
        "read" | "readv" => moved(Direction::Read, None, second),
        "pwrite" | "pwrite64" => moved(Direction::Write, at()?, third()),
        "pread" | "pread64" => moved(Direction::Read, at()?, third()),
        // Its result is where the descriptor stands then.
        "lseek" if *second != FAILED => Ok(Some(Call::Seek { fd: fd()?, to: number(Some(second), "the place")? })),
        "fsync" | "fdatasync" => Ok(Some(Call::Sync { fd: fd()? })),
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
    use super::super::{Op, ReadOptions, read, read_with};

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

    const OPEN: &str = "1 5 open /data/x O_RDWR|O_CREAT 36\n";

    #[test]
    fn reads_go_on_from_where_lseek_moved_to() {
        let calls =
            "1 6 write 36 10\n1 7 lseek 36 4\n1 8 lseek 36 -1\n1 9 readv 36 2\n1 9 pread64 36 0 3\n1 9 read 36 1\n";
        let trace = read(format!("{OPEN}{calls}").as_bytes()).unwrap();
        let ops: Vec<Op> = trace.requests.into_iter().map(|request| request.op).collect();
        let (write, read) = (|offset, bytes| Op::Write { offset, bytes }, |offset, bytes| Op::Read { offset, bytes });
        assert_eq!(ops, [Op::Make, write(0, 10), read(4, 2), read(0, 3), read(6, 1)]);
    }

    #[test]
    fn calls_that_are_not_known_are_counted_if_they_may_be() {
        let known = format!("{OPEN}1 8 write 36 4\n");
        let text = format!("{OPEN}1 6 ioctl 36 0\n1 7 _llseek 36 0\n1 8 write 36 4\n");
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (2, "no call is called \"ioctl\""));
        let contents = read_with(text.as_bytes(), &ReadOptions { skip_unknown: true, ..Default::default() }).unwrap();
        assert_eq!((Ok(contents.trace), contents.unknown_calls), (read(known.as_bytes()), 2));
    }
}
