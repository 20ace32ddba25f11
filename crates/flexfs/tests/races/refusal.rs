//! The search can refuse: histories that no tree brings about, each one call away from one that has an order.

use crate::model::State;
use crate::op::{Move, Op, OpenFlags, Outcome, Place};
use crate::order::{Burst, Call, Verdict, search};

const THREADS: usize = 2;
const A: Place = Place { dir: 0, sub: None, name: 0 };
const B: Place = Place { dir: 0, sub: None, name: 1 };
const MISSING: Outcome = Outcome::Error(2);
const EXISTS: Outcome = Outcome::Error(17);

/// Calls as `(thread, begin, end, call, outcome)`.
type History = Vec<(usize, u64, u64, Op, Outcome)>;

fn verdict(history: &History, early_sizes: bool) -> Verdict {
    let calls: Vec<Call> = history
        .iter()
        .map(|(thread, begin_ns, end_ns, op, outcome)| Call {
            thread: *thread,
            op: *op,
            begin_ns: *begin_ns,
            end_ns: *end_ns,
            outcome: Some(outcome.clone()),
        })
        .collect();
    let burst = Burst { before: &State::empty(), threads: THREADS, after: None, early_sizes };
    search(&burst, &calls)
}

/// Fails unless each history has an order, and none once the outcome of its last call is another.
pub fn assert_refused() {
    let done = || Outcome::Done;
    let open = Op::Open(A, OpenFlags { create: false, truncate: false });
    let cut = |first: Outcome, second: Outcome, file: Place| {
        vec![
            (0, 0, 1, Op::Create(A), done()),
            (1, 2, 3, Op::Create(B), done()),
            (1, 4, 5, Op::Write(0, 7), done()),
            (0, 6, 7, Op::Open(file, OpenFlags { create: false, truncate: false }), done()),
            (0, 8, 20, Op::Resize(0), done()),
            (1, 9, 10, Op::Read(0), first),
            (1, 11, 12, Op::Read(0), second),
        ]
    };
    let cases: [(History, Outcome); 5] = [
        // One of two makes the file.
        (vec![(0, 0, 9, Op::Create(A), done()), (1, 0, 9, Op::Create(A), EXISTS)], done()),
        // What ended before was before.
        (vec![(0, 0, 1, Op::Create(A), done()), (1, 2, 3, Op::Stat(A), Outcome::Size(0))], MISSING),
        // A name that is replaced is there all the time.
        (
            vec![
                (0, 0, 1, Op::Create(A), done()),
                (0, 2, 3, Op::Create(B), done()),
                (0, 4, 9, Op::Rename(B, A, Move::Replace), done()),
                (1, 4, 9, open, done()),
            ],
            MISSING,
        ),
        // What one has read is not unwritten for the next.
        (
            vec![
                (0, 0, 1, Op::Create(A), done()),
                (1, 2, 3, open, done()),
                (0, 4, 20, Op::Write(0, 7), done()),
                (1, 5, 6, Op::Read(0), Outcome::Value(7)),
                (1, 7, 8, Op::Read(0), Outcome::Value(7)),
            ],
            Outcome::End,
        ),
        // A listing has what was there from its beginning to its end.
        (
            vec![
                (0, 0, 1, Op::Mkdir(A), done()),
                (0, 2, 9, Op::Mkdir(B), done()),
                (1, 2, 9, Op::List(0), Outcome::Listed(vec![(0, crate::op::Kind::Dir)])),
            ],
            Outcome::Listed(vec![(1, crate::op::Kind::Dir)]),
        ),
    ];
    for (mut history, wrong) in cases {
        assert_eq!(verdict(&history, false), Verdict::Ordered);
        let last = history.len() - 1;
        history[last].4 = wrong;
        assert_eq!(verdict(&history, false), Verdict::Impossible);
    }
    // Zeros behind a new end are allowed for where the kernel may see one late, and nowhere else.
    let [zeros, seven] = [0, 7].map(Outcome::Value);
    let after_the_end = cut(Outcome::End, zeros.clone(), B);
    assert_eq!(verdict(&after_the_end, true), Verdict::Ordered);
    assert_eq!(verdict(&after_the_end, false), Verdict::Impossible);
    assert_eq!(verdict(&cut(seven.clone(), seven.clone(), A), true), Verdict::Ordered);
    assert_eq!(verdict(&cut(seven, zeros, A), true), Verdict::Impossible);
}
