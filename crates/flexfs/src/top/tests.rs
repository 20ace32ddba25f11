//! Screens of made answers, and what follows from two of them.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::{Value, json};

use super::volume::State;
use super::{HEIGHT, Picture, ServerAnswer, WIDTH, text, text_of};

const DAY_NS: u64 = 86_400_000_000_000;
const YEAR_NS: u64 = 31_557_600_000_000_000;

/// A chip of these blocks: a quarter native, an eighth SLC, a few of all else.
fn block_map(blocks: usize) -> String {
    let kinds = [("m", blocks / 64), ("n", blocks / 4), ("s", blocks / 8), ("h", blocks / 32), ("b", 2)];
    let mut map: String = kinds.iter().map(|&(letter, count)| letter.repeat(count)).collect();
    map.push_str(&".".repeat(blocks - map.len()));
    map
}

/// What a server answers, with a chip of these blocks.
fn answer(blocks: usize) -> Value {
    let map = block_map(blocks);
    let count = |letter| map.matches(letter).count();
    json!({
        "image": "flash.img",
        "capacity_bytes": (blocks as u64) << 19,
        "used_bytes": (blocks as u64) << 17,
        "blocks": {
            "free": count('.'), "slc": count('s') + count('h'), "slc_hot": count('h'), "native": count('n'),
            "metadata": count('m'), "bad": count('b'),
        },
        "health": { "state": "good", "failing_blocks": 1, "fading_blocks": 3 },
        "programmed_bytes": { "host": 50 << 20, "metadata": 0, "migration": 8 << 20, "gc": 1 << 20, "wear_level": 0 },
        "wear": {
            "histogram": [
                { "from": 0, "to": 2, "blocks": blocks / 2 }, { "from": 3, "to": 5, "blocks": blocks / 2 - 10 },
                { "from": 6, "to": 8, "blocks": 0 }, { "from": 9, "to": 10, "blocks": 8 },
            ],
            "min": 0, "mean": 2.5, "max": 10, "endurance_native": 3000, "endurance_slc": 50000,
        },
        "life": null,
        "mounted": {
            "mountpoint": "/mnt/flash", "elapsed_ns": 4_000_000_000_u64, "policy": "default", "headroom_blocks": 17,
            "alpha": null, "to_slc": null, "under_way": null, "read_bytes": 20 << 20, "block_map": map,
        },
    })
}

/// How a life of three years stands after 400 days.
fn life(ends_ns: Option<u64>) -> Value {
    json!({
        "goal_ns": 3 * YEAR_NS, "start_ns": 1_750_000_000_000_000_000_i64, "elapsed_ns": 400 * DAY_NS, "delta": 0.62,
        "budget_bytes": 3_u64 << 40, "left_bytes": 2_u64 << 40, "ends_ns": ends_ns,
    })
}

/// What is asked again half a second later: α has changed, and 2 MiB were written.
fn later(before: &Value, alpha: Option<f64>) -> Value {
    let mut after = before.clone();
    let add = |value: &mut Value, more: u64| *value = (value.as_u64().unwrap() + more).into();
    add(&mut after["mounted"]["elapsed_ns"], 500_000_000);
    add(&mut after["mounted"]["read_bytes"], 3 << 19);
    add(&mut after["programmed_bytes"]["host"], 2 << 20);
    add(&mut after["programmed_bytes"]["migration"], 512 << 10);
    after["mounted"]["alpha"] = alpha.into();
    after["mounted"]["to_slc"] = json!({ "share": 1.0, "rule": "few SLC blocks" });
    after["mounted"]["under_way"] = "migration".into();
    after
}

fn told(answer: &Value) -> ServerAnswer {
    ServerAnswer::read(&answer.to_string()).unwrap()
}

fn state(answers: &[Value]) -> Picture {
    let mut picture = Picture::new(told(&answers[0]), Duration::from_millis(500));
    answers[1..].iter().for_each(|answer| picture.take(told(answer)));
    picture
}

/// A history in which α rises to 1, on a chip of these blocks.
fn busy(blocks: usize, life: Value) -> Picture {
    let mut answers = vec![answer(blocks)];
    answers[0]["life"] = life;
    for step in 0..20_u32 {
        answers.push(later(&answers[answers.len() - 1], Some((f64::from(step) / 16.0).min(1.0))));
    }
    state(&answers)
}

#[test]
fn a_volume_without_a_lifetime() {
    insta::assert_snapshot!(text(&state(&[answer(128)])));
}

#[test]
fn a_volume_with_a_lifetime() {
    insta::assert_snapshot!(text(&busy(1024, life(None))));
}

#[test]
fn a_goal_that_cannot_be_met() {
    let mut answer = answer(1024);
    answer["life"] = life(Some(900 * DAY_NS));
    answer["health"]["state"] = "overused".into();
    answer["mounted"]["headroom_blocks"] = (-2).into();
    insta::assert_snapshot!(text(&state(&[answer])));
}

#[test]
fn a_large_screen() {
    insta::assert_snapshot!(text_of(&busy(1024, life(None)), 120, 40).unwrap());
}

#[test]
fn a_chip_of_4096_blocks() {
    insta::assert_snapshot!(text(&busy(4096, Value::Null)));
}

#[test]
fn a_picture_that_stands_still() {
    let mut state = busy(1024, life(None));
    let before = text(&state);
    state.paused = true;
    state.take(told(&later(&answer(1024), Some(0.1))));
    let paused = text(&state);
    insta::assert_snapshot!(paused);
    state.paused = false;
    assert_eq!(text(&state), before);
}

#[test]
fn a_server_that_is_silent_is_told_of_until_it_answers() {
    let mut state = state(&[answer(128)]);
    state.answered = false;
    assert!(text(&state).contains("NO ANSWER"));
    state.take(told(&answer(128)));
    assert!(!text(&state).contains("NO ANSWER"));
}

#[test]
fn rates_are_differences_by_the_time_between_two_answers() {
    let first = answer(128);
    let state = |answers: &[Value]| {
        let snapshot = |answer: &Value| serde_json::from_value(answer.clone()).unwrap();
        let mut state = State::new(snapshot(&answers[0]));
        answers[1..].iter().for_each(|answer| state.take(snapshot(answer)));
        state.rates().map(|rates| [rates.host, rates.read, rates.migration])
    };
    assert_eq!(state(std::slice::from_ref(&first)), None);
    let second = later(&first, None);
    assert_eq!(state(&[first.clone(), second.clone()]), Some([4 << 20, 3 << 20, 1 << 20]));
    assert_eq!(state(&[first.clone(), first.clone()]), None, "one moment has no rate");
    assert_eq!(state(&[second, first]), None, "mounted again");
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let state = busy(4096, life(None));
    for (width, height) in [(0, 0), (1, 1), (20, 5), (79, 24), (80, 23)] {
        let said = text_of(&state, width, height).unwrap();
        assert!(width < 20 || said.starts_with("needs 80 x 24"), "{width} x {height}: {said}");
    }
    for (width, height) in [(80, 200), (500, 24), (300, 100)] {
        assert!(text_of(&state, width, height).unwrap().contains("δ 0.62"));
    }
}

/// Every block is one cell, in the colour of its kind, and the legend names the same colours.
#[test]
fn a_block_has_the_colour_that_the_legend_says() {
    let state = state(&[answer(128)]);
    let mut terminal = Terminal::new(TestBackend::new(WIDTH, HEIGHT)).unwrap();
    let screen = terminal.draw(|frame| state.draw(frame)).unwrap().buffer.clone();
    let map = block_map(128);
    let colour = |letter: char| {
        let place = map.find(letter).unwrap() as u16;
        let (columns, top) = (WIDTH - 2, 2);
        let cell = &screen[(1 + place % columns, top + place / columns)];
        assert_eq!(cell.symbol(), letter.to_string());
        let legend = (0..WIDTH).find(|&column| {
            let said = |at: u16| screen[(column + at, top + 2)].symbol();
            column + 2 < WIDTH && said(0) == letter.to_string() && said(1) == " " && said(2).parse::<u32>().is_ok()
        });
        assert_eq!(screen[(legend.unwrap(), top + 2)].bg, cell.bg, "{letter}");
        cell.bg
    };
    let colours = "mnshb.".chars().map(colour).collect::<Vec<_>>();
    assert!((1..6).all(|at| !colours[at..].contains(&colours[at - 1])), "{colours:?}");
    assert_eq!(colours[5], Color::Reset);
}

/// An answer of the server of a card whose chip has 128 blocks.
fn card_answer() -> Value {
    let map = format!("aammm{}ll{}", "D".repeat(80), ".".repeat(41));
    json!({
        "image": "card.img", "scheme": "log-block", "capacity_bytes": 96 << 14,
        "blocks": { "anchor": 2, "map": 3, "data": 80, "log": 2, "free": 41, "bad": 0 },
        "wear": {
            "histogram": [{ "from": 0, "to": 2, "blocks": 100 }, { "from": 3, "to": 5, "blocks": 28 }],
            "min": 0, "mean": 1.5, "max": 5, "endurance_native": 100_000,
        },
        "served": {
            "uri": "nbd://127.0.0.1:10809", "clients": 2, "elapsed_ns": 4_000_000_000_u64,
            "host": {
                "reads": 10, "read_bytes": 1 << 20, "writes": 20, "written_bytes": 1 << 20, "trims": 1, "failures": 0,
            },
            "flash": { "read_bytes": 2 << 20, "programmed_bytes": 2 << 20 },
            "work": {
                "erases": 70, "write_amplification": 1.625, "switches": 4, "partial_merges": 5, "merges": 6,
                "map_writes": 15, "map_copies": 3,
            },
            "block_map": map,
        },
    })
}

#[test]
fn a_card_that_is_served() {
    let before = card_answer();
    let mut after = before.clone();
    after["served"]["elapsed_ns"] = 4_500_000_000_u64.into();
    after["served"]["host"]["written_bytes"] = (3 << 20).into();
    after["served"]["flash"]["programmed_bytes"] = (5 << 20).into();
    after["served"]["host"]["failures"] = 1.into();
    insta::assert_snapshot!(text(&state(&[before, after])));
}

#[test]
fn an_image_that_another_server_has_now_is_drawn_anew() {
    let mut picture = state(&[answer(128), card_answer()]);
    assert!(text(&picture).contains("served for 4s, 2 clients"));
    picture.take(told(&answer(128)));
    assert!(text(&picture).contains("mounted for 4s"));
}
