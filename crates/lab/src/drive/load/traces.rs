//! The four traces of the paper's §IV, as far as it tells of them. Invariant: shares and mean sizes are the paper's; the rest
//! is ours, since the traces are not published.

/// What is known of a trace, and what is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceShape {
    pub name: &'static str,
    /// Reads, of all requests.
    pub read_share: f64,
    /// The mean of all requests, KB of 1,024 bytes.
    pub mean_kb: f64,
    /// The deviation of the logarithm of a request's pages, and the most pages of one.
    pub size_sigma: f64,
    pub request_pages_max: u32,
    /// A read is as many times as long as a write, in the mean.
    pub read_of_write: f64,
    /// Median pages of a file, and the deviation of their logarithm.
    pub file_median_pages: f64,
    pub file_sigma: f64,
    /// Where in its file a request begins.
    pub offsets: OffsetDraw,
    /// Exponents of the popularity of files.
    pub read_zipf: f64,
    pub write_zipf: f64,
    /// Files that are written at a time at first, and pages that are overwritten then, of all pages.
    pub writers: usize,
    pub overwritten: f64,
}

/// Where in a file a request begins, of the places where it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetDraw {
    /// At each alike.
    Even,
    /// At the place ⌊u³ × places⌋ of an even u below 1: most often near the front.
    NearFront,
}

const PAGE_KB: f64 = 4.0;

impl TraceShape {
    /// Mean pages of a write, a page at least.
    pub fn write_pages_mean(&self) -> f64 {
        self.of_write().max(1.0)
    }

    /// Mean pages of a read, a page at least.
    pub fn read_pages_mean(&self) -> f64 {
        (self.read_of_write * self.of_write()).max(1.0)
    }

    fn of_write(&self) -> f64 {
        self.mean_kb / PAGE_KB / (self.read_share * self.read_of_write + 1.0 - self.read_share)
    }

    /// What is known of it and what is assumed, in a few words.
    pub fn told(&self) -> String {
        format!("{:.1} % reads, {} KB in the mean; {}", 100.0 * self.read_share, self.mean_kb, self.assumed())
    }

    /// How its files and requests are drawn, in a few words.
    pub fn assumed(&self) -> String {
        format!(
            "files log-normal, median {} pages, σ {}; requests log-normal, 1 to {} pages, σ {}, reads {} times as long; Zipf {} \
             and {}",
            self.file_median_pages,
            self.file_sigma,
            self.request_pages_max,
            self.size_sigma,
            self.read_of_write,
            self.read_zipf,
            self.write_zipf
        )
    }
}

pub(super) const LIVE_MAPS: TraceShape = TraceShape {
    name: "livemaps",
    read_share: 0.644,
    mean_kb: 49.1,
    size_sigma: 1.0,
    request_pages_max: 64,
    read_of_write: 2.0,
    file_median_pages: 48.0,
    file_sigma: 1.2,
    offsets: OffsetDraw::Even,
    read_zipf: 0.8,
    write_zipf: 0.8,
    writers: 4,
    overwritten: 0.5,
};

pub(super) const EXCHANGE: TraceShape = TraceShape {
    name: "exchange",
    read_share: 0.321,
    mean_kb: 20.2,
    size_sigma: 1.0,
    request_pages_max: 64,
    read_of_write: 2.0,
    file_median_pages: 2.0,
    file_sigma: 2.0,
    offsets: OffsetDraw::Even,
    read_zipf: 1.1,
    write_zipf: 0.8,
    writers: 1,
    overwritten: 0.2,
};

pub(super) const DEVELOPMENT: TraceShape = TraceShape {
    name: "development",
    read_share: 0.959,
    mean_kb: 24.2,
    size_sigma: 1.0,
    request_pages_max: 64,
    read_of_write: 2.0,
    file_median_pages: 24.0,
    file_sigma: 1.2,
    offsets: OffsetDraw::Even,
    read_zipf: 0.9,
    write_zipf: 0.8,
    writers: 4,
    overwritten: 0.1,
};

pub(super) const MSN_STORAGE: TraceShape = TraceShape {
    name: "msnstorage",
    read_share: 0.646,
    mean_kb: 9.99,
    size_sigma: 0.8,
    request_pages_max: 64,
    read_of_write: 2.0,
    file_median_pages: 12.0,
    file_sigma: 2.0,
    offsets: OffsetDraw::Even,
    read_zipf: 0.9,
    write_zipf: 0.9,
    writers: 4,
    overwritten: 0.0,
};

/// All of them, in the paper's order.
pub const TRACES: [TraceShape; 4] = [LIVE_MAPS, EXCHANGE, DEVELOPMENT, MSN_STORAGE];
