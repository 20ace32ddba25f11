//! Each rule of a page's channel, on channels that differ in one thing.

use super::*;

const IDLE: ChannelView =
    ChannelView { of_request: 0, of_file: 0, near: 0, issued: 0, reads_pending: 0, pending_ns: 0 };

#[test]
fn every_rule_is_found_by_its_name() {
    assert!(ChannelRule::ALL.into_iter().all(|channel| ChannelRule::named(channel.name()) == Some(channel)));
    assert_eq!(ChannelRule::named("fair"), None);
}

#[test]
fn where_nothing_else_tells_the_turn_does() {
    for channel in ChannelRule::ALL {
        assert_eq!([0, 1, 5, 8, 11].map(|turn| channel.choose(3, &[IDLE; 8], turn)), [0, 1, 5, 0, 3], "{channel:?}");
    }
}

#[test]
fn fairness_takes_the_channel_with_the_fewest_pages_of_the_file() {
    let channels = [(2, 0), (1, 9), (1, 7), (3, 0)].map(|(of_file, issued)| ChannelView { of_file, issued, ..IDLE });
    assert_eq!(ChannelRule::FileFairness.choose(3, &channels, 0), 2);
    assert_eq!(ChannelRule::FileFairness.choose(8, &channels, 3), 3, "a request that fills every channel goes in turn");
}

#[test]
fn fair_plus_spreads_a_request_over_channels_not_ahead() {
    let of_file = |pages: [u32; 4]| pages.map(|of_file| ChannelView { of_file, ..IDLE });
    assert_eq!(ChannelRule::FairPlus.choose(2, &of_file([2, 1, 0, 1]), 0), 2);
    let given = [1, 0, 0, 0].map(|of_request| ChannelView { of_request, ..IDLE });
    assert_eq!(ChannelRule::FairPlus.choose(2, &given, 0), 1);
    let mut busy = of_file([1, 2, 3, 1]);
    (busy[0].pending_ns, busy[3].pending_ns) = (900, 800);
    assert_eq!(ChannelRule::FairPlus.choose(2, &busy, 0), 1, "a page ahead, but idle");
}

#[test]
fn read_busy_plus_takes_the_least_busy_channel_once_a_request() {
    let mut busy = [900, 300, 700, 500].map(|pending_ns| ChannelView { pending_ns, ..IDLE });
    assert_eq!(ChannelRule::ReadBusyPlus.choose(3, &busy, 0), 1);
    busy[1].of_request = 1;
    assert_eq!(ChannelRule::ReadBusyPlus.choose(3, &busy, 0), 3, "another page of the same request");
}

#[test]
fn window_plus_keeps_neighbours_apart() {
    let near = [1, 2, 0, 0].map(|near| ChannelView { near, ..IDLE });
    assert_eq!(ChannelRule::WindowPlus.choose(1, &near, 0), 2);
    assert_eq!(ChannelRule::WindowPlus.choose(1, &near, 3), 3);
    let mut all = [1, 2, 1, 1].map(|near| ChannelView { near, ..IDLE });
    all[0].pending_ns = 5;
    assert_eq!(ChannelRule::WindowPlus.choose(1, &all, 0), 2, "the least busy, then with the fewest neighbours");
}

#[test]
fn the_turn_goes_on_behind_the_channel_that_was_chosen_in_turn() {
    assert_eq!(ChannelRule::RoundRobin.turn_after(3, 8, 13, 5), 14);
    assert_eq!([(3, 13), (16, 14)].map(|(pages, _)| ChannelRule::FileFairness.turn_after(pages, 8, 13, 5)), [13, 14]);
    assert_eq!([5, 7, 4].map(|chosen| ChannelRule::ReadBusyPlus.turn_after(3, 8, 13, chosen)), [14, 16, 21]);
    assert_eq!(ChannelRule::WindowPlus.turn_after(3, 8, 13, 2), 13);
}

#[test]
fn a_sync_takes_a_native_lane_for_each_pairing_distance() {
    assert_eq!([1, 7, 8, 15, 16, 20, 31, 32].map(|pages| run_of_sync(pages, 8, 4)), [1, 7, 8, 15, 8, 10, 11, 1]);
}

#[test]
fn read_busy_takes_the_next_channel_without_reads() {
    let reading = |pages: [u32; 4]| pages.map(|reads_pending| ChannelView { reads_pending, ..IDLE });
    assert_eq!([0, 1, 2, 3].map(|turn| ChannelRule::ReadBusy.choose(3, &reading([3, 0, 1, 0]), turn)), [1, 1, 3, 3]);
    assert_eq!(ChannelRule::ReadBusy.choose(3, &reading([3, 2, 1, 2]), 0), 2, "the fewest, where all read");
}

#[test]
fn hybrid_avoids_reads_on_channels_not_ahead() {
    let channels = [(0, 3), (1, 0), (2, 0), (0, 2)].map(|(of_file, reads_pending)| ChannelView {
        of_file,
        reads_pending,
        issued: 9,
        ..IDLE
    });
    assert_eq!(ChannelRule::Hybrid.choose(3, &channels, 0), 1, "a page ahead, and no read");
    assert_eq!(
        ChannelRule::Hybrid.choose(4, &channels, 2),
        2,
        "a request that fills every channel goes by reads alone"
    );
    assert_eq!([3, 4].map(|pages| ChannelRule::Hybrid.turn_after(pages, 4, 6, 2)), [6, 7]);
}

#[test]
fn rules_by_time_take_the_least_busy_of_equal_channels() {
    let mut channels = [900, 300, 700, 500].map(|pending_ns| ChannelView { pending_ns, ..IDLE });
    let rules = [ChannelRule::FairnessByTime, ChannelRule::HybridByTime, ChannelRule::ReadBusyByTime];
    assert_eq!(rules.map(|rule| rule.choose(3, &channels, 0)), [1, 1, 1]);
    channels[1].of_file = 1;
    assert_eq!(rules.map(|rule| rule.choose(3, &channels, 0)), [3, 1, 1], "a page ahead");
    channels[1].of_request = 1;
    assert_eq!(rules.map(|rule| rule.choose(3, &channels, 0)), [3, 3, 1], "another page of the request");
    assert_eq!(rules.map(|rule| rule.choose(4, &channels, 2)), [2, 1, 1], "a request that fills every channel");
}
