"""LMDB as it is by default: each commit is there, or the one before."""

import pytest

lmdb = pytest.importorskip("lmdb")

MAP = 8 << 20


@pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
def test_commits_survive(disk):
    with disk.mounted("ext4") as folder:
        base = lmdb.open(str(folder / "base"), map_size=MAP)
        for number in range(20):
            with base.begin(write=True) as transaction:
                transaction.put(b"%04d" % number, bytes(3000))
            disk.mark(number)
        base.close()

    def check(folder, marks):
        base = lmdb.open(str(folder / "base"), map_size=MAP, readonly=True, lock=False)
        with base.begin() as transaction:
            found = [int(bytes(key)) for key, _ in transaction.cursor()]
        base.close()
        assert found == list(range(len(found)))
        assert len(found) >= len(marks)

    disk.explore(check)
