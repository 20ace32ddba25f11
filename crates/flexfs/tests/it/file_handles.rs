//! File handles, by which NFS and `open_by_handle_at(2)` find a file that the kernel knows no more.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Mount, image, need, need_root, output, run};

/// Says a handle of a file, or opens one on a mount and shows its inode number, or the error.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static union { struct file_handle handle; char room[256]; } of;
    int mount, n;
    if (!strcmp(argv[1], "name")) {
        of.handle.handle_bytes = 128;
        if (name_to_handle_at(AT_FDCWD, argv[2], &of.handle, &mount, 0)) { perror("name_to_handle_at"); return 1; }
        for (n = 0; n < sizeof(struct file_handle) + of.handle.handle_bytes; n++) printf("%02x", (unsigned char)of.room[n]);
        return 0;
    }
    for (n = 0; argv[3][2 * n]; n++) { unsigned byte; sscanf(argv[3] + 2 * n, "%2x", &byte); of.room[n] = byte; }
    int fd = open_by_handle_at(open(argv[2], O_RDONLY | O_DIRECTORY), &of.handle, O_RDONLY);
    if (fd < 0) { perror("open_by_handle_at"); return 1; }
    struct stat found;
    fstat(fd, &found);
    printf("%llu", (unsigned long long)found.st_ino);
    return 0;
}
"#;

fn compiled(dir: &Path) -> std::path::PathBuf {
    need("cc");
    let (source, program) = (dir.join("handles.c"), dir.join("handles"));
    fs::write(&source, PROGRAM).unwrap();
    run(Command::new("cc").arg("-o").args([&program, &source]));
    program
}

#[test]
fn a_handle_leads_to_its_file_after_the_kernel_forgot_it_and_after_a_remount() {
    need_root("opens files by their handles");
    let dir = tempfile::tempdir().unwrap();
    let (program, image) = (compiled(dir.path()), image(dir.path(), "16MiB"));
    let mount = Mount::new(&image);
    fs::create_dir_all(mount.join("one/two")).unwrap();
    fs::write(mount.join("one/two/file"), "x").unwrap();
    fs::write(mount.join("one/gone"), "x").unwrap();
    let handle = |name: &str| run(Command::new(&program).arg("name").arg(mount.join(name)));
    let names = ["one/two/file", "one/two", "one", "one/gone"];
    let handles = names.map(handle);
    let inodes = names.map(|name| fs::metadata(mount.join(name)).unwrap().ino().to_string());
    let open = |mount: &Mount, handle: &str| {
        let opened = output(Command::new(&program).arg("open").arg(&mount.path).arg(handle).stdin(Stdio::null()));
        let said = if opened.status.success() { opened.stdout } else { opened.stderr };
        String::from_utf8(said).unwrap()
    };
    let assert_found = |mount: &Mount| {
        for (handle, inode) in handles.iter().zip(&inodes).take(3) {
            assert_eq!(open(mount, handle), *inode);
        }
    };
    common::drop_caches();
    assert_found(&mount);
    fs::remove_file(mount.join("one/gone")).unwrap();
    common::drop_caches();
    assert!(open(&mount, &handles[3]).contains("Stale file handle"), "{}", open(&mount, &handles[3]));
    mount.unmount();
    let mount = Mount::new(&image);
    assert_found(&mount);
    mount.unmount();
}
