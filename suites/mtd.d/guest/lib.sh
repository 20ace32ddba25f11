# What the scripts of the guest share. Sourced.
dmesg -n 1
device=/dev/mtd0
faults=0

fault() { echo "FAULT: $*"; faults=$((faults + 1)); }
expect() { # expect STATUS WORD COMMAND...: that it ends so, and says so.
    wanted=$1 word=$2
    shift 2
    said=$("$@" 2>&1) && status=0 || status=$?
    [ "$status" = "$wanted" ] || fault "$*: ended with $status, not $wanted: $said"
    case $said in *"$word"*) ;; *) fault "$*: does not say \"$word\": $said" ;; esac
}

about() { cat /sys/class/mtd/mtd0/$1; }
mounted() { grep -q " /mnt .*fuse.flexfs" /proc/self/mountinfo; }
mount_it() { flexfs mount -b "$@" $device /mnt && mounted || { fault "it cannot be mounted"; return 1; }; }
unmount() {
    umount /mnt || fault "it cannot be unmounted"
    while pidof flexfs >/dev/null; do sleep 1; done
}
check_clean() { flexfs fsck $device >/tmp/fsck 2>&1 || fault "fsck: $? $(tail -3 /tmp/fsck)"; }

make_tree() { # A tree of files of many lengths, with links.
    mkdir -p /tmp/tree/a/b/c
    cp -a /usr/sbin /bin/busybox /tmp/tree/
    ln -s a/b /tmp/tree/link
    ln /tmp/tree/busybox /tmp/tree/a/hard
    for number in $(seq 200); do echo "file $number" >/tmp/tree/a/b/c/$number; done
}
same_tree() { diff -r /tmp/tree /mnt/tree >/tmp/different 2>&1 || fault "$1: $(head -2 /tmp/different)"; }
