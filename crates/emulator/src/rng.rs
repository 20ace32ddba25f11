//! Random numbers that depend on nothing but their key.
//!
//! Every chance event draws from a generator keyed by the seed and by what the event is about (block, erase count,
//! page, operation), so the same history gives the same bytes in RAM and in an image, before and after a reopening,
//! and no generator state needs to be kept. Only integer and basic float arithmetic is used: no platform differs.

/// SplitMix64: enough for fault injection, and one word of state.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

/// What a draw is for, so that events at one address do not share their chances.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    FactoryBad = 1,
    Cut = 2,
    WearFailure = 3,
    BitErrors = 4,
    Corrupt = 5,
}

impl Rng {
    /// The generator of one event.
    pub(crate) fn keyed(seed: u64, purpose: Purpose, key: [u64; 4]) -> Self {
        let mut rng = Rng(seed ^ (purpose as u64).wrapping_mul(0xA076_1D64_78BD_642F));
        for word in key {
            rng.0 = rng.next_u64() ^ word.wrapping_mul(0xE703_7ED1_A0B4_28DB);
        }
        rng
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// How many events happen (Poisson).
    pub(crate) fn poisson(&mut self, expected: Poisson) -> u32 {
        let mut product = self.unit();
        let mut count = 0;
        while product > expected.limit {
            product *= self.unit();
            count += 1;
        }
        count
    }
}

/// So many events are expected. Many numbers can be drawn for the work of one exponential.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poisson {
    /// What the product of uniform numbers falls below.
    limit: f64,
}

impl Poisson {
    pub(crate) fn of_mean(mean: f64) -> Self {
        // Past a few hundred the answer is "far more than any code corrects", whatever the exact number.
        Self { limit: exp_neg(mean.min(600.0)) }
    }
}

/// `e^-x` for `x >= 0`, from multiplications alone, so that every platform rounds alike.
fn exp_neg(x: f64) -> f64 {
    let whole = x.floor();
    let fraction = x - whole;
    let mut series = 1.0;
    for n in (1..=16).rev() {
        series = 1.0 - series * fraction / f64::from(n);
    }
    let mut result = series;
    for _ in 0..whole as u32 {
        result /= std::f64::consts::E;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_accurate() {
        for x in [0.0, 0.001, 0.5, 0.999, 1.0, 3.7, 50.0, 600.0] {
            let error = (exp_neg(x) / f64::exp(-x) - 1.0).abs();
            assert!(error < 1e-12, "x {x}: off by {error}");
        }
    }

    #[test]
    fn a_poisson_draw_has_the_mean_it_was_asked_for() {
        let mut rng = Rng::keyed(1, Purpose::BitErrors, [0; 4]);
        let sum: u32 = (0..10_000).map(|_| rng.poisson(Poisson::of_mean(3.0))).sum();
        assert!((29_000..31_000).contains(&sum), "{sum}");
    }

    #[test]
    fn one_key_always_gives_one_sequence() {
        let draw = |key| Rng::keyed(7, Purpose::Cut, key).next_u64();
        assert_eq!(draw([1, 2, 3, 4]), draw([1, 2, 3, 4]));
        assert_ne!(draw([1, 2, 3, 4]), draw([1, 2, 4, 3]));
    }
}
