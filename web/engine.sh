#!/bin/sh
# Builds the simulator for pages (crates/web), packed as web/src/lzma.ts unpacks it: engine.sh PROFILE OUT.wasm.lzma, where
# PROFILE is web (small and fast, as it ships) or web-quick (built sooner, for tests). Uses rustup's target where it is
# installed, else Debian's compiler with its own standard library (rustc-web, cargo-web, rust-web-src, lld-22). Names what
# is missing.
set -eu
target=wasm32-unknown-unknown
built="${CARGO_TARGET_DIR:-target}/$target/$1/headstack_web.wasm"
build="build --quiet --profile $1 --package headstack-web --target $target"

if [ -d "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$target" ]; then
  cargo $build
elif [ -d "$(/usr/bin/rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]; then
  # Debian's rust-lld is a link to that of a package of its own; that of rustup or of LLVM does as well.
  linker=
  for one in /usr/bin/rust-lld "$HOME"/.rustup/toolchains/*/lib/rustlib/*/bin/rust-lld /usr/lib/llvm-*/bin/wasm-ld; do
    if [ -z "$linker" ] && [ -x "$one" ]; then linker=$one; fi
  done
  if [ -z "$linker" ]; then
    echo "no linker for $target here, pages do not simulate: apt-get install $(readlink /usr/bin/rust-lld || echo lld)"
    exit 0
  fi
  PATH="/usr/bin:$PATH" RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
    /usr/bin/cargo $build -Zbuild-std=std,panic_abort
else
  echo "no Rust for $target here, pages do not simulate: rustup target add $target, or see web/engine.sh"
  exit 0
fi
python3 - "$built" "$2" <<'END'
import hashlib, lzma, pathlib, sys

built, out = map(pathlib.Path, sys.argv[1:])
code = built.read_bytes()
# Packing takes seconds: only for code that the file does not hold yet.
stamp, key = built.parent.parent / "packed.txt", hashlib.sha256(code).hexdigest()
if not (out.is_file() and stamp.is_file() and stamp.read_text() == key):
    preset = 9 | lzma.PRESET_EXTREME if built.parent.name == "web" else 1
    out.write_bytes(lzma.compress(code, format=lzma.FORMAT_ALONE, preset=preset))
    stamp.write_text(key)
END
