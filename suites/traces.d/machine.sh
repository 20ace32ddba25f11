# The virtual machine that has a card as its disk: Debian's kernel with vfat, and a shell. The guest does what a plan says.
#
# Sourced, after that of suites/mtd; `work` and `case` name folders, `uri` the card, `machine` is the process while it runs.

# The machine of suites/mtd with other modules. What stands in $work/guest, the guest has as its first file system.
need_machine() {
    need qemu-system-x86_64:qemu-system-x86 cpio:cpio xz:xz-utils apt-get:apt dpkg:dpkg
    [ "$(uname -m)" = x86_64 ] || missing "the virtual machine needs a machine of the kind x86_64"
    [ ! -e "$work/vmlinux" ] || return 0
    local kernel version root=$work/root guest=$work/guest
    kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ && !name { name = $2 } END { print name }')
    [ -n "$kernel" ] || fail "Debian's package of the kernel is not known: run apt-get update"
    version=${kernel#linux-image-}
    mkdir -p "$cache/packages" "$root" "$guest"/{bin,dev,proc,sys,tmp,card}
    # shellcheck disable=SC2034
    modules="virtio_pci virtio_blk vfat nls_cp437 nls_ascii"
    unpack "$root" "$kernel" busybox-static
    cp "$(find "$root" -path '*/bin/busybox')" "$guest/bin/busybox"
    ln -s busybox "$guest/bin/sh"
    copy_modules "$root/lib/modules/$version" "$guest/lib/modules/$version"
    "$guest/bin/busybox" depmod -b "$guest" "$version"
    cp "$here/suites/traces.d/init" "$guest/init"
    unpack_kernel "$root/boot/vmlinuz-$version" "$work/vmlinux"
    rm -rf "$root"
}
# run_guest PLAN OPTIONS: QEMU passes on each request of the guest as it is.
run_guest() {
    cp "$1" "$work/guest/plan"
    echo "$2" >"$work/guest/options"
    (cd "$work/guest" && find . -print0 | cpio -0o -H newc -R 0:0 --quiet) >"$case/initrd"
    timeout 600 qemu-system-x86_64 -accel tcg -cpu max -M pc,usb=off -m 256 -nodefaults -no-user-config -display none \
        -no-reboot -serial stdio -kernel "$work/vmlinux" -initrd "$case/initrd" -rtc base=2002-05-01 \
        -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check" \
        -drive "file=$uri,format=raw,if=none,id=card" -device virtio-blk-pci,drive=card,request-merging=off \
        </dev/null >"$case/console" 2>&1 &
    machine=$!
    wait "$machine" || fail "QEMU fails: $(tail -5 "$case/console")"
    machine=''
    grep -q 'guest: played all' "$case/console" || fail "the guest fails: $(tail -5 "$case/console")"
}
