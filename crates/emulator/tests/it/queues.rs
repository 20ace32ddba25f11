//! Several dies at once, and several callers: what overlaps, what waits, and for how long.

use emulator::{Chip, Profile};
use nand::CellMode::Native;
use nand::{Cause, Nand, PageRead};

use crate::common::{barrier, chip, four_dies, page_contents, program, program_tagged};

/// Operations of each die that throughput is taken of.
const EACH: u32 = 4096;

/// The co-design paper's drive with so many channels of one die each, without the data of its pages.
fn drive(channels: u16) -> Chip {
    let mut profile = Profile::builtin("codesign-mlc8").unwrap();
    profile.geometry.channels = channels;
    profile.geometry.blocks = u32::from(channels) * EACH / profile.geometry.pages_per_block;
    Chip::without_data(&profile, 1).unwrap()
}

/// How long it takes to program and to read so many pages of each die, ns.
fn times_ns(chip: &mut Chip) -> [u64; 2] {
    let (dies, pages) = (chip.geometry().dies(), chip.geometry().pages_per_block);
    let page = vec![0; chip.geometry().page_bytes as usize];
    for turn in 0..EACH {
        for die in 0..dies {
            chip.program(turn / pages * dies + die, turn % pages, Native, &page, &[], Cause::Host).unwrap();
        }
    }
    barrier(chip);
    let programmed_ns = chip.now_ns();
    let mut buffers = vec![vec![0; page.len()]; dies as usize];
    for turn in 0..EACH {
        let mut reads: Vec<PageRead> = (0..)
            .zip(&mut buffers)
            .map(|(die, data)| PageRead::new(turn / pages * dies + die, turn % pages, 0, data, &mut [], Cause::Host))
            .collect();
        chip.read_many(&mut reads);
        assert!(reads.iter().all(|read| read.outcome.is_ok()));
    }
    [programmed_ns, chip.now_ns() - programmed_ns]
}

#[test]
fn eight_channels_do_nearly_eight_times_the_work() {
    let (one_ns, eight_ns) = (times_ns(&mut drive(1)), times_ns(&mut drive(8)));
    for (what, one_ns, eight_ns) in [("programs", one_ns[0], eight_ns[0]), ("reads", one_ns[1], eight_ns[1])] {
        let ratio = 8.0 * one_ns as f64 / eight_ns as f64;
        assert!(ratio >= 7.9, "{what}: {ratio:.2} times the work of one channel");
    }
}

#[test]
fn the_busy_times_of_the_dies_are_the_flash_time() {
    let mut chip = drive(8);
    times_ns(&mut chip);
    assert_eq!(chip.busy_ns().len(), 8);
    assert_eq!(chip.busy_ns().iter().sum::<u64>(), chip.counters().flash_ns);
    assert!(chip.busy_ns().iter().all(|busy_ns| *busy_ns == chip.counters().flash_ns / 8));
    chip.reset_counters();
    assert_eq!(chip.busy_ns(), [0; 8]);
}

#[test]
fn reads_of_many_pages_give_what_single_reads_give() {
    let mut chip = four_dies();
    for block in 0..6 {
        program(&mut chip, block, 0, Native).unwrap();
    }
    // Two of one die, an erased page, and one outside the chip.
    let pages = [(0, 0), (4, 0), (1, 0), (2, 0), (3, 1), (99, 0)];
    let mut buffers = vec![(vec![0; 4096], vec![0; 64]); pages.len()];
    let mut reads: Vec<PageRead> = pages
        .iter()
        .zip(&mut buffers)
        .map(|(&(block, page), (data, spare))| PageRead::new(block, page, 0, data, spare, Cause::Host))
        .collect();
    chip.read_many(&mut reads);
    let outcomes: Vec<_> = reads.into_iter().map(|read| read.outcome).collect();
    assert_eq!(chip.now_ns(), 2 * 431_000 + 2 * 403_000, "the slowest die has two programs and two reads");
    assert_eq!(chip.counters().reads.total(), 5);
    for ((outcome, (block, page)), found) in outcomes.into_iter().zip(pages).zip(buffers) {
        assert_eq!(outcome.map(|_| found), page_contents(&mut chip, block, page));
    }
}

#[test]
fn settling_a_die_waits_for_that_die_and_tells_its_failures() {
    let mut chip = four_dies();
    program(&mut chip, 0, 0, Native).unwrap();
    chip.faults_mut().fail_erase_at(0);
    chip.faults_mut().fail_program_at(0);
    chip.erase(1, Cause::Host).unwrap();
    program(&mut chip, 2, 0, Native).unwrap();
    assert_eq!([0, 1, 2, 3, 9].map(|die| chip.pending_ns(die)), [431_000, 872_000, 431_000, 0, 0]);
    let mut failures = Vec::new();
    chip.settle(0, &mut failures).unwrap();
    assert_eq!((chip.now_ns(), failures.len()), (431_000, 0));
    chip.settle(2, &mut failures).unwrap();
    assert_eq!(failures.iter().map(|failure| failure.block).collect::<Vec<_>>(), [2]);
    chip.settle(1, &mut failures).unwrap();
    assert_eq!((chip.now_ns(), failures.last().unwrap().block), (872_000, 1));
    assert_eq!((chip.counters().settles, chip.counters().barriers), (3, 0));
    assert_eq!(barrier(&mut chip), [], "a failure is told once");
}

#[test]
fn callers_overlap_on_two_dies_and_wait_on_one() {
    for (second_block, end_ns) in [(1, 10_000 + 431_000), (4, 2 * 431_000)] {
        let mut chip = four_dies();
        chip.begin_call(0);
        program(&mut chip, 0, 0, Native).unwrap();
        barrier(&mut chip);
        assert_eq!(chip.call_end_ns(), 431_000);
        chip.begin_call(10_000);
        assert_eq!((chip.now_ns(), chip.call_end_ns()), (10_000, 10_000), "it came while the first call waited");
        program(&mut chip, second_block, 0, Native).unwrap();
        assert_eq!(chip.call_end_ns(), end_ns);
        assert_eq!(chip.busy_until_ns(), end_ns.max(431_000));
    }
}

/// What a call of the schedule does, and on which die.
#[derive(Clone, Copy, Debug)]
enum Did {
    Program(u32),
    Read(u32),
    ReadBoth(u32, u32),
    Erase(u32),
    Settle(u32),
}

/// Four dies on two channels, dies 0 and 2 on the first. In µs: a transfer takes 256, sensing 50, programming 1,000 and
/// erasing 2,000. The ends were worked out by hand.
#[test]
fn calls_end_as_a_schedule_made_by_hand_says() {
    let mut profile = Profile::builtin("codesign-mlc8").unwrap();
    (profile.geometry.channels, profile.geometry.dies_per_chip, profile.geometry.blocks) = (2, 2, 16);
    profile.timing.bus_ps_per_byte = 62_500;
    (profile.timing.native.read_ns, profile.timing.native.program_ns) = (vec![50_000], vec![1_000_000]);
    profile.timing.native.erase_ns = 2_000_000;
    let mut chip = Chip::new(&profile, 1).unwrap();
    let schedule: [(u64, &[Did], u64); 18] = [
        (0, &[Did::Program(0)], 1256),
        (0, &[Did::Program(1)], 1256),
        (10, &[Did::Program(2)], 1512),
        (20, &[Did::Erase(3)], 2020),
        (30, &[Did::Read(0)], 1562),
        (40, &[Did::Read(1)], 1562),
        (50, &[Did::Read(2)], 1818),
        (60, &[Did::Program(3)], 3276),
        (2000, &[Did::Erase(0)], 4000),
        (2100, &[Did::Program(1)], 3532),
        (2100, &[Did::Program(2)], 3356),
        (2200, &[Did::ReadBoth(1, 2)], 3838),
        (2300, &[Did::Erase(0)], 6000),
        (3000, &[Did::Program(3)], 5094),
        (3000, &[Did::Read(2)], 3968),
        (5000, &[Did::Program(2), Did::Program(0)], 7256),
        (5100, &[Did::Read(3), Did::Settle(2)], 6256),
        (5200, &[Did::Program(1)], 6662),
    ];
    let mut units = [0; 4];
    for (number, (arrival_us, calls, end_us)) in schedule.into_iter().enumerate() {
        chip.begin_call(arrival_us * 1000);
        for call in calls {
            act(&mut chip, *call, &mut units);
        }
        assert_eq!(chip.call_end_ns(), end_us * 1000, "call {number}: {calls:?} at {arrival_us}");
    }
    assert_eq!(chip.busy_until_ns(), 7_256_000);
}

fn act(chip: &mut Chip, did: Did, units: &mut [u32; 4]) {
    let (mut one, mut other) = ([0; 4096], [0; 4096]);
    match did {
        Did::Program(die) => {
            let data = [7; 4096];
            chip.program(die, units[die as usize], Native, &data, &[], Cause::Host).unwrap();
            units[die as usize] += 1;
        }
        Did::Read(die) => drop(chip.read(die, 0, 0, &mut one, &mut [], Cause::Host).unwrap()),
        Did::ReadBoth(first, second) => chip.read_many(&mut [
            PageRead::new(first, 0, 0, &mut one, &mut [], Cause::Host),
            PageRead::new(second, 0, 0, &mut other, &mut [], Cause::Host),
        ]),
        Did::Erase(die) => chip.erase(die + 4, Cause::Host).unwrap(),
        Did::Settle(die) => chip.settle(die, &mut Vec::new()).unwrap(),
    }
}

/// One caller whose calls come one after the other sees the same clock, whether calls are begun or not.
#[test]
fn calls_one_after_the_other_take_the_time_of_one_caller() {
    let (mut told, mut plain) = (chip(), chip());
    for unit in 0..8 {
        told.begin_call(told.now_ns());
        for chip in [&mut told, &mut plain] {
            program_tagged(chip, 0, unit, Native, unit).unwrap();
            barrier(chip);
        }
        assert_eq!((told.now_ns(), told.call_end_ns()), (plain.now_ns(), plain.now_ns()));
    }
}
