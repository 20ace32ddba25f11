# cut OPERATIONS COUNTED SEED POLICY ARGUMENTS...: the lasting NAND is formatted and changed until its power fails, after so many
# operations that count: all (0), erases (1), or programs of the second page of a pair (2). The machine does not come to the end of this.
cut=$1 counted=$2 seed=$3 policy=$4 profile=
shift 4
[ "${1%%=*}" != mlc ] || profile="--profile flexfs-mlc"
dmesg -n 4
insmod /io/in/nvnand.ko seed=$seed "$@" || exit 3
expect 0 formatted flexfs mkfs $device $profile
mount_it -o policy=$policy
echo $counted >/sys/module/nvnand/parameters/counted
echo $cut >/sys/module/nvnand/parameters/cut
guest change /mnt /io/out/log $seed 1000000
echo "the power did not fail"
exit 4
