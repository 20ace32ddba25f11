# survivor ARGUMENTS...: what a power cut left of the lasting NAND is mounted, held against the log, and checked.
insmod /io/in/nvnand.ko "$@" || exit 3
counter() { cat /sys/module/nvnand/parameters/$1; }
mount_it && {
    echo "mounted with $(counter reads) reads"
    guest check /mnt /io/in/log || fault "a synced change is lost"
    unmount
}
check_clean
[ "$(counter broken)" = 0 ] || fault "$(counter broken) rules of programming are broken"
exit $faults
