//! The search for an order, after Wing and Gong: one in which the calls of a burst, one after the other, give just the
//! answers they gave, each at some moment between its beginning and its end.
//!
//! What was tried is remembered by how far each thread has come and what the tree then is, so nothing is tried twice.
//! Invariants: a call begins only after every call that ended before it; a step that agrees and changes nothing, of a
//! call that never would, is taken at once, which loses no order.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::io::Errno;

use crate::model::{Id, State, Step};
use crate::op::{Kind, NAMES, Op, OpenFlags, Outcome};

/// A call that was made.
#[derive(Clone)]
pub struct Call {
    pub thread: usize,
    pub op: Op,
    /// Nanoseconds since the burst began.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// `None` where nothing is to be known of it, not even that it was made.
    pub outcome: Option<Outcome>,
}

impl Call {
    /// Whether a call that was answered so leaves the tree as it was, whenever it is made.
    pub fn never_changes(&self) -> bool {
        match &self.outcome {
            Some(Outcome::Done) => matches!(self.op, Op::Sync),
            answered => answered.is_some(),
        }
    }
}

/// States after which a search is given up.
const STATES_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Ordered,
    Impossible,
    /// There were too many ways.
    Unknown,
}

/// What is known of a burst beside its calls.
#[derive(Clone, Copy)]
pub struct Burst<'a> {
    pub before: &'a State,
    pub threads: usize,
    /// The tree it left, if that is to count.
    pub after: Option<&'a str>,
    /// Whether a `stat` may tell of a size that the server has already set and the kernel has not, and a read may find
    /// zeros behind the end that the server has set and the kernel has not: without its writeback cache it asks the
    /// server for sizes, while it reads by its own.
    pub early_sizes: bool,
}

/// The calls of each thread, and what was tried.
struct Search<'a> {
    threads: Vec<Vec<&'a Call>>,
    after: Option<&'a str>,
    early_sizes: bool,
    tried: HashSet<u64>,
}

/// How far an order has come.
#[derive(Clone, PartialEq, Hash)]
struct Position {
    state: State,
    /// Calls of each thread that are over.
    done: Vec<usize>,
}

/// Looks for an order of `calls`, each thread's in the order it made them.
pub fn search(burst: &Burst, calls: &[Call]) -> Verdict {
    let Burst { before, threads, after, early_sizes } = *burst;
    let of_thread = |thread| calls.iter().filter(|call| call.thread == thread).collect();
    let threads_calls = (0..threads).map(of_thread).collect();
    let mut search = Search { threads: threads_calls, after, early_sizes, tried: HashSet::new() };
    let mut state = before.clone();
    state.threads.resize_with(threads, Default::default);
    if search.go(Position { state, done: vec![0; threads] }) {
        Verdict::Ordered
    } else if search.tried.len() >= STATES_MAX {
        Verdict::Unknown
    } else {
        Verdict::Impossible
    }
}

impl Search<'_> {
    fn call(&self, position: &Position, thread: usize) -> Option<&Call> {
        self.threads[thread].get(position.done[thread]).copied()
    }

    fn go(&mut self, mut position: Position) -> bool {
        let ways = loop {
            let mut ways = Vec::new();
            let latest_ns = self.latest_begin_ns(&position);
            let mut settled = None;
            for thread in 0..self.threads.len() {
                let Some(call) = self.call(&position, thread) else { continue };
                if call.begin_ns > latest_ns {
                    continue;
                }
                let found = self.ways_on(&position, thread, call);
                if call.never_changes() && found.iter().all(|way| changes_nothing(&position, way)) {
                    settled = found.into_iter().next();
                } else {
                    ways.extend(found);
                }
                if settled.is_some() {
                    break;
                }
            }
            match settled {
                Some(next) => position = next,
                None => break ways,
            }
        };
        if self.is_over(&position) {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        position.hash(&mut hasher);
        if self.tried.len() >= STATES_MAX || !self.tried.insert(hasher.finish()) {
            return false;
        }
        ways.into_iter().any(|way| self.go(way))
    }

    /// The latest a call may have begun to be next: when the first of those that are not over ended.
    fn latest_begin_ns(&self, position: &Position) -> u64 {
        let ends = (0..self.threads.len()).filter_map(|thread| self.call(position, thread)).map(|call| call.end_ns);
        ends.min().unwrap_or(u64::MAX)
    }

    fn is_over(&self, position: &Position) -> bool {
        let over =
            |thread: usize| self.threads[thread][position.done[thread]..].iter().all(|call| call.outcome.is_none());
        if !(0..self.threads.len()).all(over) {
            return false;
        }
        let Some(after) = self.after else { return true };
        let mut state = position.state.clone();
        state.close_all();
        state.describe() == after
    }

    /// Where the next step of a call may lead.
    fn ways_on(&self, position: &Position, thread: usize, call: &Call) -> Vec<Position> {
        let mut ways = Vec::new();
        if let (Op::List(dir), Some(Outcome::Listed(listed))) = (&call.op, &call.outcome) {
            ways.extend(self.look_at_a_name(position, thread, *dir as Id, listed));
            return ways;
        }
        let mut next = position.clone();
        if call.outcome.is_none() {
            let mut skipped = position.clone();
            skipped.state.end(thread);
            skipped.done[thread] += 1;
            ways.push(skipped);
            if matches!(call.op, Op::List(_)) {
                return ways;
            }
        }
        match next.state.step(thread, &call.op, self.number(position, thread)) {
            Step::On => ways.push(next),
            Step::End(outcome) if call.outcome.as_ref().is_none_or(|seen| *seen == outcome) => {
                next.done[thread] += 1;
                ways.push(next);
            }
            Step::End(_) => ways.extend(self.mistaken(position, thread, call)),
        }
        ways
    }

    /// A call that the kernel answered by what it took to be so: that a file has no names, so that it does not even
    /// ask; or that it is as large as another call is about to make it, or was before it was cut.
    fn mistaken(&self, position: &Position, thread: usize, call: &Call) -> Option<Position> {
        let state = &position.state;
        let meets = |other: &Call| other.begin_ns <= call.end_ns && call.begin_ns <= other.end_ns;
        let explained = match (&call.op, call.outcome.as_ref()?) {
            (Op::Link(..), Outcome::Error(errno)) => {
                *errno == Errno::NOENT.raw_os_error() && state.may_be_miscounted(thread)
            }
            // What was found may be removed before it is reached; where the name is made again just then, it was
            // missing for a moment all the same.
            (
                Op::Open(..)
                | Op::Stat(_)
                | Op::Readlink(_)
                | Op::SetAttribute(..)
                | Op::GetAttribute(_)
                | Op::RemoveAttribute(_),
                Outcome::Error(errno),
            ) => {
                let removal = |other: &&Call| matches!(other.op, Op::Unlink(_) | Op::Rmdir(_));
                *errno == Errno::NOENT.raw_os_error()
                    && self.threads.iter().flatten().copied().filter(removal).any(meets)
            }
            (Op::Stat(_) | Op::Size, Outcome::Size(size)) => {
                self.early_sizes
                    && (0..self.threads.len()).any(|other| {
                        let sizing = self.call(position, other).filter(|sizing| sizing.begin_ns <= call.end_ns);
                        sizing.is_some_and(|sizing| state.would_size(other, &sizing.op, thread) == Some(*size))
                    })
            }
            (Op::Read(offset), Outcome::Value(0)) => {
                let cuts =
                    |other: &&Call| matches!(other.op, Op::Resize(_) | Op::Open(_, OpenFlags { truncate: true, .. }));
                self.early_sizes
                    && state.ends_before(thread, *offset)
                    && self.threads.iter().flatten().copied().filter(cuts).any(meets)
            }
            _ => false,
        };
        explained.then(|| {
            let mut next = position.clone();
            next.state.end(thread);
            next.done[thread] += 1;
            next
        })
    }

    /// The number of what a thread's next call makes.
    fn number(&self, position: &Position, thread: usize) -> Id {
        let before: usize = self.threads[..thread].iter().map(Vec::len).sum();
        10_000 + (before + position.done[thread]) as Id
    }

    /// A listing names what was there all the time, and what came or went at will: each name stands for a look of its
    /// own. Those of a name that were made are kept as a bit each.
    fn look_at_a_name(
        &self,
        position: &Position,
        thread: usize,
        dir: Id,
        listed: &[(usize, Kind)],
    ) -> Option<Position> {
        let seen = position.state.threads[thread].progress;
        let absent = (0..NAMES.len()).filter(|name| listed.iter().all(|(other, _)| other != name));
        let looks = listed.iter().map(|&(name, kind)| (name, Some(kind))).chain(absent.map(|name| (name, None)));
        let mut next = position.clone();
        for (number, (name, kind)) in looks.clone().enumerate() {
            if position.state.kind_at(dir, name) == kind {
                next.state.threads[thread].progress |= 1 << number;
            }
        }
        let progress = next.state.threads[thread].progress;
        if progress.count_ones() as usize == looks.count() {
            next.state.end(thread);
            next.done[thread] += 1;
        } else if progress == seen {
            return None;
        }
        Some(next)
    }
}

/// Whether a step that agrees left everything as it was, so that it may as well be taken now.
fn changes_nothing(position: &Position, way: &Position) -> bool {
    let (before, after) = (&position.state, &way.state);
    let ended = position.done != way.done;
    let mut threads = before.threads.iter().zip(&after.threads);
    before.nodes == after.nodes && threads.all(|(one, other)| one.file == other.file && (ended || one.holds_as(other)))
}
