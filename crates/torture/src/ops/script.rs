//! Operations in words, such as `write A/foo 0 4096`: what a person types to have a failure replayed, and what lists of
//! operations are made of. Invariant: what [`Op`] prints reads back as the same.

use std::fmt;
use std::str::FromStr;

use flexfs_core::{Ino, NewNode, ROOT_INO, RenameMode, SetAttr, kind};

use super::call::{Call, Name};
use super::generate::Step;
use crate::content::{Fill, Texture};
use crate::model::ModelFs;

/// An operation on paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A verb, the paths it works on, and its numbers.
    On(Verb, Vec<String>, Vec<u64>),
    Sync,
    Unmount,
    /// So many steps of internal work.
    Background(u64),
    /// Of the programs, or erases, to come, the one of this number fails.
    FailProgram(u64),
    FailErase(u64),
    /// Overwrites and background steps until that work is under way.
    Stir(Work),
}

/// What a volume does by itself in many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Checkpoint,
    /// The emptying of a block.
    Emptying,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Mkdir,
    Symlink,
    Link,
    Unlink,
    Rmdir,
    Rename,
    Exchange,
    Whiteout,
    Write,
    Append,
    Truncate,
    Punch,
    Allocate,
    Zero,
    Copy,
    Chmod,
    Date,
    Setxattr,
    Removexattr,
    Open,
}

/// Every verb, its word, how many paths it takes and how many numbers.
const VERBS: [(Verb, &str, usize, usize); 21] = [
    (Verb::Create, "create", 1, 0),
    (Verb::Mkdir, "mkdir", 1, 0),
    (Verb::Symlink, "symlink", 1, 0),
    (Verb::Link, "link", 2, 0),
    (Verb::Unlink, "unlink", 1, 0),
    (Verb::Rmdir, "rmdir", 1, 0),
    (Verb::Rename, "rename", 2, 0),
    (Verb::Exchange, "exchange", 2, 0),
    (Verb::Whiteout, "whiteout", 2, 0),
    (Verb::Write, "write", 1, 2),
    (Verb::Append, "append", 1, 1),
    (Verb::Truncate, "truncate", 1, 1),
    (Verb::Punch, "punch", 1, 2),
    (Verb::Allocate, "allocate", 1, 2),
    (Verb::Zero, "zero", 1, 2),
    (Verb::Copy, "copy", 2, 1),
    (Verb::Chmod, "chmod", 1, 1),
    (Verb::Date, "date", 1, 1),
    (Verb::Setxattr, "setxattr", 1, 1),
    (Verb::Removexattr, "removexattr", 1, 0),
    (Verb::Open, "open", 1, 0),
];

/// The attribute that operations on attributes set and remove.
const ATTRIBUTE: &str = "user.torture";

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::On(verb, paths, numbers) => {
                let word = VERBS.iter().find(|(known, ..)| known == verb).map_or("", |(_, word, ..)| word);
                let numbers = numbers.iter().map(u64::to_string);
                let words: Vec<String> = paths.iter().cloned().chain(numbers).collect();
                write!(f, "{word} {}", words.join(" "))
            }
            Op::Sync => f.write_str("sync"),
            Op::Unmount => f.write_str("unmount"),
            Op::Background(steps) => write!(f, "background {steps}"),
            Op::FailProgram(number) => write!(f, "fail-program {number}"),
            Op::FailErase(number) => write!(f, "fail-erase {number}"),
            Op::Stir(Work::Checkpoint) => f.write_str("stir checkpoint"),
            Op::Stir(Work::Emptying) => f.write_str("stir emptying"),
        }
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &&str| word.parse().map_err(|_| format!("\"{text}\": {word} is not a number"));
        match words.as_slice() {
            ["sync"] => return Ok(Op::Sync),
            ["unmount"] => return Ok(Op::Unmount),
            ["background", steps] => return Ok(Op::Background(number(steps)?)),
            ["fail-program", at] => return Ok(Op::FailProgram(number(at)?)),
            ["fail-erase", at] => return Ok(Op::FailErase(number(at)?)),
            ["stir", "checkpoint"] => return Ok(Op::Stir(Work::Checkpoint)),
            ["stir", "emptying"] => return Ok(Op::Stir(Work::Emptying)),
            _ => {}
        }
        let Some((word, rest)) = words.split_first() else { return Err("an operation is missing".into()) };
        let Some(&(verb, _, paths, numbers)) = VERBS.iter().find(|(_, known, ..)| known == word) else {
            let known: Vec<&str> = VERBS.iter().map(|(_, known, ..)| *known).collect();
            return Err(format!(
                "no operation is named \"{word}\"; there are {}, sync, unmount, background, fail-program, fail-erase, \
                 stir checkpoint, stir emptying",
                known.join(", ")
            ));
        };
        if rest.len() != paths + numbers {
            return Err(format!("\"{text}\": {word} takes {paths} paths and {numbers} numbers"));
        }
        let (paths, numbers) = rest.split_at(paths);
        let numbers = numbers.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Op::On(verb, paths.iter().map(|path| (*path).to_owned()).collect(), numbers))
    }
}

impl Op {
    /// The operations in a text, apart by `;`.
    pub fn list(text: &str) -> Result<Vec<Op>, String> {
        text.split(';').map(str::trim).filter(|op| !op.is_empty()).map(str::parse).collect()
    }

    /// The step it is on this tree, what it writes being told by `seed`; `None` where a path leads nowhere, and for what
    /// is done to the chip or takes many steps.
    pub fn step(&self, model: &ModelFs, seed: u64) -> Option<Step> {
        Some(match self {
            Op::On(verb, paths, numbers) => Step::Call(call(*verb, paths, numbers, model, seed)?),
            Op::Sync => Step::Call(Call::Sync),
            Op::Unmount => Step::Remount,
            Op::Background(steps) => Step::Background(*steps as usize),
            Op::FailProgram(_) | Op::FailErase(_) | Op::Stir(_) => return None,
        })
    }
}

/// The inode a path leads to.
fn find(model: &ModelFs, path: &str) -> Option<Ino> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .try_fold(ROOT_INO, |dir, name| model.child(dir, name.as_bytes()).ok())
}

/// The directory a path's last name stands in, or would.
fn place(model: &ModelFs, path: &str) -> Option<(Ino, Name)> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    Some((find(model, above)?, name.into()))
}

fn call(verb: Verb, paths: &[String], numbers: &[u64], model: &ModelFs, seed: u64) -> Option<Call> {
    let first = paths.first()?;
    let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let fill = Fill { seed, start: 0, texture: if seed.is_multiple_of(2) { Texture::Noise } else { Texture::Text } };
    let node = |mode| NewNode { mode, uid: 0, gid: 0, rdev: 0 };
    let new = |mode| {
        let (parent, name) = place(model, first)?;
        Some(Call::Create { parent, name, node: node(mode), attributes: Vec::new() })
    };
    let rename = |mode| {
        let ((parent, name), (new_parent, new_name)) = (place(model, first)?, place(model, paths.get(1)?)?);
        Some(Call::Rename { parent, name, new_parent, new_name, mode })
    };
    let set = |changes| Some(Call::Setattr { ino: find(model, first)?, changes });
    match verb {
        Verb::Create => new(kind::FILE | 0o644),
        Verb::Mkdir => new(kind::DIR | 0o755),
        Verb::Symlink => {
            let (parent, name) = place(model, first)?;
            Some(Call::Symlink { parent, name, target: "where it leads".into(), uid: 0, gid: 0 })
        }
        Verb::Link => {
            let (parent, name) = place(model, paths.get(1)?)?;
            Some(Call::Link { ino: find(model, first)?, parent, name })
        }
        Verb::Unlink => place(model, first).map(|(parent, name)| Call::Unlink { parent, name }),
        Verb::Rmdir => place(model, first).map(|(parent, name)| Call::Rmdir { parent, name }),
        Verb::Rename => rename(RenameMode::Replace),
        Verb::Exchange => rename(RenameMode::Exchange),
        Verb::Whiteout => rename(RenameMode::Whiteout { replaces: true, uid: 0, gid: 0 }),
        Verb::Write => Some(Call::Write { ino: find(model, first)?, offset: number(0), len: number(1) as usize, fill }),
        Verb::Append => {
            let ino = find(model, first)?;
            let offset = model.node(ino)?.size();
            Some(Call::Write { ino, offset, len: number(0) as usize, fill })
        }
        Verb::Truncate => set(SetAttr { size: Some(number(0)), ..SetAttr::default() }),
        Verb::Chmod => set(SetAttr { mode: Some(number(0) as u32), ..SetAttr::default() }),
        Verb::Date => {
            let time_ns = Some(number(0) as i64);
            set(SetAttr { mtime_ns: time_ns, ctime_ns: time_ns, ..SetAttr::default() })
        }
        Verb::Punch => Some(Call::Punch { ino: find(model, first)?, offset: number(0), len: number(1) }),
        Verb::Allocate | Verb::Zero => {
            let zero = verb == Verb::Zero;
            Some(Call::Allocate { ino: find(model, first)?, offset: number(0), len: number(1), keep_size: false, zero })
        }
        Verb::Copy => {
            let (from, to) = (find(model, first)?, find(model, paths.get(1)?)?);
            Some(Call::Copy { from: (from, 0), to: (to, 0), len: number(0) })
        }
        Verb::Setxattr => {
            let value = Name(fill.bytes(number(0) as usize));
            let ino = find(model, first)?;
            Some(Call::Setxattr { ino, name: ATTRIBUTE.into(), value, create: false, replace: false })
        }
        Verb::Removexattr => Some(Call::Removexattr { ino: find(model, first)?, name: ATTRIBUTE.into() }),
        Verb::Open => Some(Call::Open { ino: find(model, first)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_read_back_as_they_were_printed() {
        let text = "create A/foo; write A/foo 10 4096; rename A/foo bar; sync; background 3; fail-program 2; fail-erase 0; \
                    stir checkpoint; stir emptying; unmount";
        let ops = Op::list(text).unwrap();
        let printed: Vec<String> = ops.iter().map(Op::to_string).collect();
        assert_eq!(printed.join("; "), text);
    }

    #[test]
    fn what_is_no_operation_is_named() {
        for (wrong, said) in [("fly foo", "fly"), ("write foo 1", "2 numbers"), ("append foo x", "not a number")] {
            let why = wrong.parse::<Op>().unwrap_err();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_makes_no_step() {
        let model = ModelFs::new(kind::DIR | 0o755, 0, 0, 0);
        let step = |text: &str| text.parse::<Op>().unwrap().step(&model, 1);
        assert!(step("create foo").is_some() && step("write foo 0 1").is_none() && step("create A/foo").is_none());
    }
}
