//! Each internal process of a volume by itself, as a script that brings it about, and calls made while one is under way.
//!
//! Invariant: on each of the setups that it names a script brings its process about.

use super::case::{Case, Script};
use super::judge::Depth;
use super::setup::{Ground, Setup};
use crate::ops::Op;

/// How processes are cut unless said otherwise.
const DEPTH: Depth = Depth { every_tear: false, again: [2, 1], ..Depth::WHOLE };

/// Calls that meet work under way; `#` is another number for each.
const OVERLAPPING: [&str; 9] = [
    "write fill# 0 9000",
    "create A/new#",
    "append foo 5000",
    "truncate fill# 2000",
    "rename fill# B/moved#",
    "write A/bar 0 4096",
    "exchange foo A/bar",
    "unlink fill#",
    "setxattr foo 900",
];
/// Calls that come before work is brought under way again, and how often all of them come.
const CALLS: usize = 3;
const ROUNDS: usize = 4;

/// A process: its name, the setups it is run on, what stands on their volumes, its script, and how many operations of
/// that are not cut.
type Process = (&'static str, &'static [&'static str], Ground, String, usize);

/// Each internal process by itself, by name.
pub fn processes() -> Result<Vec<(&'static str, Case)>, String> {
    let mut cases = Vec::new();
    for (name, setups, ground, text, quiet) in [settling(), moving(), running_short(), overlapping()].concat() {
        for setup in setups {
            let script = Script::Ops { ops: Op::list(&text)?, quiet };
            cases.push((name, Case { setup: Setup::named(setup)?, ground, script, depth: DEPTH }));
        }
    }
    Ok(cases)
}

/// So many overwrites of files on a full volume.
fn overwrites(count: usize) -> String {
    (0..count).map(|n| format!("write fill{} 0 8192; ", n % 20)).collect()
}

/// What brings the index, the block table and the orphans on flash up to date.
fn settling() -> Vec<Process> {
    let creates = (0..300).map(|n| format!("create A/file{n}; ")).collect::<String>();
    let table = "write fill1 0 9000; unmount; ".to_owned() + &overwrites(120) + "sync; unmount";
    let removal = "open foo; open A/bar; open B; unlink foo; sync; create new; write new 0 9000; rename new A/bar; rmdir B; \
                   sync; background 60; mkdir C; sync; unmount";
    vec![
        ("unmount", &["slc", "native", "tlc", "lanes"], Ground::Full, "write foo 0 4096; unmount".to_owned(), 1),
        ("block table", &["many-blocks"], Ground::Full, table, 0),
        ("removal of what is open", &["slc", "native", "lanes"], Ground::Tree, removal.to_owned(), 3),
        ("checkpoint", &["slc", "native", "tlc", "lanes"], Ground::Tree, creates + "sync; background 60; sync", 150),
    ]
}

/// What moves contents from one block to another.
fn moving() -> Vec<Process> {
    let room = overwrites(40) + "sync; background 200; sync";
    let migrating = &["slc", "lz4", "channels", "many-blocks", "tlc-lz4", "lanes"];
    let fading = &["slc", "native", "many-blocks", "two-slots", "tlc-lz4"];
    let steps = |count: u32| format!("write foo 0 4096; sync; background {count}; sync");
    // A block that failed holds a file between others, which is changed when some of them have been copied.
    let emptied = |n: usize| {
        format!(
            "create A/a{n}; write A/a{n} 0 4096; sync; create A/b{n}; write A/b{n} 0 4096; sync; fail-program 0; \
             write foo 0 4096; sync; background {}; chmod A/a{n} 384; sync; background 20; ",
            2 + n % 4
        )
    };
    let changing = "background 99; ".to_owned() + &(0..8).map(emptied).collect::<String>() + "unmount";
    vec![
        ("migration", migrating, Ground::Full, room.clone(), 0),
        ("collection", &["native", "native-lz4", "two-slots", "lanes-native"], Ground::Full, room, 0),
        ("changes while blocks are emptied", &["slc", "lanes"], Ground::Tree, changing, 1),
        ("levelling", &["slc", "native", "two-slots", "tlc-native"], Ground::Worn, steps(60), 2),
        ("renewal", fading, Ground::Faded, steps(3000), 2),
    ]
}

/// What comes of too little space, and of blocks that fail.
fn running_short() -> Vec<Process> {
    let filling = (0..12).map(|n| format!("append fill{n} 400000; ")).collect::<String>();
    let filling = filling + "create new; sync; write fill1 0 9000; unlink fill2; write fill3 0 9000; sync; unmount";
    let block = "fail-program 2; write fill1 0 20000; sync; background 100; fail-erase 1; write fill2 0 40000; sync; \
                 fail-program 0; append foo 30000; sync; unmount";
    let line = "fail-program 0; write fill1 0 20000; sync; background 100; fail-erase 0; write fill2 0 90000; sync; \
                fail-program 1; append foo 90000; sync; unmount";
    let failing = &["slc", "slc-only", "channels", "two-slots", "lanes", "lanes-native"];
    vec![
        ("running out of space", &["slc", "native", "slc-only", "lanes"], Ground::Full, filling, 0),
        ("retirement", failing, Ground::Full, block.to_owned(), 0),
        ("retirement of a word line", &["tlc-native", "tlc-lz4"], Ground::Full, line.to_owned(), 0),
    ]
}

/// Calls between single background steps while a checkpoint, or the emptying of a block, is under way.
fn overlapping() -> Vec<Process> {
    let script = |work: &str| (0..ROUNDS).map(|round| overlap(work, round)).collect::<String>() + "sync; unmount";
    let (checkpoint, emptying) = (script("checkpoint"), script("emptying"));
    vec![
        ("overlap with a checkpoint", &["slc", "native", "no-cache", "tlc"], Ground::Busy, checkpoint, 0),
        ("overlap with emptying", &["slc", "native", "one-bit", "tlc-lz4"], Ground::Busy, emptying, 0),
    ]
}

/// Again and again work is brought under way, and some calls come. In every other round each is synced before the next; in
/// the others two background steps begin a commit, which the next call meets.
fn overlap(work: &str, round: usize) -> String {
    let steps = if round.is_multiple_of(2) { "background 1; sync; background 1" } else { "background 2" };
    let call = |at: usize| OVERLAPPING[at].replace('#', &(round * OVERLAPPING.len() + at).to_string());
    let begun = |at: usize| if at.is_multiple_of(CALLS) { format!("stir {work}; ") } else { String::new() };
    (0..OVERLAPPING.len()).map(|at| format!("{}{}; {steps}; ", begun(at), call(at))).collect()
}
