//! The `git` load: commits, now and then a repack that removes what it packed.
//!
//! `git` syncs what it writes, but not the rename by which a branch moves on. So a commit that was acknowledged must
//! be there, and it must be on the branch once the branch's directory was synced after it. Invariant: what was on the
//! branch after a kill is on it after the next.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Dice, output, run};

const NAME: &str = "repository";
const BRANCHES: &str = ".git/refs/heads";
/// Commits after which the repository is made anew, so that a check stays quick.
const COMMITS_MAX: usize = 400;
/// Commits of a load after which it packs them.
const COMMITS_A_PACK: u64 = 12;
const FILES: u64 = 24;

/// A `git` that minds no configuration of the machine it runs on, and whose every file is synced.
fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [("AUTHOR", "A"), ("COMMITTER", "C")] {
        command.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), "x@example.org");
    }
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    for setting in ["core.fsync=all", "core.fsyncMethod=fsync", "gc.auto=0", "maintenance.auto=false"] {
        command.args(["-c", setting]);
    }
    command
}

/// Commits until something fails; what was acknowledged is appended to `acknowledged`.
pub fn load(repository: &Path, acknowledged: &Path) {
    let mut record = OpenOptions::new().append(true).open(acknowledged).unwrap();
    let mut dice = Dice::new(fs::metadata(acknowledged).unwrap().len() + u64::from(std::process::id()));
    // What was half done when the server was killed.
    run(git(repository).args(["reset", "--quiet", "--hard"]));
    for number in 1.. {
        for _ in 0..1 + dice.below(3) {
            let name = dice.below(FILES);
            let dir = repository.join(format!("part{}", name % 4));
            fs::create_dir_all(&dir).unwrap();
            let words = 10 + dice.below(1500);
            let text: String = (0..words).map(|_| format!("{} ", dice.below(100_000))).collect();
            fs::write(dir.join(format!("{name}.txt")), text).unwrap();
        }
        run(git(repository).args(["add", "--all"]));
        run(git(repository).args(["commit", "--quiet", "-m", &format!("commit {number}")]));
        let hash = run(git(repository).args(["rev-parse", "HEAD"]));
        record.write_all(format!("made {hash}").as_bytes()).unwrap();
        if dice.below(2) == 0 {
            File::open(repository.join(BRANCHES)).unwrap().sync_all().unwrap();
            record.write_all(format!("synced {hash}").as_bytes()).unwrap();
        }
        if number % COMMITS_A_PACK == 0 {
            run(git(repository).args(["gc", "--quiet", "--prune=now"]));
        }
    }
}

/// A repository on the mount and what is known of it.
pub struct Git {
    /// Where the load writes down what it was promised.
    pub acknowledged: PathBuf,
    /// The commit the branch was found at, or nothing where the repository is new.
    head: Option<String>,
}

impl Git {
    /// A repository on `mount`, with one commit.
    pub fn new(mount: &Path, outside: &Path) -> Self {
        let git = Self { acknowledged: outside.join("acknowledged-git"), head: None };
        git.make(mount);
        git
    }

    fn make(&self, mount: &Path) {
        let repository = mount.join(NAME);
        fs::create_dir(&repository).unwrap();
        run(git(&repository).args(["init", "--quiet", "--initial-branch=main"]));
        run(git(&repository).args(["commit", "--quiet", "--allow-empty", "-m", "first"]));
        File::open(&repository).unwrap().sync_all().unwrap();
        fs::write(&self.acknowledged, "").unwrap();
    }

    /// The load on it, to be run.
    pub fn load(&self, mount: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--git").arg(mount.join(NAME)).arg(&self.acknowledged);
        command
    }

    /// Fails unless the repository is whole and holds what was acknowledged; gives how many commits came to it.
    pub fn check(&mut self, mount: &Path) -> u64 {
        let repository = mount.join(NAME);
        remove_locks(&repository.join(".git"));
        let fsck = output(git(&repository).args(["fsck", "--full", "--no-dangling", "--no-progress"]));
        let said = [fsck.stdout, fsck.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let wrong = ["missing", "corrupt", "broken", "error", "fatal"].iter().any(|word| said.contains(word));
        assert!(fsck.status.success() && !wrong, "git fsck: {}\n{said}", fsck.status);

        let record = fs::read_to_string(&self.acknowledged).unwrap();
        let of_kind = |kind: &str| -> Vec<String> {
            record.lines().filter_map(|line| line.strip_prefix(kind)).map(|hash| hash.trim().to_owned()).collect()
        };
        let made = of_kind("made ");
        assert_readable(&repository, &made);
        let branch = run(git(&repository).args(["rev-list", "main"]));
        let on_branch: HashSet<&str> = branch.lines().collect();
        for hash in of_kind("synced ").iter().chain(&self.head) {
            assert!(on_branch.contains(hash.as_str()), "{hash} is no longer on the branch");
        }
        self.head = branch.lines().next().map(str::to_owned);
        fs::write(&self.acknowledged, "").unwrap();
        if on_branch.len() > COMMITS_MAX {
            fs::remove_dir_all(&repository).unwrap();
            self.make(mount);
            self.head = None;
        }
        made.len() as u64
    }
}

/// Fails unless every commit is there with all that it is made of.
fn assert_readable(repository: &Path, commits: &[String]) {
    let mut command = git(repository);
    command.args(["rev-list", "--objects", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all((commits.join("\n") + "\n").as_bytes()).unwrap();
    let status = child.wait().unwrap();
    assert!(commits.is_empty() || status.success(), "of {commits:?} something is missing: {status}");
}

/// What a `git` that ended too early left, as its user would remove it.
fn remove_locks(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            remove_locks(&path);
        } else if path.extension().is_some_and(|extension| extension == "lock" || extension == "pid") {
            fs::remove_file(&path).unwrap();
        }
    }
}
