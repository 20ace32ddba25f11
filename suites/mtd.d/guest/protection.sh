# protection ARGUMENTS...: the lasting NAND refuses every program and erase for 15 s of writing. No block is marked bad, the mount is
# read-only and says why, and after the protection is lifted a remount writes.
insmod /io/in/nvnand.ko "$@" || exit 3
parameter=/sys/module/nvnand/parameters
make_tree
protect() { echo $1 >$parameter/protect; }
unmarked() { [ "$(cat $parameter/marked)" = 0 ] || fault "$1: $(cat $parameter/marked) blocks are marked bad"; }
# The whole volume is synced with a file of it; sync(2) does not reach a server.
writes() { (echo "$1" >/mnt/new && sync /mnt/new) 2>/dev/null; }

protect 1
expect 1 "block after block" flexfs mkfs $device
unmarked "a chip that is formatted"
protect 0
expect 0 formatted flexfs mkfs $device
flexfs mount $device /mnt 2>/tmp/log &
for second in $(seq 20); do mounted || sleep 1; done
mounted || fault "it cannot be mounted"
cp -a /tmp/tree /mnt/
writes first || fault "it does not write"

protect 1
until=$(($(date +%s) + 15)) written=0
while [ $(date +%s) -lt $until ]; do
    writes protected && written=$((written + 1))
    sleep 0.1 2>/dev/null || sleep 1
done
[ $written = 0 ] || fault "$written writes were synced to a chip that refuses them"
unmarked "15 s of writing"
grep -q "block after block" /tmp/log || fault "the mount does not say why it is read-only: $(cat /tmp/log)"
touch /mnt/more 2>/tmp/said && fault "it is not read-only"
grep -q "Read-only file system" /tmp/said || fault "$(cat /tmp/said)"
same_tree "protected"

protect 0
writes lifted && fault "the mount writes again without a remount"
unmount
mount_it
same_tree "mounted again"
writes again || fault "a remount does not write"
unmount
check_clean
unmarked "at the end"
[ "$(cat $parameter/broken)" = 0 ] || fault "rules of programming are broken"
echo "0 blocks marked in 15 s of refused writes: $(head -1 /tmp/log)"
exit $faults
