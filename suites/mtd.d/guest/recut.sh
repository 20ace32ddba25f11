# recut OPERATIONS SEED ARGUMENTS...: the power fails again while the volume is recovered, or soon after.
cut=$1 seed=$2
shift 2
dmesg -n 4
insmod /io/in/nvnand.ko seed=$seed cut=$cut "$@" || exit 3
mount_it
sleep 5
echo "the power did not fail"
exit 4
