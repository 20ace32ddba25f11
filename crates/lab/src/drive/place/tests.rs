use super::*;
use crate::drive::load::{RequestSource, TRACES, first_writes, overwrites};
use crate::drive::{DriveModel, DriveSwitches, DriveTimes, PageCommand, ShadowedStore};

const SHAPE: DriveShape = DriveShape::eight_channels(2, 2);
const ALL: [FilePlacement; 15] = [
    FilePlacement::ROUND_ROBIN,
    FilePlacement::ROUND_ROBIN_STRIPED,
    FilePlacement::STATIC,
    FilePlacement::FAIRNESS,
    FilePlacement::READ_BUSY,
    FilePlacement::HYBRID,
    FilePlacement::FAIRNESS_BY_TIME,
    FilePlacement::READ_BUSY_BY_TIME,
    FilePlacement::HYBRID_BY_TIME,
    FilePlacement::DEPTH,
    FilePlacement::FAIR_PLUS,
    FilePlacement::READ_BUSY_PLUS,
    FilePlacement::HYBRID_PLUS,
    FilePlacement::STRIPED_PLUS,
    FilePlacement::WINDOW_PLUS,
];

fn idle() -> PendingTimes {
    PendingTimes::none(SHAPE, DriveTimes::TABLE_I)
}

fn store(placement: FilePlacement, files: &FileSizes) -> ShadowedStore<SpreadFiles> {
    ShadowedStore::new(SpreadFiles::new(placement, SHAPE, 256, files).unwrap(), files.pages())
}

/// The commands of a write.
fn written(store: &mut ShadowedStore<SpreadFiles>, span: &PageSpan) -> Vec<PageCommand> {
    let mut planned = PlannedRequest::default();
    store.write(span, &idle(), &mut planned).unwrap();
    planned.commands
}

fn places(commands: &[PageCommand]) -> Vec<(u8, u8, u8)> {
    commands.iter().map(|command| (command.channel, command.die, command.pages)).collect()
}

#[test]
fn each_page_that_is_read_is_the_one_that_was_written_last() {
    for placement in ALL {
        let files = FileSizes::count(&TRACES[1], 5, 300).unwrap();
        let mut store = store(placement, &files);
        for write in first_writes(&TRACES[1], &files, 5).unwrap() {
            written(&mut store, &write);
        }
        let mut planned = PlannedRequest::default();
        for request in RequestSource::new(&TRACES[1], &files, 5).unwrap().take(5_000) {
            match request.kind {
                CommandKind::Read => store.read(&request.span, &mut planned).unwrap(),
                CommandKind::Program => store.write(&request.span, &idle(), &mut planned).unwrap(),
            }
            let pages: u32 = planned.commands.iter().map(|command| u32::from(command.pages)).sum();
            assert_eq!(pages, request.span.pages);
        }
        for (file, counts) in (0..).zip(store.store.pages_by_channel()) {
            assert_eq!(counts.iter().sum::<u64>(), u64::from(files.size(file)), "{}", placement.name);
        }
    }
}

#[test]
fn round_robin_gives_each_channel_as_many_pages() {
    let files = FileSizes::count(&TRACES[0], 5, 200).unwrap();
    let mut store = store(FilePlacement::ROUND_ROBIN, &files);
    for write in first_writes(&TRACES[0], &files, 5).unwrap().iter().chain(&overwrites(&TRACES[0], &files, 5).unwrap())
    {
        written(&mut store, write);
        let (most, least) = (store.store.issued().max().unwrap(), store.store.issued().min().unwrap());
        assert!(most - least <= 1, "{most} and {least}");
    }
}

#[test]
fn an_open_blocks_successor_stands_on_the_channels_next_die() {
    let files = FileSizes::of([256 * 8 + 8].into_iter());
    let mut store = store(FilePlacement::ROUND_ROBIN, &files);
    assert!(written(&mut store, &files.span(0, 0, 256 * 8)).iter().all(|command| command.die == 0));
    assert!(written(&mut store, &files.span(0, 256 * 8, 8)).iter().all(|command| command.die == 1));
}

#[test]
fn striped_pages_are_plane_pairs_on_the_dies_in_turn() {
    let files = FileSizes::of([64].into_iter());
    let mut store = store(FilePlacement::ROUND_ROBIN_STRIPED, &files);
    let commands = written(&mut store, &files.span(0, 0, 33));
    let of_channel =
        |channel| places(&commands).into_iter().filter(move |place| place.0 == channel).collect::<Vec<_>>();
    assert_eq!(of_channel(0), [(0, 1, 2), (0, 0, 2), (0, 1, 1)], "five pages");
    assert_eq!(of_channel(3), [(3, 1, 2), (3, 0, 2)], "four pages");
    let mut planned = PlannedRequest::default();
    store.read(&files.span(0, 0, 16), &mut planned).unwrap();
    assert_eq!(places(&planned.commands)[0], (0, 1, 2), "both pages of a pair are read as one");
    planned.clear();
    store.read(&files.span(0, 0, 8), &mut planned).unwrap();
    assert_eq!(places(&planned.commands)[0], (0, 1, 1), "one page of it alone");
}

#[test]
fn depth_stripes_long_requests_and_no_others() {
    let files = FileSizes::of([64].into_iter());
    let mut store = store(FilePlacement::DEPTH, &files);
    assert!(written(&mut store, &files.span(0, 0, 16)).iter().all(|command| (command.die, command.pages) == (0, 1)));
    let long = written(&mut store, &files.span(0, 16, 32));
    assert_eq!(places(&long)[0], (0, 1, 2));
    assert_eq!(long.len(), 16, "two pairs on each channel");
    assert!(written(&mut store, &files.span(0, 48, 8)).iter().all(|command| (command.die, command.pages) == (0, 1)));
}

/// Of eight pages behind one another each stands on a channel of its own, in whatever order they were written.
#[test]
fn window_plus_keeps_neighbours_on_channels_of_their_own() {
    let files = FileSizes::of([64].into_iter());
    let mut store = store(FilePlacement::WINDOW_PLUS, &files);
    for offset in (0..64).step_by(8).rev() {
        written(&mut store, &files.span(0, offset, 8));
    }
    for offset in [3, 40, 17, 3, 62] {
        written(&mut store, &files.span(0, offset, 1));
    }
    let mut planned = PlannedRequest::default();
    for offset in 0..57 {
        planned.clear();
        store.read(&files.span(0, offset, 8), &mut planned).unwrap();
        let mut channels: Vec<u8> = planned.commands.iter().map(|command| command.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        assert!(channels.len() >= 7, "pages {offset} to {}: {channels:?}", offset + 7);
    }
}

#[test]
fn a_busy_channel_gets_no_page_under_the_rules_that_see_it() {
    let files = FileSizes::of([64].into_iter());
    let seeing = [
        FilePlacement::READ_BUSY,
        FilePlacement::HYBRID,
        FilePlacement::FAIRNESS_BY_TIME,
        FilePlacement::READ_BUSY_BY_TIME,
        FilePlacement::HYBRID_BY_TIME,
        FilePlacement::FAIR_PLUS,
        FilePlacement::READ_BUSY_PLUS,
        FilePlacement::WINDOW_PLUS,
    ];
    for placement in seeing {
        let mut store = store(placement, &files);
        let mut drive = DriveModel::new(SHAPE, DriveTimes::TABLE_I, DriveSwitches::default());
        let busy = [0, 1, 3, 4, 5, 6, 7].into_iter().flat_map(|channel| [0, 1].map(|die| (channel, die)));
        let busy = busy.map(|(channel, die)| PageCommand { kind: CommandKind::Read, channel, die, pages: 1 });
        drive.submit(&busy.collect::<Vec<_>>());
        let mut planned = PlannedRequest::default();
        store.write(&files.span(0, 9, 1), drive.pending(), &mut planned).unwrap();
        assert_eq!(planned.commands[0].channel, 2, "{}", placement.name);
    }
}

/// By the letter only reads count, and all pages of the request go to the channels without; by time pending the request's own pages
/// fill these up, too.
#[test]
fn read_busy_by_time_counts_the_pages_of_the_request() {
    let files = FileSizes::of([64].into_iter());
    let channels = |placement| {
        let mut store = store(placement, &files);
        let mut drive = DriveModel::new(SHAPE, DriveTimes::TABLE_I, DriveSwitches::default());
        let busy = [0, 1, 3, 4, 5, 7].map(|channel| PageCommand { kind: CommandKind::Read, channel, die: 0, pages: 1 });
        drive.submit(&busy);
        let mut planned = PlannedRequest::default();
        store.write(&files.span(0, 0, 4), drive.pending(), &mut planned).unwrap();
        planned.commands.iter().map(|command| command.channel).collect::<Vec<_>>()
    };
    assert_eq!(channels(FilePlacement::READ_BUSY), [2, 6, 2, 6]);
    assert_eq!(channels(FilePlacement::READ_BUSY_BY_TIME), [2, 6, 7, 0]);
}

#[test]
fn static_striping_overwrites_a_page_on_its_channel() {
    let files = FileSizes::of([16, 16, 16].into_iter());
    let mut store = store(FilePlacement::STATIC, &files);
    let channels = |commands: &[PageCommand]| commands.iter().map(|command| command.channel).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(channels(&written(&mut store, &files.span(1, 2, 3))), [7, 0, 1]);
        assert_eq!(channels(&written(&mut store, &files.span(2, 0, 2))), [2, 3]);
    }
}

#[test]
fn what_was_never_written_is_not_read() {
    let files = FileSizes::of([16].into_iter());
    let mut store = store(FilePlacement::ROUND_ROBIN, &files);
    written(&mut store, &files.span(0, 0, 3));
    let refused = store.read(&files.span(0, 2, 2), &mut PlannedRequest::default());
    assert_eq!(refused, Err(DriveError::NeverWritten { page: 3 }));
}
