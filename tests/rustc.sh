#!/bin/sh
# Compiles test programs without optimisation, which takes a third of the time; the libraries that they link keep theirs.
# cargo has no profile for that: .cargo/config.toml names this as its wrapper of rustc.
for argument; do
  if [ "$argument" = --test ]; then exec "$@" -C opt-level=0; fi
done
exec "$@"
