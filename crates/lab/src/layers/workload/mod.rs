//! The six traces of the log-block paper (§IV, Table II), made again: the sector requests that FAT makes of cameras and a PDA, and
//! ext2 of the Andrew benchmark.
//!
//! Their parameters follow from Table II and the text alone and stand in docs/FTL.md. Invariant: a workload and a seed give the
//! same requests everywhere, whatever they are run on.

mod andrew;
mod camera;
mod ext2;
mod fat;
mod pda;

use super::Request;

/// A request, and the time between the end of the one before and its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    pub gap_ns: u64,
    pub request: Request,
}

/// A row of Table II, or a workload beside it that comes near one.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// On a command line and in the names of jobs.
    pub name: &'static str,
    /// In the paper.
    pub title: &'static str,
    pub paper_commands: u64,
    pub paper_pages: u64,
    make: fn(u64) -> Vec<Timed>,
}

/// Sectors of the volume that every workload has: they fit a device of 1,024 blocks of which 64 are extra.
pub const SECTORS: u64 = 30_720;

impl Workload {
    /// In the order of Table II.
    pub const ALL: [Workload; 6] = [
        Workload {
            name: "canon-g1",
            title: "Canon PowerShot G1",
            paper_commands: 3_770,
            paper_pages: 137_856,
            make: |seed| camera::requests(&camera::CANON_G1, seed),
        },
        Workload {
            name: "canon-s100",
            title: "Canon PowerShot S100",
            paper_commands: 3_782,
            paper_pages: 122_095,
            make: |seed| camera::requests(&camera::CANON_S100, seed),
        },
        Workload {
            name: "kodak",
            title: "Kodak DC290",
            paper_commands: 14_144,
            paper_pages: 105_280,
            make: |seed| camera::requests(&camera::KODAK, seed),
        },
        Workload {
            name: "sanyo",
            title: "Sanyo VPC-SX500",
            paper_commands: 2_439,
            paper_pages: 93_301,
            make: |seed| camera::requests(&camera::SANYO, seed),
        },
        Workload {
            name: "ipaq",
            title: "Compaq iPAQ H3630",
            paper_commands: 5_663,
            paper_pages: 53_365,
            make: pda::requests,
        },
        Workload { name: "linux", title: "Linux", paper_commands: 322, paper_pages: 18_900, make: andrew::requests },
    ];

    /// The name of the camera with the most small requests (§IV).
    pub const SMALL_REQUESTS: &str = "kodak";

    /// The Kodak camera with table and directory entry written back: all data in small requests, beside each other.
    pub const KODAK_WRITTEN_BACK: Workload = Workload {
        name: "kodak-written-back",
        title: "Kodak DC290, written back",
        paper_commands: 14_144,
        paper_pages: 105_280,
        make: |seed| camera::requests(&camera::KODAK_WRITTEN_BACK, seed),
    };

    /// Its requests.
    pub fn requests(&self, seed: u64) -> Vec<Timed> {
        (self.make)(seed)
    }
}

/// Requests as they are made, and the time to the next one.
#[derive(Default)]
struct Requests {
    all: Vec<Timed>,
    gap_ns: u64,
}

impl Requests {
    /// Nothing is asked for a while.
    fn pause(&mut self, ns: u64) {
        self.gap_ns += ns;
    }

    fn read(&mut self, sector: u64, count: u64) {
        self.push(Request::Read { sector, count });
    }

    fn write(&mut self, sector: u64, count: u64) {
        self.push(Request::Write { sector, count });
    }

    fn push(&mut self, request: Request) {
        self.all.push(Timed { gap_ns: std::mem::take(&mut self.gap_ns), request });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_requests_and_all_of_them_fit_the_volume() {
        for workload in Workload::ALL.into_iter().chain([Workload::KODAK_WRITTEN_BACK]) {
            let requests = workload.requests(3);
            assert_eq!(requests, workload.requests(3));
            assert_ne!(requests, workload.requests(4), "{}", workload.name);
            for timed in requests {
                match timed.request {
                    Request::Read { sector, count } | Request::Write { sector, count } => {
                        assert!(count > 0 && sector + count <= SECTORS, "{}: {timed:?}", workload.name);
                    }
                    request => panic!("{}: {request:?}", workload.name),
                }
            }
        }
    }
}
