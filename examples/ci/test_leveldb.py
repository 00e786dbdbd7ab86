"""LevelDB with sync=True: each write that was acknowledged is there."""

import pytest

plyvel = pytest.importorskip("plyvel")


@pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
def test_synced_writes_survive(disk):
    with disk.mounted("ext4") as folder:
        # A small memtable: tables are written and removed while the test lasts.
        base = plyvel.DB(str(folder / "base"), create_if_missing=True, write_buffer_size=16 << 10)
        for number in range(40):
            base.put(b"%04d" % number, bytes(1000), sync=True)
            disk.mark(number)
        base.close()

    def check(folder, marks):
        base = plyvel.DB(str(folder / "base"))
        found = [int(key) for key in base.iterator(include_value=False, verify_checksums=True)]
        base.close()
        assert found == list(range(len(found)))
        assert len(found) >= len(marks)

    disk.explore(check)
