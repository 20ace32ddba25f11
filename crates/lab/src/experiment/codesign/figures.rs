//! Means and comparisons of figures. Invariant: nothing is made of no figures.

/// By how many percent a figure is above another.
pub fn percent(figure: f64, base: f64) -> f64 {
    100.0 * (figure / base - 1.0)
}

pub fn mean(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

pub fn least(figures: &[f64]) -> Option<f64> {
    figures.iter().copied().reduce(f64::min)
}

pub fn most(figures: &[f64]) -> Option<f64> {
    figures.iter().copied().reduce(f64::max)
}
