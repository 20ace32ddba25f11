//! A burst: threads that begin together, each a few calls long, and what they saw.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use crate::act::Actor;
use crate::common::Dice;
use crate::op::{Op, Theme};
use crate::order::{Burst, Call, Verdict, search};

/// Makes a burst; the calls as they began.
pub fn make(mount: &Path, threads: usize, dice: &mut Dice) -> Vec<Call> {
    let (barrier, start, theme) = (Barrier::new(threads), Instant::now(), Theme::any(dice));
    let plans: Vec<(u64, u64)> = (0..threads).map(|_| (4 + dice.below(3), dice.next())).collect();
    let mut calls: Vec<Call> = std::thread::scope(|scope| {
        let (barrier, start, theme) = (&barrier, &start, &theme);
        let run = |(thread, (count, seed)): (usize, (u64, u64))| {
            scope.spawn(move || {
                let (mut actor, mut dice) = (Actor { mount, file: None }, Dice::new(seed));
                let now_ns = || start.elapsed().as_nanos() as u64;
                barrier.wait();
                let call = |_| {
                    let op = Op::any(&mut dice, theme, actor.file.is_some());
                    let begin_ns = now_ns();
                    let outcome = Some(actor.act(&op));
                    Call { thread, op, begin_ns, end_ns: now_ns(), outcome }
                };
                (0..count).map(call).collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = plans.into_iter().enumerate().map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    calls.sort_by_key(|call| call.begin_ns);
    calls
}

/// What of a burst without an order already has none: everything else is taken for calls that may have done anything
/// they could, or nothing.
pub struct Blamed {
    pub calls: Vec<Call>,
    pub after_counts: bool,
}

pub fn minimise(burst: &Burst, calls: &[Call]) -> Blamed {
    let impossible = |calls: &[Call], after| search(&Burst { after, ..*burst }, calls) == Verdict::Impossible;
    let mut calls = calls.to_vec();
    // A call that changed nothing can be left out altogether.
    for at in (0..calls.len()).rev() {
        if calls[at].never_changes() {
            let fewer: Vec<Call> =
                calls.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, call)| call.clone()).collect();
            if impossible(&fewer, burst.after) {
                calls = fewer;
            }
        }
    }
    let after_counts = !impossible(&calls, None);
    let after = burst.after.filter(|_| after_counts);
    for at in (0..calls.len()).rev() {
        let mut weaker = calls.clone();
        (weaker[at].outcome, weaker[at].end_ns) = (None, u64::MAX);
        if impossible(&weaker, after) {
            calls = weaker;
        }
    }
    calls.retain(|call| call.outcome.is_some());
    Blamed { calls, after_counts }
}

/// Calls, one a line.
pub fn describe(calls: &[Call]) -> String {
    let mut out = String::new();
    for Call { thread, op, begin_ns, end_ns, outcome } in calls {
        let outcome = outcome.as_ref().map(|outcome| format!("{outcome:?}")).unwrap_or_default();
        writeln!(out, "{:>9} to {:>9} us, thread {thread}: {op} = {outcome}", begin_ns / 1000, end_ns / 1000).unwrap();
    }
    out
}
