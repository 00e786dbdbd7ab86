"""Classic tests of drives, each with its picture, like those of hdtune, ioping, CrystalDiskMark and etcd's fio job."""
