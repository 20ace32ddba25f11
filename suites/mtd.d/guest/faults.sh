# faults: the server is killed, pages and erases fail, a page cannot be corrected. Nothing that was synced is lost but the
# file of that page.
make_tree

chip=killed
modprobe nandsim id_bytes=0x20,0xf2,0x00,0x36 || fault "nandsim does not start"
expect 0 formatted flexfs mkfs $device
mount_it
cp -a /tmp/tree /mnt/
sync
for round in 1 2 3; do
    guest change /mnt /tmp/log-$round $round 100000 2>/dev/null &
    sleep 4
    kill -9 $(pidof flexfs)
    wait
    umount -l /mnt
    mount_it
    guest check /mnt /tmp/log-$round || fault "killed in round $round"
    rm -rf /mnt/d?
    sync
done
same_tree $chip
unmount
check_clean
rmmod nandsim

faulty() { # faulty NAME ARGUMENTS...
    chip=$1
    shift
    modprobe nandsim id_bytes=0x20,0xf2,0x00,0x36 "$@" || fault "nandsim does not start"
    dmesg -c >/dev/null
    expect 0 formatted flexfs mkfs $device
    mount_it || return
    cp -a /tmp/tree /mnt/
    sync
    same_tree "$chip"
    guest change /mnt /tmp/log-$chip 7 300 || fault "$chip: a change failed"
    unmount
    check_clean
    mount_it || return
    same_tree "$chip, mounted again"
    guest check /mnt /tmp/log-$chip || fault "$chip: a synced change is lost"
    unmount
    seen=$(dmesg | grep -c "simulating .*failure")
    echo "$chip: $seen failures simulated, $(about bad_blocks) bad blocks"
    [ "$seen" -ge "$least" ] || fault "$chip: only $seen failures"
    rmmod nandsim
}
least=4
faulty pages weakpages=2060:0,2190:0,2310:0,2440:0,2570:0,2700:0
least=3
faulty erases weakblocks=5:0,20:0,30:0

chip=unreadable
modprobe nandsim id_bytes=0x20,0xf2,0x00,0x36 gravepages=2100:0,2101:0 || fault "nandsim does not start"
expect 0 formatted flexfs mkfs $device
mount_it
for number in $(seq 40); do dd if=/dev/urandom of=/tmp/f$number bs=4096 count=8 2>/dev/null; cp /tmp/f$number /mnt/; done
sync
unmount
mount_it
unreadable=0
for number in $(seq 40); do
    if cat /mnt/f$number >/tmp/read 2>/tmp/said; then
        cmp -s /tmp/read /tmp/f$number || fault "f$number has other bytes"
    else
        unreadable=$((unreadable + 1))
        grep -q "I/O error\|Input/output error" /tmp/said || fault "f$number: $(cat /tmp/said)"
    fi
done
[ $unreadable = 1 ] || fault "$unreadable files cannot be read, of 1 with pages that cannot be corrected"
unmount
echo "unreadable pages: $unreadable of 40 files is an error"
exit $faults
