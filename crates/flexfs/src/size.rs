//! Sizes as people write and read them: `512MiB`, and back.
//!
//! Invariant: only units of 1024 exist here, and what [`parse`] takes is exact: nothing is ever rounded.

const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Bytes of `512MiB`, `512M`, `1.5 GiB`, `4096`.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(format!("\"{text}\" is no size: it is less than nothing"));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let scale = if unit.is_empty() {
        1
    } else {
        let short = |name: &str| name.trim_end_matches("iB").eq_ignore_ascii_case(unit);
        let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit) || short(name));
        known.ok_or_else(|| format!("no unit is called \"{unit}\": write KiB, MiB, GiB or TiB"))?.1
    };
    exact(number, scale).ok_or_else(|| format!("\"{text}\" is no size: write one like 512MiB"))
}

/// `number`, a decimal, times `scale`, if that is a whole number that fits.
fn exact(number: &str, scale: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let tens = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
    if !part.is_multiple_of(tens) {
        return None;
    }
    whole.checked_mul(scale)?.checked_add(part / tens)
}

/// `bytes` for people: the largest unit that leaves at least 1, with as many decimals as tell something.
pub fn human(bytes: u64) -> String {
    let fitting = UNITS.iter().find(|(_, scale)| bytes >= *scale);
    let (name, scale) = fitting.copied().unwrap_or(("B", 1));
    if bytes.is_multiple_of(scale) {
        return format!("{} {name}", bytes / scale);
    }
    format!("{:.1} {name}", bytes as f64 / scale as f64)
}

/// `bytes` as one would type them for [`parse`]: exactly, with at most one decimal.
pub fn typed(bytes: u64) -> String {
    let tenths = |scale: u64| u128::from(bytes) * 10 / u128::from(scale);
    let exact = |scale: u64| tenths(scale) * u128::from(scale) == u128::from(bytes) * 10;
    let fitting = UNITS.iter().find(|(_, scale)| bytes >= *scale && exact(*scale));
    let (name, scale) = fitting.copied().unwrap_or(("B", 1));
    match (tenths(scale) / 10, tenths(scale) % 10) {
        (whole, 0) => format!("{whole}{name}"),
        (whole, tenth) => format!("{whole}.{tenth}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_typed_is_read_as_the_same_size() {
        for (bytes, text) in
            [(0, "0B"), (1000, "1000B"), (33 << 19, "16.5MiB"), (12 << 20, "12MiB"), (3 << 29, "1.5GiB")]
        {
            assert_eq!(typed(bytes), text);
        }
        for bytes in [1, 1025, (1 << 20) + 1, 516 << 20, 131_072 * 3, u64::MAX, u64::MAX - 7] {
            assert_eq!(parse(&typed(bytes)), Ok(bytes), "{}", typed(bytes));
        }
    }

    #[test]
    fn sizes_are_read_exactly() {
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse("1.5 gib"), Ok(3 << 29));
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!((parse("512M"), parse("2g"), parse("7b")), (Ok(512 << 20), Ok(2 << 30), Ok(7)));
        assert_eq!(parse("0"), Ok(0));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "12MB", "0.3B", "-1KiB", "1e3", "99999999999TiB", "1..5KiB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_in_their_largest_unit() {
        assert_eq!(human(512 << 20), "512 MiB");
        assert_eq!(human((512 << 20) + 1), "512.0 MiB");
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(7), "7 B");
        assert_eq!(human(0), "0 B");
    }
}
