# The virtual machine of suites/mtd: Debian's kernel with MTD, a shell, and what a script of the guest needs.
#
# Everything comes as Debian packages into the cache and is unpacked there: nothing is installed, and neither root nor KVM
# is needed. Sourced; `cache` names a folder. The guest runs /io/in/script, and what it leaves in /io/out comes back.

packages="busybox-static mtd-utils libc6 liblzo2-2 libselinux1 libpcre2-8-0 libssl3 libuuid1 libzstd1 zlib1g libgcc-s1"
modules="virtio_pci 9p 9pnet_virtio fuse mtd mtdblock nandcore nand nandsim ubi ubifs jffs2
    lzo lzo-rle deflate zstd crc32_generic crc32c_generic"

# Downloads packages that the cache has not, and unpacks them into a folder.
unpack() {
    local into=$1 package
    shift
    for package; do
        ls "$cache/packages/${package}_"*.deb >/dev/null 2>&1 ||
            (cd "$cache/packages" && apt-get -q download "$package" >/dev/null 2>&1) ||
            fail "cannot download the package $package: run apt-get update"
        dpkg -x "$(ls "$cache/packages/${package}_"*.deb | tail -1)" "$into"
    done
}

# The modules named, and those that they need, copied from the folder of all modules.
copy_modules() {
    local from=$1 to=$2 module file needed todo=$modules
    declare -A path=() have=()
    while read -r file; do
        module=${file##*/} module=${module%%.ko*}
        path[${module//-/_}]=$file
    done < <(cd "$from" && find kernel -name '*.ko*')
    while [ -n "${todo// /}" ]; do
        read -r module todo <<<"$(echo $todo)"
        module=${module//-/_} file=${path[${module//-/_}]:-}
        [ -z "${have[$module]:-}" ] && [ -n "$file" ] || continue
        have[$module]=1
        mkdir -p "$to/${file%/*}"
        cp "$from/$file" "$to/$file"
        case $file in *.xz) xz -d "$to/$file" file=${file%.xz} ;; *.zst) zstd -qd --rm "$to/$file" file=${file%.zst} ;; esac
        needed=$(tr '\0' '\n' <"$to/$file" | sed -n 's/^depends=//p' | head -1)
        todo="$todo ${needed//,/ }"
    done
    cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/"
}

# The kernel as an uncompressed ELF file starts some seconds sooner without KVM than one that unpacks itself.
unpack_kernel() {
    local packed=$1 to=$2 offset
    offset=$(LC_ALL=C grep -abo -P '\xfd7zXZ' "$packed" | head -1 | cut -d: -f1 || true)
    if [ -n "$offset" ]; then
        tail -c +$((offset + 1)) "$packed" | xz -dc --single-stream >"$to" 2>/dev/null || true
    fi
    [ "$(head -c 4 "$to" 2>/dev/null | tail -c 3)" = ELF ] || cp "$packed" "$to"
}

# Makes the kernel and the first file system of the guest, unless the cache has them.
build_machine() {
    local kernel version root guest stamp
    mkdir -p "$cache/packages"
    kernel=$(cat "$cache/kernel" 2>/dev/null || apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
    [ -n "$kernel" ] || fail "Debian's package of the kernel is not known: run apt-get update"
    stamp=$(cat "$here/suites/mtd.d/machine.sh" "$here/suites/mtd.d/init" "$here/suites/mtd.d/trace" | cksum)
    [ "$(cat "$cache/stamp" 2>/dev/null)" != "$kernel $stamp" ] || return 0
    root=$cache/root guest=$cache/guest version=${kernel#linux-image-}
    rm -rf "$root" "$guest"
    mkdir -p "$root" "$guest"/{bin,sbin,usr,dev,proc,sys,tmp,run,io,mnt,etc}
    unpack "$root" "$kernel" $packages
    cp "$(find "$root" -path '*/bin/busybox' | head -1)" "$guest/bin/busybox"
    ln -s busybox "$guest/bin/sh"
    cp -a "$root"/usr/sbin "$guest/usr/sbin"
    (cd "$root" && find . \( -path '*/x86_64-linux-gnu/*.so*' -o -path './lib64/*' \) ! -path '*/gconv/*' ! -path '*/engines*' \
        ! -path '*/ossl-modules/*' \( -type f -o -type l \) -print0 | cpio -0pdm --quiet "$guest")
    copy_modules "$root/lib/modules/$version" "$guest/lib/modules/$version"
    "$guest/bin/busybox" depmod -b "$guest" "$version"
    install -m 755 "$here/suites/mtd.d/init" "$guest/init"
    install -m 755 "$here/suites/mtd.d/trace" "$guest/bin/trace"
    unpack_kernel "$root/boot/vmlinuz-$version" "$cache/vmlinux"
    (cd "$guest" && find . -print0 | cpio -0o -H newc -R 0:0 --quiet) >"$cache/initrd"
    rm -rf "$guest"
    printf %s "$kernel" >"$cache/kernel"
    printf %s "$kernel $stamp" >"$cache/stamp"
}

# Builds the module of the lasting NAND for the guest's kernel, unless the cache has it.
build_module() {
    local version headers common source=$here/suites/mtd.d/nvnand.c
    version=$(cat "$cache/kernel") version=${version#linux-image-} headers=$cache/headers
    common=linux-headers-${version%-amd64}-common
    if [ ! -d "$headers" ]; then
        unpack "$headers.new" "linux-headers-$version" "$common" "linux-kbuild-$(echo "$version" | cut -d. -f1,2)"
        sed -i "s#^include /usr/src#include $headers/usr/src#" "$headers.new/usr/src/linux-headers-$version/Makefile"
        mv "$headers.new" "$headers"
    fi
    [ "$(cksum <"$source")" != "$(cat "$cache/nvnand.stamp" 2>/dev/null)" ] || return 0
    rm -rf "$cache/nvnand"
    mkdir "$cache/nvnand"
    cp "$source" "$cache/nvnand/"
    echo 'obj-m += nvnand.o' >"$cache/nvnand/Makefile"
    make -s -C "$headers/usr/src/linux-headers-$version" M="$cache/nvnand" modules >"$cache/nvnand/log" 2>&1 ||
        fail "the lasting NAND does not compile: $(tail -5 "$cache/nvnand/log")"
    cksum <"$source" >"$cache/nvnand.stamp"
}

# boot OUT SCRIPT [WORD...]: runs a script of the guest; its exit status. In `given` are files for it, in `hardware` more
# arguments for QEMU, `limit` is how many seconds it may take.
boot() {
    local out=$1 script=$2 io status=0
    shift 2
    io=$(mktemp -d "$work/io.XXXXXX")
    mkdir "$io/in" "$io/out"
    cp "$flexfs" "$io/in/flexfs"
    cp "$guest_program" "$io/in/guest"
    [ ${#given[@]} = 0 ] || cp "${given[@]}" "$io/in/"
    cp "$here/suites/mtd.d/guest/lib.sh" "$io/in/lib.sh"
    cp "$here/suites/mtd.d/guest/$script.sh" "$io/in/script"
    printf '%s\n' "$*" >"$io/in/words"
    timeout "$limit" qemu-system-x86_64 -accel tcg -cpu max -M pc,usb=off -m 700 -nodefaults -no-user-config -display none \
        -no-reboot -serial stdio -kernel "$cache/vmlinux" -initrd "$cache/initrd" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check rcupdate.rcu_expedited=1" \
        -virtfs "local,path=$io,mount_tag=io,security_model=none,multidevs=remap" "${hardware[@]}" \
        </dev/null >"$io/out/console" 2>&1 || status=$?
    rm -rf "$out"
    mv "$io/out" "$out"
    rm -rf "$io"
    [ $status != 124 ] || { echo "the machine took more than $limit s" >>"$out/told"; return 124; }
    return "$(cat "$out/status" 2>/dev/null || echo 125)"
}
