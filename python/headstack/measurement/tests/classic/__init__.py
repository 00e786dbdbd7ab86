"""The classic tests of drives, each with its picture: what hdtune, ioping, CrystalDiskMark and etcd's fio job show."""
