use super::*;
use crate::drive::{DieOverlap, PermissionExchange};

const READ: u64 = 60_000;
const BUS: u64 = 102_400;
const PROGRAM: u64 = 800_000;

fn drive(switches: DriveSwitches) -> DriveModel {
    DriveModel::new(DriveShape::eight_channels(2, 2), DriveTimes::TABLE_I, switches)
}

const OVERLAP: DriveSwitches = DriveSwitches { overlap: DieOverlap::Always, exchange: None, read_priority: false };

fn command(kind: CommandKind, channel: u8, die: u8, pages: u8) -> PageCommand {
    PageCommand { kind, channel, die, pages }
}

fn reads(dies: &[(u8, u8)]) -> Vec<PageCommand> {
    dies.iter().map(|&(channel, die)| command(CommandKind::Read, channel, die, 1)).collect()
}

fn programs(dies: &[(u8, u8)]) -> Vec<PageCommand> {
    dies.iter().map(|&(channel, die)| command(CommandKind::Program, channel, die, 1)).collect()
}

/// When each request ends, by its number.
fn ends(drive: &mut DriveModel) -> Vec<(u32, u64)> {
    let mut ends = Vec::new();
    while let Some(outcome) = drive.step() {
        ends.extend(outcome.ended.map(|request| (request, drive.now_ns())));
    }
    ends.sort_unstable();
    ends
}

fn end_of(switches: DriveSwitches, commands: &[PageCommand]) -> u64 {
    let mut drive = drive(switches);
    drive.submit(commands);
    ends(&mut drive)[0].1
}

#[test]
fn a_read_senses_then_transfers_and_a_program_the_reverse() {
    assert_eq!(end_of(OVERLAP, &reads(&[(0, 0)])), READ + BUS);
    assert_eq!(end_of(OVERLAP, &programs(&[(0, 0)])), BUS + PROGRAM);
}

#[test]
fn dies_work_side_by_side_and_share_the_bus_of_their_channel() {
    assert_eq!(end_of(OVERLAP, &reads(&[(0, 0), (1, 0)])), READ + BUS, "two channels");
    assert_eq!(end_of(OVERLAP, &reads(&[(0, 0), (0, 1)])), READ + 2 * BUS, "two dies of one channel");
    assert_eq!(end_of(OVERLAP, &programs(&[(0, 0), (0, 1)])), 2 * BUS + PROGRAM);
}

#[test]
fn the_next_of_the_same_kind_overlaps_the_bus_time_if_it_may() {
    let plain = DriveSwitches::default();
    assert_eq!(end_of(OVERLAP, &reads(&[(0, 0), (0, 0)])), READ + 2 * BUS, "sensed beside the transfer");
    assert_eq!(end_of(plain, &reads(&[(0, 0), (0, 0)])), 2 * (READ + BUS));
    assert_eq!(end_of(OVERLAP, &programs(&[(0, 0), (0, 0)])), BUS + 2 * PROGRAM, "transferred beside the program");
    assert_eq!(end_of(plain, &programs(&[(0, 0), (0, 0)])), 2 * (BUS + PROGRAM));
    let mixed = [command(CommandKind::Program, 0, 0, 1), command(CommandKind::Read, 0, 0, 1)];
    assert_eq!(end_of(OVERLAP, &mixed), BUS + PROGRAM + READ + BUS, "they share the register");
    let three = reads(&[(0, 0), (0, 0), (0, 0)]);
    assert_eq!(end_of(OVERLAP, &three), READ + 3 * BUS);
}

#[test]
fn a_plane_command_does_two_pages_in_one_cell_time() {
    assert_eq!(end_of(OVERLAP, &[command(CommandKind::Program, 0, 0, 2)]), 2 * BUS + PROGRAM);
    assert_eq!(end_of(OVERLAP, &[command(CommandKind::Read, 0, 0, 2)]), READ + 2 * BUS);
}

#[test]
fn a_request_ends_with_its_last_page_behind_earlier_ones() {
    let mut drive = drive(OVERLAP);
    drive.submit(&programs(&[(0, 0), (1, 0)]));
    drive.submit(&reads(&[(2, 0)]));
    drive.submit(&reads(&[(0, 0)]));
    assert_eq!(ends(&mut drive), [(0, BUS + PROGRAM), (1, READ + BUS), (2, BUS + PROGRAM + READ + BUS)]);
    assert_eq!(drive.pages_done(), 4);
}

#[test]
fn a_read_with_priority_overtakes_waiting_programs_and_no_read() {
    let switches = DriveSwitches { read_priority: true, ..OVERLAP };
    let mut drive = drive(switches);
    drive.submit(&programs(&[(0, 0), (0, 0), (0, 0)]));
    drive.submit(&reads(&[(0, 0)]));
    drive.submit(&reads(&[(0, 0)]));
    let found = ends(&mut drive);
    let first_program = BUS + PROGRAM;
    assert_eq!(found[1].1, first_program + READ + BUS);
    assert_eq!(found[2].1, first_program + READ + 2 * BUS, "reads keep their order");
    assert_eq!(found[0].1, found[2].1 + BUS + 2 * PROGRAM);
}

#[test]
fn long_requests_take_the_permission_once_a_channel() {
    let command_ns = 20_000;
    let exchange = |once_over_pages| DriveSwitches {
        exchange: Some(PermissionExchange { command_ns, once_over_pages }),
        ..OVERLAP
    };
    let nine = reads(&[(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]);
    assert_eq!(end_of(exchange(16), &nine), 9 * command_ns + READ + BUS, "the ninth is permitted last");
    assert_eq!(end_of(exchange(8), &nine), 8 * command_ns + READ + BUS, "both of channel 0 with one permission");
}

#[test]
fn long_requests_overlap_where_only_these_may() {
    let switches = DriveSwitches { overlap: DieOverlap::LongRequests, ..DriveSwitches::default() };
    let on_one_die = |pages: u64| reads(&vec![(0, 0); pages as usize]);
    assert_eq!(end_of(switches, &on_one_die(16)), 16 * (READ + BUS));
    assert_eq!(end_of(switches, &on_one_die(17)), READ + 17 * BUS);
    let mut drive = drive(switches);
    drive.submit(&on_one_die(17));
    drive.submit(&on_one_die(1));
    assert_eq!(ends(&mut drive)[1].1, READ + 17 * BUS + READ + BUS, "a short request behind a long one");
}

#[test]
fn a_die_is_pending_for_what_was_asked_until_it_is_done() {
    let mut drive = drive(OVERLAP);
    drive.submit(&[command(CommandKind::Read, 2, 1, 2), command(CommandKind::Program, 2, 1, 1)]);
    drive.submit(&programs(&[(2, 0)]));
    let of =
        |drive: &DriveModel| [(2, 1), (2, 0), (3, 0)].map(|(channel, die)| drive.pending().of_die_ns(channel, die, 0));
    assert_eq!(of(&drive), [2 * BUS + PROGRAM, PROGRAM, 0]);
    assert_eq!([2, 3].map(|channel| drive.pending().reads_of_channel(channel)), [2, 0]);
    assert_eq!(drive.pending().of_die_ns(3, 0, 2), 2 * PROGRAM, "with two pages besides");
    ends(&mut drive);
    assert_eq!(of(&drive), [0; 3]);
    assert_eq!(drive.pending().reads_of_channel(2), 0);
}

#[test]
fn a_background_step_occupies_its_die_alone() {
    let mut drive = drive(OVERLAP);
    drive.submit_background(&BackgroundStep { channel: 0, die: 1, duration_ns: 1_000_000 });
    assert!(drive.has_background(0) && !drive.is_idle(0, 1) && drive.is_idle(0, 0));
    drive.submit(&reads(&[(0, 0)]));
    drive.submit(&reads(&[(0, 1)]));
    assert_eq!(ends(&mut drive), [(0, READ + BUS), (1, 1_000_000 + READ + BUS)]);
    assert!(!drive.has_background(0) && drive.is_idle(0, 1));
}

/// Random commands: what each die and bus did, summed, is what the commands take.
#[test]
fn a_drive_is_never_faster_than_its_slowest_die_or_bus() {
    use rand::{RngExt, SeedableRng};
    let mut dice = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    for switches in [DriveSwitches::default(), OVERLAP, DriveSwitches { read_priority: true, ..OVERLAP }] {
        let mut drive = drive(switches);
        let (mut cells, mut buses, mut requests) = ([[0; 2]; 8], [0; 8], 0);
        for _ in 0..500 {
            let commands: Vec<_> = (0..dice.random_range(1..9))
                .map(|_| {
                    let kind = if dice.random_bool(0.5) { CommandKind::Read } else { CommandKind::Program };
                    command(kind, dice.random_range(0..8), dice.random_range(0..2), dice.random_range(1..3))
                })
                .collect();
            for command in &commands {
                let cell_ns = if command.kind == CommandKind::Read { READ } else { PROGRAM };
                cells[usize::from(command.channel)][usize::from(command.die)] += cell_ns;
                buses[usize::from(command.channel)] += BUS * u64::from(command.pages);
            }
            drive.submit(&commands);
            requests += 1;
        }
        let found = ends(&mut drive);
        assert_eq!(found.len(), requests);
        let slowest = cells.into_iter().flatten().chain(buses).max().unwrap();
        let all: u64 = cells.into_iter().flatten().chain(buses).sum();
        assert!((slowest..all).contains(&drive.now_ns()), "{switches:?}");
    }
}
