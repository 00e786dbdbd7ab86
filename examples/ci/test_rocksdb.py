"""RocksDB with its log and sync: each write that was acknowledged is there."""

import pytest

rocksdict = pytest.importorskip("rocksdict")


def opened(folder):
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 << 10)
    return rocksdict.Rdict(str(folder / "base"), options)


@pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
def test_synced_writes_survive(disk):
    synced = rocksdict.WriteOptions()
    synced.sync = True
    with disk.mounted("ext4") as folder:
        base = opened(folder)
        for number in range(40):
            base.put(b"%04d" % number, bytes(1000), synced)
            disk.mark(number)
        base.close()

    def check(folder, marks):
        base = opened(folder)
        found = sorted(int(key) for key in base.keys())  # noqa: SIM118
        base.close()
        assert found == list(range(len(found)))
        assert len(found) >= len(marks)

    disk.explore(check)
