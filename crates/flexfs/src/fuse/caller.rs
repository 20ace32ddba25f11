//! Who asks: what a request says of the process behind it, and what it leaves out.
//!
//! Invariant: whoever cannot be looked at has no groups but the one in the request.

use fuser::Request;

/// Whether the caller keeps a file's privileges when it changes its contents.
pub fn is_root(req: &Request) -> bool {
    req.uid() == 0
}

/// Whether the caller is in a group, be it by its supplementary ones, which no request names.
pub fn is_in_group(req: &Request, gid: u32) -> bool {
    req.gid() == gid
        || std::fs::read_to_string(format!("/proc/{}/status", req.pid()))
            .is_ok_and(|status| supplementary_groups(&status).any(|group| group == gid))
}

fn supplementary_groups(status: &str) -> impl Iterator<Item = u32> + '_ {
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    groups.split_whitespace().filter_map(|group| group.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_status_and_none_where_it_has_none() {
        let groups = |status| supplementary_groups(status).collect::<Vec<_>>();
        assert_eq!(groups("Name:\tsh\nGid:\t7\t7\t7\t7\nGroups:\t4 24 1000 \nSeccomp:\t0\n"), [4, 24, 1000]);
        assert!(groups("Groups:\t \n").is_empty() && groups("Name:\tsh\n").is_empty());
    }
}
