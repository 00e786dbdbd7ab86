#!/bin/bash
# Unpacks a Debian kernel for run.sh, by default Debian 13's, which apt-get fetches. Nothing is installed.
#
#     tests/vm/kernel.sh [linux-image-....deb]
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
into=${HEADSTACK_VM_KERNEL:-$here/target/vm/kernel}

# A private apt: the machine's own lists stay as they are.
fetch() {
  local apt=$into.apt sources keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  sources="deb [signed-by=$keyring] http://deb.debian.org/debian trixie main"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
  echo "$sources" >"$apt/sources.list"
  set -- -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$apt/state" \
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
  apt-get "$@" update
  local image
  image=$(apt-cache "$@" depends linux-image-amd64 | awk '$1 == "Depends:" { print $2; exit }')
  (cd "$apt" && apt-get "$@" download "$image")
  ls "$apt"/linux-image-*.deb
}

package=${1:-$(fetch)}
rm -rf "$into" "$into.unpacked"
mkdir -p "$into"
dpkg -x "$package" "$into.unpacked"
mv "$into.unpacked"/boot/vmlinuz-* "$into/vmlinuz"
modules=$(echo "$into.unpacked"/{usr/,}lib/modules/*/kernel | tr ' ' '\n' | grep -v '\*')
version=$(basename "$(dirname "$modules")")
mkdir -p "$into/lib/modules/$version/kernel"
# What block devices and file systems need: a desktop's drivers are ten times as much.
for part in arch/x86/crypto block crypto drivers/block drivers/char drivers/dax drivers/md drivers/nvdimm drivers/nvme \
  drivers/scsi drivers/virtio fs lib mm net/9p; do
  if [ -d "$modules/$part" ]; then
    mkdir -p "$(dirname "$into/lib/modules/$version/kernel/$part")"
    cp -r "$modules/$part" "$into/lib/modules/$version/kernel/$part"
  fi
done
cp "$(dirname "$modules")"/modules.{order,builtin,builtin.modinfo} "$into/lib/modules/$version"
find "$into/lib" -name '*.ko.xz' -print0 | xargs -0 --no-run-if-empty xz -d
busybox depmod -b "$into" "$version"
rm -rf "$into.unpacked"
