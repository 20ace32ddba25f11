//! Spans of time as people write and read them: `3y`, `1year 2months`, and back.
//!
//! Invariant: a span that [`parse`] takes is exact, to the nanosecond; a year is 365.25 days and a month 30.44 days, in
//! both directions.

const NS_PER_S: u64 = 1_000_000_000;
const DAY_S: u64 = 24 * 60 * 60;
const MONTH_S: u64 = 3044 * DAY_S / 100;
const YEAR_S: u64 = 36_525 * DAY_S / 100;

/// Names of the units that are read, with their lengths in ns.
const UNITS: [(&[&str], u64); 10] = [
    (&["nanos", "nsec", "ns"], 1),
    (&["usec", "us", "µs"], 1000),
    (&["millis", "msec", "ms"], 1_000_000),
    (&["seconds", "second", "secs", "sec", "s"], NS_PER_S),
    (&["minutes", "minute", "min", "mins", "m"], 60 * NS_PER_S),
    (&["hours", "hour", "hr", "hrs", "h"], 3600 * NS_PER_S),
    (&["days", "day", "d"], DAY_S * NS_PER_S),
    (&["weeks", "week", "wk", "wks", "w"], 7 * DAY_S * NS_PER_S),
    (&["months", "month", "M"], MONTH_S * NS_PER_S),
    (&["years", "year", "yr", "yrs", "y"], YEAR_S * NS_PER_S),
];

/// Units that are written, the longest first: long, short, and their lengths in seconds.
const WRITTEN: [(&str, &str, u64); 6] = [
    ("year", "y", YEAR_S),
    ("month", "mo", MONTH_S),
    ("day", "d", DAY_S),
    ("h", "h", 3600),
    ("m", "m", 60),
    ("s", "s", 1),
];

/// Nanoseconds of `3y`, `90days`, `1y 2months`, `1.5 h`.
pub fn parse(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut ns: u64 = 0;
    loop {
        // An amount may have spaces within, a unit may not.
        let unit_at = rest.find(char::is_alphabetic)?;
        let (amount, from_unit) = rest.split_at(unit_at);
        let (unit, after) = from_unit.split_at(from_unit.find(|c: char| !c.is_alphabetic()).unwrap_or(from_unit.len()));
        let (_, scale) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        ns = ns.checked_add(scaled(amount, *scale)?)?;
        rest = after.trim_start();
        if rest.is_empty() {
            return Some(ns);
        }
    }
}

/// `amount`, a decimal that begins with a digit, times `scale`, if that is a whole number that fits.
fn scaled(amount: &str, scale: u64) -> Option<u64> {
    let amount: String = amount.chars().filter(|c| !c.is_whitespace()).collect();
    let (whole, part) = amount.split_once('.').unwrap_or((&amount, "0"));
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?;
    let tens = 10u128.pow(u32::try_from(part.len()).ok().filter(|&digits| digits < 20)?);
    let part = u128::from(number(part)?) * u128::from(scale);
    let part = part.is_multiple_of(tens).then(|| u64::try_from(part / tens).ok())?;
    number(whole)?.checked_mul(scale)?.checked_add(part?)
}

/// Whole seconds by all their units: `1year 2months 3days 4h`.
pub fn human(seconds: u64) -> String {
    let word = |(count, long, _): (u64, &'static str, _)| {
        let plural = if count > 1 && long.len() > 1 { "s" } else { "" };
        format!("{count}{long}{plural}")
    };
    joined(seconds, usize::MAX, word)
}

/// Whole seconds by their two largest units: `1y 2mo`.
pub fn short(seconds: u64) -> String {
    joined(seconds, 2, |(count, _, short)| format!("{count}{short}"))
}

/// The first units that a span has any of, each written by `word`: how many, and the unit's two names.
fn joined(seconds: u64, units: usize, word: impl Fn((u64, &'static str, &'static str)) -> String) -> String {
    if seconds == 0 {
        return "0s".to_owned();
    }
    let mut left = seconds;
    let counts = WRITTEN.map(|(long, short, length)| {
        let count = left / length;
        left %= length;
        (count, long, short)
    });
    let some = counts.into_iter().filter(|(count, ..)| *count > 0).take(units);
    some.map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_by_all_its_units() {
        let written = [
            (0, "0s"),
            (1, "1s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m 59s"),
            (3_600, "1h"),
            (9_420, "2h 37m"),
            (86_399, "23h 59m 59s"),
            (86_400, "1day"),
            (90_000, "1day 1h"),
            (172_801, "2days 1s"),
            (2_630_015, "30days 10h 33m 35s"),
            (2_630_016, "1month"),
            (5_260_032, "2months"),
            (31_536_000, "11months 30days 3h 50m 24s"),
            (31_557_599, "11months 30days 9h 50m 23s"),
            (31_557_600, "1year"),
            (35_000_000, "1year 1month 9days 9h 39m 44s"),
            (94_672_800, "3years"),
            (315_576_000_061, "10000years 1m 1s"),
            (u64::MAX / NS_PER_S, "584years 6months 15days 8h 12m 57s"),
            (u64::MAX, "584542046090years 7months 15days 17h 5m 3s"),
        ];
        for (seconds, text) in written {
            assert_eq!(human(seconds), text);
        }
    }

    #[test]
    fn a_span_is_written_by_its_two_largest_units() {
        assert_eq!([0, 59, 3_723, 90_000].map(short), ["0s", "59s", "1h 2m", "1d 1h"]);
        assert_eq!([31_557_600, 35_000_000, 6_000_000].map(short), ["1y", "1y 1mo", "2mo 8d"]);
        assert_eq!([31_557_600 + 5, 86_400 + 60].map(short), ["1y 5s", "1d 1m"]);
    }

    #[test]
    fn a_span_is_read_exactly_with_every_name_of_a_unit() {
        let read = [
            ("3y", 94_672_800 * NS_PER_S),
            ("1year 2months", (31_557_600 + 2 * 2_630_016) * NS_PER_S),
            ("1y2M3w4d5h6m7s", 38_995_999 * NS_PER_S),
            ("90days", 7_776_000 * NS_PER_S),
            ("2h 37min", 9_420 * NS_PER_S),
            ("1.5h", 5_400 * NS_PER_S),
            ("0.5y", 15_778_800 * NS_PER_S),
            ("1 . 5 d", 129_600 * NS_PER_S),
            ("  3 years \t4 wks ", (94_672_800 + 2_419_200) * NS_PER_S),
            ("1 0 s", 10 * NS_PER_S),
            ("3s3s", 6 * NS_PER_S),
            ("007s", 7 * NS_PER_S),
            ("1.000000001s", NS_PER_S + 1),
            ("32ms 5µs 4us 17ns", 32_009_017),
            ("0s", 0),
            ("18446744073709551615ns", u64::MAX),
        ];
        for (text, ns) in read {
            assert_eq!(parse(text), Some(ns), "{text}");
        }
        for (names, ns) in UNITS {
            names.iter().for_each(|name| assert_eq!(parse(&format!("2{name}")), Some(2 * ns), "{name}"));
        }
    }

    #[test]
    fn a_text_that_is_no_span_is_refused() {
        let wrong = "| |3|3 |y|-3y|+3y|3q|3Y|3 m s|3y -1d|3y,1d|1.y|1.s|.5y|3y.5d|3y .5d|1.5.5s|1..5s|1.0000000001s\
                     |1e3s|3y:1d|none|3日|٣y|18446744073709551616ns|99999999999999999999y|600y";
        for text in wrong.split('|') {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
