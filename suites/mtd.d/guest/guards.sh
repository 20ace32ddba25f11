# guards: what must not be formatted, mounted or checked is refused in a line that says why.
modprobe mtdblock
modprobe nandsim id_bytes=0x20,0xf2,0x00,0x15 parts=128,128
expect 1 "no such device" flexfs mkfs /dev/mtd7 --size 16MiB
expect 1 "no such device" flexfs mount --create 16MiB /dev/mtd7 /mnt
[ ! -e /dev/mtd7 ] || fault "a file was made in place of a device"
expect 1 "leave out --size" flexfs mkfs $device --size 16MiB
expect 1 "read-only device; name /dev/mtd1" flexfs mkfs /dev/mtd1ro
expect 1 "not a regular file" flexfs mkfs /dev/mtdblock1 --size 16MiB --force

modprobe ubi
ubiattach -m 0 >/dev/null
expect 1 "UBI is attached to it as ubi0" flexfs mkfs $device --force
ubidetach -m 0
expect 1 "not blank" flexfs mkfs $device

flash_erase -q /dev/mtd1 0 0
modprobe jffs2
mount -t jffs2 mtd1 /mnt
expect 1 "(jffs2) on it is mounted on /mnt" flexfs mkfs /dev/mtd1 --force
umount /mnt
mount -t jffs2 "mtd:$(cat /sys/class/mtd/mtd1/name)" /mnt
expect 1 "(jffs2) on it is mounted on /mnt" flexfs mkfs /dev/mtd1 --force
umount /mnt
expect 1 "not blank" flexfs mkfs /dev/mtd1

expect 0 formatted flexfs mkfs $device --force
expect 1 "not blank" flexfs mkfs $device
mount_it
for command in "mkfs $device --force" "mount $device /tmp"; do expect 1 "mounted on /mnt;" flexfs $command; done
for name in $device ${device}ro; do expect 8 "in use: it is mounted on /mnt" flexfs fsck $name; done
expect 0 mtd0 flexfs top --once $device
cp /bin/busybox /mnt/
unmount
expect 0 busybox flexfs ls $device /
expect 0 "" flexfs get $device /busybox /tmp/busybox
cmp /tmp/busybox /bin/busybox || fault "get gives other bytes"
expect 0 clean flexfs fsck /dev/mtd0ro
expect 1 "leave out timing=chip" flexfs mount -o timing=chip $device /mnt
expect 1 "decisions are recorded on an image" flexfs mount --record-decisions /tmp/decisions $device /mnt
mount_it -o ro && { touch /mnt/new 2>/dev/null && fault "a mount for reading alone takes files"; unmount; }
rmmod nandsim
modprobe nandsim id_bytes=0x20,0xf2,0x00,0x15 bch=8
expect 1 "leaves 10 spare bytes free on each page of 2048 bytes; FlexFS needs 32" flexfs mkfs $device
rmmod nandsim
modprobe nandsim id_bytes=0x20,0xdc,0x04,0x36
expect 1 "name a --profile" flexfs mkfs $device
for command in "mount $device /mnt" "info $device"; do expect 1 "no FlexFS on it tells" flexfs $command; done
expect 8 "no FlexFS on it tells" flexfs fsck -y $device
expect 1 "one page" flexfs mkfs $device --profile tlc-3d
expect 0 formatted flexfs mkfs $device --profile flexfs-mlc --endurance 4000
mount_it && unmount
expect 0 "a block endures 10,000 as SLC, 4,000 natively" flexfs info $device
echo "guards: $faults faults"
exit $faults
