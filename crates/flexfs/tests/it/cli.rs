//! The program on the command line: what it refuses, in which words and with which exit status, and the shape of
//! what it prints. Invariant of every refusal: one line on standard error, nothing on standard output, and not a
//! byte of any file changed.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::common::forge::forge_anchors;
use crate::common::{assert_refused_and_unchanged, is_one_line, need_root};
use assert_cmd::Command;
use emulator::{Chip, Profile};
use serde_json::Value;

/// Where a chip image says its format version, little-endian.
const IMAGE_VERSION_AT: u64 = 8;

fn flexfs(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flexfs"));
    command.args(args);
    command
}

fn image(dir: &Path) -> PathBuf {
    let path = dir.join("flash.img");
    flexfs(&["mkfs", "--size", "16MiB"]).arg(&path).assert().success();
    path
}

/// Runs commands of every kind that open an image on this one: each must refuse it in one line with `why` in it.
fn assert_refused(image: &Path, why: &str) {
    let before = fs::read(image).ok();
    for (command, status) in [("info", 1), ("fsck", 8)] {
        let output = flexfs(&[command]).arg(image).assert().code(status).get_output().clone();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(is_one_line(&output.stderr), "{command}: {said}");
        assert!(said.contains(why) && said.contains(image.to_str().unwrap()), "{command}: {said}");
        assert!(output.stdout.is_empty());
        assert!(fs::read(image).ok() == before, "{command} changed the image");
    }
    assert_refused_and_unchanged(image, why);
}

/// Runs a command that must fail in one line with `why` in it.
fn assert_one_line(command: &mut Command, status: i32, why: &str) {
    let output = command.assert().code(status).get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(is_one_line(&output.stderr) && said.starts_with("flexfs: ") && said.contains(why), "{said}");
    assert!(!said.contains('\u{1b}'), "colour without a terminal: {said}");
    assert!(output.stdout.is_empty());
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn a_missing_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert_refused(&dir.path().join("none.img"), "flexfs mkfs");
    assert_eq!(entries(dir.path()), [dir.path().join("mnt")], "nothing is made");
}

#[test]
fn an_image_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - 1).unwrap();
    assert_refused(&image, "cut short");
    file.set_len(1000).unwrap();
    assert_refused(&image, "cut short");
}

#[test]
fn a_foreign_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    fs::write(&image, "a letter to a friend\n".repeat(1000)).unwrap();
    assert_refused(&image, "not a chip image");
    let picture = dir.path().join("other.img");
    fs::write(&picture, [0x7F; 64]).unwrap();
    assert_refused(&picture, "not a chip image");
}

#[test]
fn a_directory_in_place_of_an_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    fs::create_dir(&image).unwrap();
    assert_refused(&image, "a directory, not a chip image");
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB", "--force"]).arg(&image), 1, "not a regular file");
}

/// Opening one waited for its other end, and no signal but SIGKILL ended that.
#[test]
fn a_pipe_in_place_of_an_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    Command::new("mkfifo").arg(&pipe).assert().success();
    assert_one_line(flexfs(&["info"]).arg(&pipe), 1, "not a chip image");
    assert_one_line(flexfs(&["mount"]).args([&pipe, dir.path()]), 1, "not a chip image");
}

#[test]
fn a_mount_on_the_root_of_all_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    // It would be hidden, and the advice how to end it would be to unmount everything.
    assert_one_line(flexfs(&["mount"]).arg(&image).arg("/"), 1, "the root of all");
}

#[test]
fn a_half_made_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.set_len(0).and_then(|()| file.set_len(64 << 20)).unwrap();
    assert_refused(&image, "half made and holds nothing; remove it");
    let empty = dir.path().join("empty.img");
    fs::write(&empty, "").unwrap();
    assert_refused(&empty, "half made");
}

/// They begin with zeros, and their owners were told to remove them.
#[test]
fn a_file_system_of_another_kind_is_told_as_such_and_never_as_half_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk.img");
    let kinds: [(u64, &[u8], &str); 3] =
        [(1080, b"\x53\xef", "ext4 file system"), (65_600, b"_BHRfS_M", "btrfs"), (32_769, b"CD001", "ISO 9660")];
    for (at, mark, name) in kinds {
        let file = fs::File::create(&path).unwrap();
        file.set_len(1 << 20).and_then(|()| file.write_all_at(mark, at)).unwrap();
        assert_refused(&path, name);
        let told = flexfs(&["info"]).arg(&path).assert().failure();
        let said = String::from_utf8_lossy(&told.get_output().stderr).into_owned();
        assert!(said.contains("left alone") && !said.contains("half made") && !said.contains("remove it"), "{said}");
    }
    let image = image(dir.path());
    fs::OpenOptions::new().write(true).open(&image).unwrap().write_all_at(&[0; 8], 0).unwrap();
    assert_refused(&image, "first 8 bytes are lost; restore a backup");
}

#[test]
fn a_chip_that_was_never_formatted_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    drop(Chip::create_image(&image, &Profile::default().with_capacity(16 << 20).unwrap(), 1).unwrap());
    assert_refused(&image, "no FlexFS on this chip");
}

#[test]
fn an_image_of_a_newer_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&99u32.to_le_bytes(), IMAGE_VERSION_AT).unwrap();
    assert_refused(&image, "version 99");
}

#[test]
fn a_volume_of_a_newer_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    forge_anchors(&image, |anchor| anchor[8..12].copy_from_slice(&77u32.to_le_bytes()));
    assert_refused(&image, "version 77");
}

#[test]
fn a_chip_with_too_few_spare_bytes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = Profile::default().with_capacity(16 << 20).unwrap();
    profile.geometry.spare_bytes = 16;
    let description = dir.path().join("lean.toml");
    fs::write(&description, profile.to_toml().unwrap()).unwrap();
    let image = dir.path().join("flash.img");
    let mut mkfs = flexfs(&["mkfs", "--size", "16MiB", "--profile"]);
    assert_one_line(mkfs.arg(&description).arg(&image), 1, "spare bytes");
    assert_eq!(entries(dir.path()), [description], "nothing is left behind");
    drop(Chip::create_image(&image, &profile, 1).unwrap());
    assert_refused(&image, "spare bytes");
}

#[test]
fn a_chip_of_small_pages_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let arguments = ["mkfs", "--size", "16MiB", "--profile", "k9f5608u0m"];
    assert_one_line(flexfs(&arguments).arg(&image), 1, "cannot carry FlexFS");
    assert_one_line(
        flexfs(&arguments).arg(&image),
        1,
        "take --profile flexfs-mlc or flexfs-slc or codesign-mlc8 or tlc-3d",
    );
    let help = flexfs(&["mkfs", "--help"]).assert().success().get_output().clone();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("tlc-3d, for translation layers k9f5608u0m and k9k8g08u0m too"), "{help}");
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0], "nothing is left behind");
    drop(Chip::create_image(&image, &Profile::builtin("k9f5608u0m").unwrap(), 1).unwrap());
    assert_refused(&image, "cannot carry FlexFS");
}

#[test]
fn a_size_that_is_no_multiple_of_a_block_is_refused_with_the_multiple() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let block = Profile::default().block_bytes();
    for size in ["16385KiB", "1B", "0"] {
        assert_one_line(flexfs(&["mkfs", "--size", size]).arg(&image), 1, &format!("multiple of {block}"));
        let mountpoint = dir.path().join("mnt");
        let mut mount = flexfs(&["mount", "--create", size]);
        assert_one_line(mount.arg(&image).arg(mountpoint), 1, &format!("multiple of {block}"));
    }
    for (wrong, right) in [
        (["16385KiB", "flexfs-mlc"], "take --size 16MiB or --size 16.5MiB"),
        (["512MiB", "tlc-3d"], "take --size 504MiB or --size 516MiB"),
        (["5MiB", "tlc-3d"], "take --size 144MiB"),
        (["2TiB", "flexfs-mlc"], "take --size 148GiB or less"),
    ] {
        let mut mkfs = flexfs(&["mkfs", "--size", wrong[0], "--profile", wrong[1]]);
        assert_one_line(mkfs.arg(&image), 1, right);
    }
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0], "nothing is made");
    flexfs(&["mkfs", "--profile", "tlc-3d", "--size", "144MiB"]).arg(&image).assert().success();
}

#[test]
fn what_is_no_size_is_refused_with_an_example() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    assert_one_line(flexfs(&["mkfs", "--size", "large"]).arg(&image), 2, "MiB");
    assert_one_line(flexfs(&["mkfs", "--size", "512MB"]).arg(&image), 2, "MiB");
    assert_one_line(flexfs(&["mkfs"]).arg(&image), 2, "--size");
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0]);
}

/// `mkfs /dev/mtd7 --size 16MiB` made a file of that name where there was no such device.
#[test]
fn a_device_that_is_not_there_is_not_made_as_a_file() {
    let device = Path::new("/dev/mtd4000");
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB"]).arg(device), 1, "no such device");
    let mount = ["mount", "--create", "16MiB", "/dev/mtd4000"];
    let dir = tempfile::tempdir().unwrap();
    assert_one_line(flexfs(&mount).arg(dir.path()), 1, "no such device");
    assert_one_line(flexfs(&["info"]).arg(device), 1, "no such device");
    assert!(!device.exists());
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB", "/dev/null"]).arg("--force"), 1, "not a regular file");
}

#[test]
fn an_existing_file_is_replaced_only_by_force_and_only_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    fs::write(&image, "precious").unwrap();
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB"]).arg(&image), 1, "--force");
    assert_one_line(flexfs(&["mkfs", "--size", "16385KiB", "--force"]).arg(&image), 1, "multiple");
    let unsuitable = ["mkfs", "--size", "16MiB", "--force", "--profile", "k9f5608u0m"];
    assert_one_line(flexfs(&unsuitable).arg(&image), 1, "cannot carry FlexFS");
    assert_eq!(fs::read_to_string(&image).unwrap(), "precious");
    flexfs(&["mkfs", "--size", "16MiB", "--force"]).arg(&image).assert().success();
    flexfs(&["fsck"]).arg(&image).assert().success();
    assert_eq!(entries(dir.path()), [image]);
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("nowhere/flash.img");
    let why = format!("nowhere/flash.img: there is no directory {}/nowhere;", dir.path().display());
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB"]).arg(&image), 1, &why);
    assert_one_line(flexfs(&["info"]).arg(&image), 1, &why);
    let file = dir.path().join("nowhere");
    fs::write(&file, "").unwrap();
    let why = format!("{} is not a directory", file.display());
    assert_one_line(flexfs(&["mkfs", "--size", "16MiB"]).arg(&image), 1, &why);
    assert_one_line(flexfs(&["info"]).arg(&image), 1, &why);
}

/// The system's own words are said once, if at all.
#[test]
fn who_may_not_open_an_image_is_told_who_may() {
    need_root("becomes another user");
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&image, fs::Permissions::from_mode(0o600)).unwrap();
    let as_another = |args: &[&str], path: &Path, rest: &[&str], why: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flexfs"));
        command.args(args).arg(path).args(rest).uid(65534).gid(65534);
        assert_one_line(&mut command.into(), 1, &format!("{}: {why}", path.display()));
    };
    let denied = "permission denied; run as its owner or root";
    as_another(&["info"], &image, &[], denied);
    let in_directory = "permission denied in its directory";
    as_another(&["mkfs", "--size", "16MiB"], &dir.path().join("new.img"), &[], in_directory);
    fs::set_permissions(&image, fs::Permissions::from_mode(0o644)).unwrap();
    as_another(&["rm"], &image, &["/x"], denied);
    // No permission would help with a file that is no image.
    let letter = dir.path().join("letter");
    fs::write(&letter, "to a friend\n".repeat(1000)).unwrap();
    as_another(&["rm"], &letter, &["/x"], "not a chip image");
    fs::remove_file(&letter).unwrap();
    assert_eq!(entries(dir.path()), [image]);
}

#[test]
fn a_mount_point_that_is_none_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let mut onto_file = flexfs(&["mount", "--create", "16MiB"]);
    assert_one_line(onto_file.arg(&image).arg(&file), 1, "not a directory");
    assert_one_line(flexfs(&["mount"]).arg(&image).arg(dir.path().join("none")), 1, "no such directory");
    assert_eq!(entries(dir.path()), [file]);
}

#[test]
fn wrong_usage_is_one_line_that_points_to_the_help() {
    assert_one_line(&mut flexfs(&["info"]), 2, "flexfs info --help");
    assert_one_line(&mut flexfs(&["fsck"]), 16, "flexfs fsck --help");
    assert_one_line(&mut flexfs(&["fsck", "--repair", "x.img"]), 16, "--repair");
    assert_one_line(&mut flexfs(&["mend", "x.img"]), 2, "mend");
    assert_one_line(&mut flexfs(&["mount", "--mode", "fast", "x.img", "mnt"]), 2, "mlc-only");
    assert_one_line(&mut flexfs(&["mount", "--cache", "1KiB", "x.img", "mnt"]), 2, "256 KiB");
    assert_one_line(&mut flexfs(&["mkfs", "--size", "16MiB", "--profile", "paper", "x.img"]), 2, "tlc-3d");
    assert_one_line(&mut flexfs(&["bench", "everything"]), 2, "small");
    for number in ["--block=abc", "--ino=abc", "--ino=-1", "--block=99999999999"] {
        assert_one_line(&mut flexfs(&["dump", number, "x.img"]), 2, "write a whole one, like 12");
    }
    let long = "l".repeat(33);
    assert_one_line(&mut flexfs(&["mkfs", "--size", "16MiB", "--label", &long, "x.img"]), 2, "32 bytes");
}

#[test]
fn help_teaches_every_command_by_example() {
    for command in
        ["mkfs", "mount", "info", "fsck", "dump", "ls", "get", "put", "mkdir", "rm", "bench", "completions", "man"]
    {
        let output = flexfs(&[command, "--help"]).assert().success().get_output().clone();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains(&format!("  flexfs {command} ")), "{help}");
        assert!(output.stderr.is_empty());
    }
    flexfs(&["--help"]).assert().success();
    flexfs(&["--version"]).assert().success();
    flexfs(&[]).assert().code(2);
}

#[test]
fn mkfs_and_info_tell_the_same_in_json() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let made = json(flexfs(&["mkfs", "--size", "32MiB", "--label", "camera", "--json"]).arg(&image));
    let info = json(flexfs(&["info", "--json"]).arg(&image));
    for key in ["profile", "capacity_bytes", "volume_id", "label", "version"] {
        assert_eq!(made[key], info[key], "{key}");
    }
    assert_eq!(info["label"], "camera");
    assert_eq!(info["profile"], "flexfs-mlc");
    assert_eq!(info["chip"]["bytes"], 32 << 20);
    assert_eq!(info["clean"], true);
    assert_eq!(info["files"], 1);
    assert!(info["epoch"].is_u64() && info["checkpoints"].is_u64() && info["used_bytes"].is_u64());
    let blocks = info["blocks"].as_object().unwrap();
    assert_eq!(
        blocks.keys().map(String::as_str).collect::<Vec<_>>(),
        ["bad", "free", "metadata", "native", "slc", "slc_hot"]
    );
    // Hot blocks are among the SLC blocks.
    let apart = blocks.iter().filter(|(kind, _)| *kind != "slc_hot");
    let counted: u64 = apart.map(|(_, count)| count.as_u64().unwrap()).sum();
    assert_eq!(counted, info["chip"]["blocks"].as_u64().unwrap());
    let wear = &info["wear"];
    assert!(wear["min"].as_f64().unwrap() <= wear["mean"].as_f64().unwrap());
    assert!(wear["mean"].as_f64().unwrap() <= wear["max"].as_f64().unwrap());
}

#[test]
fn fsck_tells_its_counts_in_json_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let before = fs::read(&image).unwrap();
    let report = json(flexfs(&["fsck", "--json"]).arg(&image));
    assert_eq!(report["clean"], true);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    for key in ["files", "directories", "chunks", "index_pages"] {
        assert!(report[key].is_u64(), "{key}");
    }
    flexfs(&["info"]).arg(&image).assert().success();
    flexfs(&["fsck"]).arg(&image).assert().success();
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn every_builtin_chip_that_can_carry_a_volume_is_formatted_and_clean() {
    let dir = tempfile::tempdir().unwrap();
    for name in Profile::names() {
        let profile = Profile::builtin(name).unwrap();
        if profile.geometry.spare_bytes < 32 || !profile.geometry.spare_ecc {
            continue;
        }
        let image = dir.path().join(name);
        let size = profile.block_bytes() * 64 * u64::from(profile.geometry.channels);
        flexfs(&["mkfs", "--profile", name, "--size", &size.to_string()]).arg(&image).assert().success();
        flexfs(&["fsck"]).arg(&image).assert().success();
    }
}

#[test]
fn a_chip_described_in_a_file_is_used_like_a_builtin_one() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile { name: "mine".into(), ..Profile::default() };
    let description = dir.path().join("mine.toml");
    fs::write(&description, profile.to_toml().unwrap()).unwrap();
    let image = dir.path().join("flash.img");
    flexfs(&["mkfs", "--size", "16MiB", "--profile"]).arg(&description).arg(&image).assert().success();
    assert_eq!(json(flexfs(&["info", "--json"]).arg(&image))["profile"], "mine");
    fs::write(&description, "name = 7").unwrap();
    let mut broken = flexfs(&["mkfs", "--size", "16MiB", "--force", "--profile"]);
    let why = "mine.toml: the chip profile cannot be read: TOML parse error at line 1, column 8: invalid type";
    assert_one_line(broken.arg(&description).arg(&image), 2, why);
}

/// Runs a command that must print one JSON object and nothing else.
fn json(command: &mut Command) -> Value {
    let output = command.assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// They suggested what was asked for, or named nothing, or only some of what there is.
#[test]
fn a_value_that_is_refused_is_told_with_what_would_be_taken() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    for size in ["18446744073709551615", "1TiB"] {
        let why = "at most 303,104 blocks fit; take --size 148GiB or less";
        assert_one_line(flexfs(&["mkfs", "--size", size]).arg(&image), 1, why);
    }
    let buffer = "an SLC buffer is 1 to 90 % of the blocks";
    assert_one_line(flexfs(&["mount", "-o", "policy=slc-buffer=101%"]).args([&image, dir.path()]), 2, buffer);
    assert_one_line(flexfs(&["bench", "small", "--policy", "slc-buffer=0"]).arg("--json"), 2, buffer);
    for command in ["mkfs", "mount", "bench", "replay"] {
        let help = flexfs(&[command, "--help"]).assert().success().get_output().clone();
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let refused = flexfs(&[command, "--profile", "no-such-chip"]).assert().code(2).get_output().clone();
        let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
        for name in Profile::names() {
            assert!(help.contains(name) && refused.contains(name), "{command}, {name}: {help}{refused}");
        }
    }
    assert!(!image.exists());
}
