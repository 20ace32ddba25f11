# chips: on nandsim of several geometries a tree is copied, compared, and compared again after a remount.
make_tree
chip() { # chip NAME ARGUMENTS...
    name=$1
    shift
    modprobe nandsim "$@" || { fault "$name: nandsim does not start"; return; }
    expect 0 formatted flexfs mkfs $device
    if mount_it; then
        cp -a /tmp/tree /mnt/
        sync
        same_tree "$name"
        unmount
        check_clean
        mount_it && { same_tree "$name, mounted again"; unmount; }
    fi
    echo "$name: pages of $(about writesize), $(about oobavail) free spare bytes, ECC of $(about ecc_strength), bad blocks $(about bad_blocks), failed pages $(about ecc_failures)"
    rmmod nandsim
}
chip "4 KiB, Hamming" id_bytes=0x20,0xf2,0x00,0x36
chip "2 KiB, Hamming" id_bytes=0x20,0xf2,0x00,0x15
chip "2 KiB, BCH4" id_bytes=0x20,0xf2,0x00,0x15 bch=4
chip "4 KiB, factory-bad blocks" id_bytes=0x20,0xf2,0x00,0x36 badblocks=0,3,7,50
chip "4 KiB, bit errors" id_bytes=0x20,0xf2,0x00,0x36 bitflips=1
export FLEXFS_MTD_READS=apart
chip "4 KiB, without MEMREAD" id_bytes=0x20,0xf2,0x00,0x36
chip "4 KiB, bit errors, without MEMREAD" id_bytes=0x20,0xf2,0x00,0x36 bitflips=1
chip "2 KiB, BCH4, without MEMREAD" id_bytes=0x20,0xf2,0x00,0x15 bch=4
exit $faults
