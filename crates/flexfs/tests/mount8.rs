//! What mount(8) and umount(8) make of FlexFS, with the program as their helper.
//!
//! Each test is a shell script in a mount namespace of its own, in which the helper stands where mount(8) looks for it, so
//! that nothing of the machine is changed. Such a namespace begins with a copy of every mount there is, which keeps the
//! servers of those from ending: so this is a program of its own, and no other test runs beside it.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{image, need, need_root, output};

/// Runs `script` beside an image `flash.img` and an empty directory `m`; what it says. `shown` in it gives the options
/// that the kernel's table shows of the mount, and fails where that is no FlexFS; `flexfs` is the program.
fn with_mount(script: &str) -> String {
    need_root("mounts by mount(8)");
    ["mount", "umount", "unshare"].into_iter().for_each(need);
    let dir = tempfile::tempdir().unwrap();
    image(dir.path(), "32MiB");
    let helpers = dir.path().join("helpers");
    std::fs::create_dir_all(dir.path().join("m")).unwrap();
    std::fs::create_dir(&helpers).unwrap();
    symlink(env!("CARGO_BIN_EXE_flexfs"), helpers.join("mount.fuse.flexfs")).unwrap();
    let before = format!(
        "set -eu; mount --bind helpers /sbin; flexfs() {{ '{}' \"$@\"; }}
        shown() {{ grep \" $(realpath m) .* - fuse.flexfs \" /proc/self/mountinfo | cut -d ' ' -f 6; }}
        fails() {{ if \"$@\"; then echo \"$* should fail\" >&2; exit 1; fi; }}
        ",
        env!("CARGO_BIN_EXE_flexfs")
    );
    let output = output(
        Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .arg(before + script)
            .current_dir(dir.path())
            .stdin(Stdio::null()),
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(Path::new("/sbin").join("mount.fuse.flexfs").read_link().map_or(true, |to| !to.starts_with(dir.path())));
    said
}

/// What mount(8) takes for granted it does not pass on: devices and set-user-id programs did not work.
#[test]
fn suid_and_dev_hold_for_a_mount_by_root_unless_it_says_otherwise() {
    with_mount(
        "mount -t fuse.flexfs -o suid,dev flash.img m
        case $(shown) in *nosuid* | *nodev*) shown; exit 1 ;; rw*) ;; *) exit 1 ;; esac
        mknod m/null c 1 3; echo lost >m/null
        umount m
        mount -t fuse.flexfs flash.img m
        case $(shown) in *nosuid* | *nodev*) shown; exit 1 ;; rw*) ;; *) exit 1 ;; esac
        [ -z \"$(cat m/null)\" ]
        umount m
        mount -t fuse.flexfs -o nosuid,nodev flash.img m
        case $(shown) in *nosuid*nodev*) ;; *) shown; exit 1 ;; esac
        fails cat m/null
        umount m",
    );
}

#[test]
fn a_mount_is_made_read_only_and_writable_again() {
    with_mount(
        "mount -t fuse.flexfs -o noexec flash.img m
        echo before >m/file
        mount -o remount,ro m
        case $(shown) in ro*noexec*) ;; *) shown; exit 1 ;; esac
        fails touch m/file
        [ \"$(cat m/file)\" = before ]
        mount -o remount,rw m
        case $(shown) in rw*noexec*) ;; *) shown; exit 1 ;; esac
        echo after >m/file
        umount m
        flexfs fsck flash.img
        [ \"$(flexfs get flash.img file -)\" = after ]",
    );
}

/// Nothing that the kernel could do would make such a server write.
#[test]
fn a_mount_whose_server_only_reads_is_not_made_writable() {
    let said = with_mount(
        "mount -t fuse.flexfs -o ro flash.img m
        fails mount -o remount,rw m
        case $(shown) in ro*) ;; *) shown; exit 1 ;; esac
        mount -o remount,ro,noexec m
        case $(shown) in ro*noexec*) ;; *) shown; exit 1 ;; esac
        umount m
        fails flexfs mount -o remount,ro flash.img m",
    );
    assert!(said.contains("was mounted read-only") && said.contains("no FlexFS is mounted here"), "{said}");
}

/// The server was still writing its last checkpoint then, and `fsck` called the image in use.
#[test]
fn what_comes_after_umount_waits_for_the_server() {
    with_mount(
        "for round in 1 2 3 4 5 6; do
            mount -t fuse.flexfs -o nosync_image flash.img m
            [ -n \"$(shown)\" ]
            for file in $(seq 300); do echo $round $file >m/$file; done
            umount m && flexfs fsck flash.img
        done",
    );
}

#[test]
fn a_server_that_has_files_open_still_is_waited_for() {
    let said = with_mount(
        "mount -t fuse.flexfs flash.img m
        [ -n \"$(shown)\" ]
        exec 3>m/open
        umount -l m
        : >said
        (for try in $(seq 6000); do ! grep -q 'waiting for its server' said || break; sleep 0.1; done; echo last >&3) &
        exec 3>&-
        flexfs fsck flash.img 2>said
        cat said
        [ \"$(flexfs get flash.img open -)\" = last ]",
    );
    assert!(said.contains("waiting for its server to end"), "{said}");
}
