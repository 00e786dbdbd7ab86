#!/bin/bash
# Runs a command as root in a virtual machine that sees this machine's files, with a kernel of its own and its drives:
#
#     tests/vm/run.sh .venv/bin/pytest tests/python/test_ublk.py
#
# The command finds the host's files where they are, the working directory among them; what it changes is gone afterwards,
# but in the folder that $HEADSTACK_VM_OUT names, here and there. It ends with the command's exit code; 77 says what is lacking.
#
# There are an NVMe drive of 256 MiB, serial number headstack-plain, and a zoned one (ZNS) of 32 zones of 16 MiB,
# headstack-zns; which of them is nvme0 is the kernel's choice. Others are modules:
# `modprobe null_blk`, ublk_drv, dm-log-writes, brd, scsi_debug, loop, nbd, ext4, xfs, btrfs and so on.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
kernel=${HEADSTACK_VM_KERNEL:-$here/target/vm/kernel}

lacks() {
  echo "skipped: virtual machine: $1" >&2
  exit 77
}
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v qemu-system-x86_64 >/dev/null || lacks "no qemu-system-x86_64: install it (package qemu-system-x86)"
command -v busybox >/dev/null || lacks "no busybox: install it (package busybox-static)"
[ -e "$kernel/vmlinuz" ] || lacks "no kernel in $kernel: tests/vm/kernel.sh fetches one"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${HEADSTACK_VM_OUT:-$work}
out=$(mkdir -p "$out" && cd "$out" && pwd)

# The first file system: busybox, what mounts the host's files, and init.
version=$(ls "$kernel/lib/modules")
first=$work/first
mkdir -p "$first"/{bin,dev,proc,sys} "$first/lib/modules/$version"
cp "$(command -v busybox)" "$first/bin/busybox"
cp "$here/tests/vm/init" "$first/init"
cp "$kernel/lib/modules/$version/modules.dep" "$first/lib/modules/$version"
(
  cd "$kernel/lib/modules/$version"
  for module in 9p 9pnet_virtio overlay virtio_pci virtio_console; do
    # The module and all that it needs stand in one line.
    sed -n "s|^\(.*/$module\.ko\):|\1|p" modules.dep
  done | tr ' ' '\n' | sed '/^$/d' | sort -u | xargs cp --parents -t "$first/lib/modules/$version"
)
(cd "$first" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/first.gz"

{
  printf 'cd %q\n' "$PWD"
  printf 'export PATH=%q HOME=%q HEADSTACK_VM=1\n' "$here/.venv/bin:/usr/local/sbin:/usr/sbin:/sbin:$PATH" "$HOME"
  for name in ${!HEADSTACK_@} ${!PYTEST_@} PYTHONPATH; do
    [ -z "${!name+x}" ] || printf 'export %s=%q\n' "$name" "${!name}"
  done
  printf '%q ' exec "$@"
} >"$work/command"
truncate -s 256M "$work/nvme"
truncate -s 512M "$work/zns"

accelerator=tcg,thread=multi
if grep -qE '\b(vmx|svm)\b' /proc/cpuinfo && [ -w /dev/kvm ]; then accelerator=kvm; fi
drive=if=none,format=raw,cache=unsafe,discard=unmap
share=security_model=none,multidevs=remap
zones=zoned=on,zoned.zone_size=16M,zoned.zone_capacity=12M,zoned.max_open=8,zoned.max_active=12
machine=(
  -accel "$accelerator" -cpu max -smp 2 -m "${HEADSTACK_VM_MEMORY:-3G}"
  -nodefaults -display none -no-reboot -rtc base=utc
  -kernel "$kernel/vmlinuz" -initrd "$work/first.gz"
  -append "console=ttyS0 panic=-1 quiet vm.work=$work vm.out=$out vm.modules=$kernel/lib/modules"
  -serial "file:$work/console"
  -chardev stdio,id=out,signal=off -device virtio-serial-pci -device virtconsole,chardev=out
  -virtfs "local,path=/,mount_tag=host,readonly=on,$share"
  -virtfs "local,path=$work,mount_tag=work,$share"
  -virtfs "local,path=$out,mount_tag=out,$share"
  -drive "file=$work/nvme,id=plain,$drive" -device nvme,serial=headstack-plain,id=nvme0
  -device nvme-ns,drive=plain,bus=nvme0
  -drive "file=$work/zns,id=zns,$drive" -device nvme,serial=headstack-zns,id=nvme1
  -device "nvme-ns,drive=zns,bus=nvme1,logical_block_size=4096,physical_block_size=4096,$zones"
)
timeout "${HEADSTACK_VM_SECONDS:-900}" qemu-system-x86_64 "${machine[@]}" </dev/null || echo "the machine ended with $?" >&2
[ -s "$work/status" ] && exit "$(cat "$work/status")"
tail -n 40 "$work/console" >&2
echo "the command did not come to its end" >&2
exit 1
