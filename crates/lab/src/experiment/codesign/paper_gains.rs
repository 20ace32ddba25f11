//! What the co-design paper says that its channel schemes gain (§IV). Invariant: the figures are the text's, gains in percent.

/// A scheme of the paper, and its least and its most gain on the four traces.
pub struct PaperGain {
    pub scheme: &'static str,
    /// By how many percent the mean response is shorter than Round-Robin's.
    pub response: [f64; 2],
    /// By how many percent the throughput is higher.
    pub throughput: [f64; 2],
}

pub const PAPER_GAINS: [PaperGain; 4] = [
    PaperGain { scheme: "fairness", response: [7.0, 23.1], throughput: [7.5, 30.1] },
    PaperGain { scheme: "read-busy", response: [7.4, 17.2], throughput: [8.0, 20.7] },
    PaperGain { scheme: "depth", response: [7.8, 15.5], throughput: [8.4, 18.4] },
    PaperGain { scheme: "hybrid", response: [14.4, 24.4], throughput: [16.8, 32.3] },
];

/// What it says of all traces in the mean: about so much.
pub const RESPONSE_ABOUT: f64 = 20.0;
pub const THROUGHPUT_ABOUT: f64 = 24.0;
