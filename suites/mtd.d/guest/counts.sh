# counts FILESYSTEM: page operations of a workload, by the kernel's own trace, on a chip of 64 MiB with pages of 4 KiB.
# What it says is a table: file system, workload, part, programs, reads, erases, pages programmed twice.
kind=$1
modprobe $kind 2>/dev/null
attach() {
    case $kind in
    ubifs) ubiattach -m 0 >/dev/null && mount -t ubifs -o compr=none ubi0:v /mnt ;;
    jffs2) mount -t jffs2 -o compr=none mtd0 /mnt ;;
    flexfs) flexfs mount -b $device /mnt && mounted ;;
    esac || fault "$kind cannot be mounted"
}
detach() {
    umount /mnt
    case $kind in
    ubifs) ubidetach -m 0 >/dev/null ;;
    flexfs) while pidof flexfs >/dev/null; do sleep 1; done ;;
    esac
}
for workload in small over; do
    modprobe nandsim id_bytes=0x20,0xf2,0x00,0x36 || fault "nandsim does not start"
    flash_erase -q $device 0 0
    case $kind in
    ubifs) ubiformat -q -y $device && ubiattach -m 0 >/dev/null && ubimkvol /dev/ubi0 -m -N v >/dev/null && ubidetach -m 0 >/dev/null ;;
    jffs2) flash_erase -q -j $device 0 0 ;;
    flexfs) expect 0 formatted flexfs mkfs $device ;;
    esac
    trace start
    attach
    if [ $workload = small ]; then
        trace mark work
        guest small /mnt 2000 || fault "$kind small"
    else
        guest prepare /mnt 8 || fault "$kind prepare"
        sleep 1
        trace mark work
        guest over /mnt 2000 || fault "$kind over"
    fi
    trace mark unmount
    detach
    trace mark mount
    attach
    trace mark read
    guest read /mnt || fault "$kind read"
    trace mark end
    space=$(df -k /mnt | tail -1 | awk '{ print $2 }')
    detach
    trace stop /tmp/trace || fault "the trace is not whole"
    awk -v kind=$kind -v workload=$workload -v space=$space '
        /mark / { sub(/.*mark /, ""); part = $1; next }
        /^#/ || part == "" { next }
        / read: / { reads[part]++ }
        / (program|begin): / { programs[part]++; sub(/.*page=/, ""); if (written[$1 + 0]++) twice[part]++ }
        / erase: / { erases[part]++; sub(/.*block=/, ""); for (page = 0; page < 128; page++) delete written[$1 * 128 + page] }
        END { for (part in programs) seen[part]; for (part in reads) seen[part]; for (part in erases) seen[part]
            for (part in seen) if (part != "end") print kind, workload, part, programs[part] + 0, reads[part] + 0, erases[part] + 0, twice[part] + 0
            print kind, workload, "space", space }' /tmp/trace
    rmmod nandsim
done
exit $faults
