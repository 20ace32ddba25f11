//! Real programs on a mount: `tar`, `git`, `cargo` and SQLite, each compared byte for byte after a remount.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Dice, Mount, assert_clean, assert_same_tree, image, listing, need, run};

/// Files in the generated source tree.
const FILES: usize = 5_200;

/// SQLite transactions, each synced to the write-ahead log.
const TRANSACTIONS: i64 = 1_000;

#[test]
fn an_unpacked_source_tree_is_the_same_after_a_remount() {
    need("tar");
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("tree");
    generate_tree(&kept, FILES, 11);
    let files = listing(&kept).iter().filter(|(_, what)| what.ends_with("bytes")).count();
    assert!(files >= 5_000, "only {files} files");
    let archive = dir.path().join("tree.tar");
    run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(dir.path()).arg("tree"));
    let image = image(dir.path(), "512MiB");

    let mount = Mount::new(&image);
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&mount.path));
    assert_same_tree(&kept, &mount.join("tree"));
    mount.unmount();

    assert_clean(&image);
    let mount = Mount::new(&image);
    assert_same_tree(&kept, &mount.join("tree"));
    run(Command::new("tar").arg("-df").arg(&archive).arg("-C").arg(&mount.path));
    mount.unmount();
}

#[test]
fn a_cloned_repository_is_whole_after_a_remount() {
    need("git");
    let dir = tempfile::tempdir().unwrap();
    let origin = dir.path().join("origin");
    make_repository(&origin);
    let image = image(dir.path(), "512MiB");

    let mount = Mount::new(&image);
    let clone = mount.join("clone");
    run(git(dir.path()).args(["clone", "--quiet", "--no-local"]).arg(&origin).arg(&clone));
    run(git(&clone).args(["checkout", "--quiet", "-b", "topic"]));
    run(git(&clone).args(["commit", "--quiet", "--allow-empty", "-m", "on flash"]));
    run(git(&clone).args(["gc", "--quiet"]));
    let kept = keep(&clone, dir.path());
    mount.unmount();

    assert_clean(&image);
    let mount = Mount::new(&image);
    let clone = mount.join("clone");
    assert_same_tree(&kept, &clone);
    run(git(&clone).args(["fsck", "--strict"]));
    assert_eq!(run(git(&clone).args(["status", "--porcelain"])), "");
    for (path, _) in listing(&origin).iter().filter(|(path, what)| !path.starts_with(".git") && what.ends_with("bytes"))
    {
        assert!(fs::read(origin.join(path)).unwrap() == fs::read(clone.join(path)).unwrap(), "{}", path.display());
    }
    mount.unmount();
}

#[test]
fn a_crate_builds_and_runs_and_is_the_same_after_a_remount() {
    need("cargo");
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "512MiB");
    let mount = Mount::new(&image);
    let project = mount.join("project");
    make_crate(&project);
    run(cargo(&project).args(["build", "--offline"]));
    assert_eq!(run(&mut Command::new(project.join("target/debug/project"))), "2520\n");
    // A second build finds everything as it left it: times are kept well enough to tell what is fresh.
    fs::write(project.join("src/bin/other.rs"), "fn main() { println!(\"{}\", project::answer() + 1) }\n").unwrap();
    run(cargo(&project).args(["build", "--offline"]));
    let kept = keep(&project, dir.path());
    mount.unmount();

    assert_clean(&image);
    let mount = Mount::new(&image);
    let project = mount.join("project");
    assert_same_tree(&kept, &project);
    assert_eq!(run(&mut Command::new(project.join("target/debug/project"))), "2520\n");
    assert_eq!(run(&mut Command::new(project.join("target/debug/other"))), "2521\n");
    mount.unmount();
}

#[test]
fn a_thousand_sqlite_transactions_are_there_after_a_remount_whatever_the_journal() {
    for (journal, beside) in [("wal", "-wal"), ("delete", ""), ("persist", "-journal")] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "512MiB");
        let mount = Mount::new(&image);
        let database = open_database(&mount.join("data.sqlite"), journal);
        write_transactions(&database);
        assert_database(&database);
        let journal_file = mount.join(format!("data.sqlite{beside}"));
        assert!(journal_file.exists(), "{} is not there: the journal is another one", journal_file.display());
        drop(database);
        let kept = dir.path().join("kept.sqlite");
        fs::copy(mount.join("data.sqlite"), &kept).unwrap();
        mount.unmount();

        assert_clean(&image);
        let mount = Mount::new(&image);
        assert!(fs::read(&kept).unwrap() == fs::read(mount.join("data.sqlite")).unwrap());
        assert_database(&open_database(&mount.join("data.sqlite"), journal));
        mount.unmount();
    }
}

#[test]
fn sqlite_transactions_survive_kill_9_of_the_server() {
    for journal in ["wal", "delete"] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "512MiB");
        let mount = Mount::new(&image);
        let database = open_database(&mount.join("data.sqlite"), journal);
        write_transactions(&database);
        mount.kill();
        drop(database);

        assert_clean(&image);
        let mount = Mount::new(&image);
        assert_database(&open_database(&mount.join("data.sqlite"), journal));
        mount.unmount();
    }
}

/// A tree like a large program's sources: many small files, a few large, nested, with links and scripts.
fn generate_tree(root: &Path, files: usize, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut dirs = vec![root.to_path_buf()];
    fs::create_dir(root).unwrap();
    for number in 0..files {
        if number % 12 == 0 {
            let parent = dirs[dice.below(dirs.len() as u64) as usize].clone();
            let dir = parent.join(format!("module_{number}"));
            fs::create_dir(&dir).unwrap();
            dirs.push(dir);
        }
        let dir = &dirs[dice.below(dirs.len() as u64) as usize];
        let path = dir.join(format!("source_{number}.rs"));
        fs::write(&path, source_text(&mut dice)).unwrap();
        match number % 100 {
            7 => fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap(),
            23 => symlink(format!("source_{number}.rs"), dir.join(format!("alias_{number}"))).unwrap(),
            42 => fs::hard_link(&path, dir.join(format!("twin_{number}"))).unwrap(),
            _ => {}
        }
    }
}

/// Text the size of a source file: a few hundred bytes to a few thousand mostly, now and then much more or none.
fn source_text(dice: &mut Dice) -> String {
    let words = match dice.below(50) {
        0 => 0,
        1 => 8_000 + dice.below(20_000),
        _ => 20 + dice.below(1_500),
    };
    let mut text = String::new();
    for index in 0..words {
        text.push_str(["fn", "let", "mut", "self", "match", "return", "Some", "page", "block"][dice.below(9) as usize]);
        text.push_str(&dice.below(1000).to_string());
        text.push(if index % 9 == 8 { '\n' } else { ' ' });
    }
    text
}

/// A `git` that minds no configuration of the machine it runs on.
fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [("AUTHOR", "A"), ("COMMITTER", "C")] {
        command.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), "x@example.org");
    }
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command
}

fn make_repository(path: &Path) {
    fs::create_dir(path).unwrap();
    run(git(path).args(["init", "--quiet", "--initial-branch=main"]));
    for round in 0..15 {
        generate_tree(&path.join(format!("part{round}")), 40, round);
        if round > 0 {
            fs::write(path.join("part0/changing.txt"), format!("round {round}\n").repeat(500)).unwrap();
        }
        run(git(path).args(["add", "--all"]));
        run(git(path).args(["commit", "--quiet", "-m", &format!("round {round}")]));
    }
}

/// A `cargo` that minds nothing of the one that runs the tests.
fn cargo(dir: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(dir).env("CARGO_TARGET_DIR", dir.join("target"));
    for variable in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        command.env_remove(variable);
    }
    command
}

fn make_crate(path: &Path) {
    fs::create_dir_all(path.join("src/bin")).unwrap();
    let manifest = "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    fs::write(path.join("Cargo.toml"), manifest).unwrap();
    let mut library = String::from("pub fn answer() -> u64 {\n    let mut n = 1;\n");
    for number in 1..=10 {
        fs::write(path.join(format!("src/part{number}.rs")), format!("pub const PART: u64 = {number};\n")).unwrap();
        library.insert_str(0, &format!("mod part{number};\n"));
        library.push_str(&format!("    n = lcm(n, part{number}::PART);\n"));
    }
    library.push_str("    n\n}\nfn lcm(a: u64, b: u64) -> u64 { a / gcd(a, b) * b }\n");
    library.push_str("fn gcd(a: u64, b: u64) -> u64 { if b == 0 { a } else { gcd(b, a % b) } }\n");
    fs::write(path.join("src/lib.rs"), library).unwrap();
    fs::write(path.join("src/main.rs"), "fn main() { println!(\"{}\", project::answer()) }\n").unwrap();
}

/// A copy on the host of a tree on the mount.
fn keep(tree: &Path, dir: &Path) -> PathBuf {
    let kept = dir.join("kept");
    run(Command::new("cp").arg("-a").arg(tree).arg(&kept));
    assert_same_tree(&kept, tree);
    kept
}

fn open_database(path: &Path, journal: &str) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(path).unwrap();
    let pragma = format!("PRAGMA journal_mode = {journal}");
    let mode: String = database.query_row(&pragma, [], |row| row.get(0)).unwrap();
    assert_eq!(mode, journal);
    // In full only the removal of a rollback journal, which is the commit, would not be synced.
    database.pragma_update(None, "synchronous", "EXTRA").unwrap();
    database
}

fn write_transactions(database: &rusqlite::Connection) {
    database.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", []).unwrap();
    for id in 0..TRANSACTIONS {
        database.execute("INSERT INTO entries VALUES (?1, ?2)", (id, blob(id))).unwrap();
        if id % 10 == 9 {
            database.execute("UPDATE entries SET bytes = ?2 WHERE id = ?1", (id - 5, blob(-id))).unwrap();
        }
    }
}

fn assert_database(database: &rusqlite::Connection) {
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let mut statement = database.prepare("SELECT id, bytes FROM entries ORDER BY id").unwrap();
    let mut rows = statement.query([]).unwrap();
    for id in 0..TRANSACTIONS {
        let row = rows.next().unwrap().unwrap_or_else(|| panic!("row {id} is missing"));
        let expected = if id % 10 == 4 { blob(-(id + 5)) } else { blob(id) };
        let (found, bytes) = (row.get::<_, i64>(0).unwrap(), row.get::<_, Vec<u8>>(1).unwrap());
        assert!(found == id && bytes == expected, "row {id} is not what was committed");
    }
    assert!(rows.next().unwrap().is_none());
}

fn blob(id: i64) -> Vec<u8> {
    let mut dice = Dice::new(id.unsigned_abs() * 2 + u64::from(id < 0));
    let length = dice.below(2000) as usize;
    dice.bytes(length)
}
