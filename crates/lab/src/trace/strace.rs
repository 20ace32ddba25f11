//! What `strace -f -ttt` prints: `PID SECONDS.MICROSECONDS CALL(ARGUMENTS) = RESULT`. Invariant: only calls that succeeded are
//! requests, with as many bytes as their result says.

use std::collections::BTreeMap;

use super::calls::{Call, Called, Direction, Flags, path, trace};
use super::{Trace, TraceError};

/// The mark of a call that another process's interrupts, and the one of its rest.
const UNFINISHED: &str = " <unfinished ...>";
const RESUMED: &str = " resumed>";

/// Whether a line looks like one.
pub(super) fn begins(line: &str) -> bool {
    stamped(line).is_ok()
}

/// Process, time in ns, and the rest of a line.
fn stamped(line: &str) -> Result<(u64, u64, &str), String> {
    let line = line.trim_start();
    let (process, rest) = match line.strip_prefix("[pid ") {
        Some(rest) => rest.split_once(']').ok_or("the process is not closed by ]")?,
        None => match line.split_once(' ').filter(|(first, _)| !first.contains('.')) {
            Some((process, rest)) => (process, rest),
            None => ("0", line),
        },
    };
    let process = process.trim().parse().map_err(|_| format!("the process is no number: {process:?}"))?;
    let (time, rest) = rest.trim_start().split_once(' ').ok_or("the call is missing")?;
    let wrong = || format!("the time is not SECONDS.MICROSECONDS, as strace -ttt prints it: {time:?}");
    let (seconds, micros) = time.split_once('.').filter(|(_, micros)| micros.len() == 6).ok_or_else(wrong)?;
    let (seconds, micros): (u64, u64) = seconds.parse().ok().zip(micros.parse().ok()).ok_or_else(wrong)?;
    let at_ns = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(micros * 1000)).ok_or_else(wrong)?;
    Ok((process, at_ns, rest.trim_start()))
}

pub(super) fn read<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let mut calls = Vec::new();
    // Calls that are not over: when they began, and what was printed of them.
    let mut pending: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut last_ns = 0;
    for (line, text) in lines {
        let wrong = |reason: String| TraceError { line, reason };
        let (process, at_ns, rest) = stamped(text).map_err(wrong)?;
        if at_ns < last_ns {
            return Err(wrong("its time is before that of the line above".into()));
        }
        last_ns = at_ns;
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(begun) = rest.strip_suffix(UNFINISHED) {
            pending.insert(process, (at_ns, begun.to_owned()));
            continue;
        }
        let (at_ns, whole) = match rest.strip_prefix("<... ") {
            None => (at_ns, rest.to_owned()),
            Some(resumed) => {
                let (_, end) = resumed.split_once(RESUMED).ok_or_else(|| wrong(format!("no{RESUMED} in it")))?;
                let (began_ns, begun) = pending
                    .remove(&process)
                    .ok_or_else(|| wrong(format!("process {process} resumes a call that it did not begin")))?;
                (began_ns, begun + end)
            }
        };
        calls.extend(call(&whole).map_err(wrong)?.map(|call| Called { line, at_ns, process, call }));
    }
    trace(calls)
}

/// The call of a line; `None` for one that moves nothing, or that failed.
fn call(text: &str) -> Result<Option<Call>, String> {
    let (name, rest) = text.split_once('(').ok_or_else(|| format!("no call in {text:?}"))?;
    let (arguments, result) = rest.rsplit_once(" = ").ok_or("the result is missing: the line is cut")?;
    let arguments = split(arguments.trim_end().strip_suffix(')').ok_or("the arguments are not closed by )")?)?;
    let result = result.split([' ', '<']).next().unwrap_or_default();
    // What exits has no result.
    let Ok(result) = result.parse::<i64>() else {
        return if matches!(result, "?") || result.starts_with("0x") {
            Ok(None)
        } else {
            Err(format!("the result is no number: {result:?}"))
        };
    };
    let Ok(done) = u64::try_from(result) else { return Ok(None) };
    let argument = |at: usize| {
        arguments.get(at).map(String::as_str).ok_or_else(|| format!("argument {} of {name} is missing", at + 1))
    };
    let fd = || number(argument(0)?, "the descriptor");
    let moved = |direction, at: Option<usize>| {
        let asked: u64 = number(argument(2)?, "the number of bytes")?;
        if done > asked {
            return Err(format!("{name} moved {done} bytes, more than the {asked} that were asked for"));
        }
        let offset = at.map(|at| number(argument(at)?, "the offset")).transpose()?;
        Ok(Some(Call::Transfer { direction, fd: fd()?, offset, bytes: done }))
    };
    let opened = |at: usize, flags: &str| {
        Ok(Some(Call::Open { path: quoted(argument(at)?)?, flags: Flags::from_text(flags)?, fd: result }))
    };
    match name {
        "open" => opened(0, argument(1)?),
        "openat" => opened(1, argument(2)?),
        "creat" => opened(0, "O_WRONLY|O_CREAT|O_TRUNC"),
        "read" => moved(Direction::Read, None),
        "write" => moved(Direction::Write, None),
        "pread64" => moved(Direction::Read, Some(3)),
        "pwrite64" => moved(Direction::Write, Some(3)),
        "lseek" => Ok(Some(Call::Seek { fd: fd()?, to: done })),
        "ftruncate" => Ok(Some(Call::Truncate { fd: fd()?, bytes: number(argument(1)?, "the length")? })),
        "fsync" | "fdatasync" => Ok(Some(Call::Sync { fd: fd()? })),
        "close" => Ok(Some(Call::Close { fd: fd()? })),
        "dup" | "dup2" | "dup3" => Ok(Some(Call::Duplicate { fd: fd()?, to: result })),
        "fcntl" if argument(1)?.starts_with("F_DUPFD") => Ok(Some(Call::Duplicate { fd: fd()?, to: result })),
        "fork" | "vfork" => Ok(Some(Call::Fork { child: done, shares_files: false })),
        "clone" | "clone3" => Ok(Some(Call::Fork { child: done, shares_files: text.contains("CLONE_FILES") })),
        "mkdir" => Ok(Some(Call::MakeDir { path: quoted(argument(0)?)? })),
        "mkdirat" => Ok(Some(Call::MakeDir { path: quoted(argument(1)?)? })),
        "unlink" | "rmdir" => Ok(Some(Call::Remove { path: quoted(argument(0)?)? })),
        "unlinkat" => Ok(Some(Call::Remove { path: quoted(argument(1)?)? })),
        "rename" => Ok(Some(Call::Rename { path: quoted(argument(0)?)?, to: quoted(argument(1)?)? })),
        "renameat" | "renameat2" => Ok(Some(Call::Rename { path: quoted(argument(1)?)?, to: quoted(argument(3)?)? })),
        _ => Ok(None),
    }
}

/// Arguments, split at commas that stand in no string and no bracket.
fn split(text: &str) -> Result<Vec<String>, String> {
    let (mut arguments, mut argument, mut depth, mut in_string, mut escaped) =
        (Vec::new(), String::new(), 0, false, false);
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' | '[' | '(' if !in_string => depth += 1,
            '}' | ']' | ')' if !in_string => depth -= 1,
            ',' if !in_string && depth == 0 => {
                arguments.push(argument.trim().to_owned());
                argument.clear();
                continue;
            }
            _ => {}
        }
        argument.push(letter);
    }
    if in_string {
        return Err("a string is not closed".into());
    }
    arguments.push(argument.trim().to_owned());
    Ok(arguments)
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    let plain = text.split('<').next().unwrap_or_default();
    plain.parse().map_err(|_| format!("{what} is no number that can be: {text:?}"))
}

/// The path of a string argument.
fn quoted(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    path(inner.ok_or_else(|| format!("a path is not between quotes, or it is shortened: {text}"))?)
}

#[cfg(test)]
mod tests {
    use super::super::{Op, read};

    #[test]
    fn calls_are_followed_over_interruptions_and_failures_are_left_out() {
        let text = "\
77 1700000000.000001 openat(AT_FDCWD, \"/home/a, b\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3
78 1700000000.000002 openat(AT_FDCWD, \"/none\", O_RDONLY) = -1 ENOENT (No such file or directory)
77 1700000000.000003 write(3, \"x, \\\"y\\\" = 2\"..., 8192 <unfinished ...>
78 1700000000.000004 mkdir(\"/home/d\", 0755) = 0
77 1700000000.000005 <... write resumed>) = 4096
77 1700000000.000006 lseek(3, 100, SEEK_SET) = 100
77 1700000000.000007 read(3, \"zz\", 2) = 2
77 1700000000.000008 fsync(3) = 0
77 1700000000.000009 renameat2(AT_FDCWD, \"/home/a, b\", AT_FDCWD, \"/home/c\", RENAME_NOREPLACE) = 0
77 1700000000.000010 +++ exited with 0 +++
";
        let trace = read(text.as_bytes()).unwrap();
        let asked: Vec<(u64, &str, Op)> =
            trace.requests.iter().map(|request| (request.at_ns, request.file.as_str(), request.op.clone())).collect();
        let file = "home/a, b";
        assert_eq!(
            asked,
            [
                (0, file, Op::Make),
                (2000, file, Op::Write { offset: 0, bytes: 4096 }),
                (3000, "home/d", Op::MakeDir),
                (6000, file, Op::Read { offset: 100, bytes: 2 }),
                (7000, file, Op::Sync),
                (8000, file, Op::Rename { to: "home/c".into() }),
            ]
        );
    }

    #[test]
    fn a_process_has_descriptors_of_its_own_and_a_thread_those_of_its_process() {
        let text = "\
7 1.000001 openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3
7 1.000002 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
8 1.000003 close(3) = 0
8 1.000004 openat(AT_FDCWD, \"/b\", O_RDWR|O_CREAT, 0644) = 3
7 1.000005 <... clone resumed>) = 8
8 1.000006 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 9
9 1.000007 write(3, \"x\", 1) = 1
7 1.000008 dup2(3, 1) = 1
7 1.000009 write(1, \"yy\", 2) = 2
";
        let asked: Vec<(String, Op)> =
            read(text.as_bytes()).unwrap().requests.into_iter().map(|request| (request.file, request.op)).collect();
        let write = |file: &str, bytes| (file.to_owned(), Op::Write { offset: 0, bytes });
        let make = |file: &str| (file.to_owned(), Op::Make);
        assert_eq!(asked, [make("a"), make("b"), write("b", 1), write("a", 2)]);
    }
}
