//! Log-normal counts of pages, rounded and held between one and a most. Invariant: the mean of what is drawn is the mean that
//! was asked for.

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use crate::drive::DriveError;

/// A distribution of counts from 1 on.
#[derive(Clone, Debug)]
pub struct PageCounts(WeightedIndex<f64>);

/// Halvings of the range in which the logarithm's mean is searched.
const HALVINGS: u32 = 60;

impl PageCounts {
    /// Counts with that mean, whose logarithms deviate so much before they are rounded.
    pub fn with_mean(mean: f64, sigma: f64, most: u32) -> Result<Self, DriveError> {
        if !(1.0..=f64::from(most)).contains(&mean) || sigma <= 0.0 {
            return Err(DriveError::Plan(format!("requests of {mean} pages in the mean, of 1 to {most}, σ {sigma}")));
        }
        let (mut low, mut high) = (-12.0, 8.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match mean_of(&shares(middle, sigma, most)) < mean {
                true => low = middle,
                false => high = middle,
            }
        }
        let shares = shares((low + high) / 2.0, sigma, most);
        WeightedIndex::new(shares).map(Self).map_err(|error| DriveError::Plan(error.to_string()))
    }

    pub fn draw(&self, dice: &mut impl Rng) -> u32 {
        self.0.sample(dice) as u32 + 1
    }
}

/// How often each count from 1 on comes, where the logarithm's mean is `mu`.
fn shares(mu: f64, sigma: f64, most: u32) -> Vec<f64> {
    let below = |count: f64| 0.5 * libm::erfc((mu - count.ln()) / (sigma * std::f64::consts::SQRT_2));
    let up_to = |count: u32| match count {
        0 => 0.0,
        count if count == most => 1.0,
        count => below(f64::from(count) + 0.5),
    };
    (1..=most).map(|count| up_to(count) - up_to(count - 1)).collect()
}

fn mean_of(shares: &[f64]) -> f64 {
    (1..).zip(shares).map(|(count, share)| f64::from(count) * share).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::load::{DiceStream, TRACES, dice};

    #[test]
    fn requests_are_as_long_as_those_of_the_trace() {
        for trace in &TRACES {
            let mut dice = dice(7, DiceStream::Requests);
            for mean in [trace.read_pages_mean(), trace.write_pages_mean()] {
                let counts = PageCounts::with_mean(mean, trace.size_sigma, 64).unwrap();
                let drawn: Vec<u32> = (0..50_000).map(|_| counts.draw(&mut dice)).collect();
                let found = f64::from(drawn.iter().sum::<u32>()) / 50_000.0;
                assert!((found / mean - 1.0).abs() < 0.02, "{}: {found} pages, not {mean}", trace.name);
                assert!(drawn.iter().all(|pages| (1..=64).contains(pages)));
            }
            let all = trace.read_share * trace.read_pages_mean() + (1.0 - trace.read_share) * trace.write_pages_mean();
            assert!((all * 4.0 - trace.mean_kb).abs() < 1e-9, "{}", trace.name);
        }
    }

    #[test]
    fn a_mean_out_of_range_is_refused() {
        for (mean, sigma) in [(0.5, 1.0), (65.0, 1.0), (f64::NAN, 1.0), (2.0, 0.0)] {
            assert!(matches!(PageCounts::with_mean(mean, sigma, 64), Err(DriveError::Plan(_))));
        }
    }
}
