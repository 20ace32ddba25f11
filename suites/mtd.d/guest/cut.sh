# cut OPERATIONS SEED POLICY ARGUMENTS...: the lasting NAND is formatted and changed until its power fails, after so many programs
# and erases. The machine does not come to the end of this.
cut=$1 seed=$2 policy=$3 profile=
shift 3
[ "${1%%=*}" != mlc ] || profile="--profile flexfs-mlc"
dmesg -n 4
insmod /io/in/nvnand.ko seed=$seed "$@" || exit 3
expect 0 formatted flexfs mkfs $device $profile
mount_it -o policy=$policy
echo $cut >/sys/module/nvnand/parameters/cut
guest change /mnt /io/out/log $seed 1000000
echo "the power did not fail"
exit 4
