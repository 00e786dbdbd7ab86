"""Answers for names that are not systems, such as ``nfs``, ``ext4`` or ``raid6``: what is not modelled, and which
command comes closest."""

from __future__ import annotations

import re

_LISTED = "headstack catalog arrays list"

_NETWORK = (
    "network storage is not modelled (protocol, network and server cache); measure a file on it with headstack "
    f"measure FILE --create 1GiB, or simulate the server's drives alone ({_LISTED})"
)
_DISTRIBUTED = (
    "distributed storage is not modelled (network, replication and its daemons); measure a file or volume on it with "
    "headstack measure, or simulate one node's drives with headstack run"
)
_FILE_SYSTEM = (
    "file systems and the page cache are not modelled; measure one with headstack measure FILE --create 1GiB, or run "
    "a real one on a simulated drive with headstack serve"
)
_ZFS = (
    "of ZFS only the layout of RAIDZ and dRAID is modelled, not ARC, ZIL or transaction groups; name an array, for "
    f"example zfs-raidz2-8-nas ({_LISTED})"
)
_LAYER = (
    "layers of the host between file system and drive are not modelled, except RAID; measure the device with "
    "headstack measure, or simulate the drive or array below it with headstack run"
)
_APPLICATION = (
    "applications are not modelled; simulate their requests with a workload, for example -w oltp-8k, or run them on a "
    "simulated drive with headstack serve"
)
_LEVEL = f"a RAID level, not a system; name an array, for example md-raid6-12x16tb --level raid6 ({_LISTED})"
_CLASS = "a kind of drive, not a system; name one of headstack catalog drives list"
_SMR = (
    "a kind of recording, not a drive; see whether a drive is shingled with headstack inspect /dev/sda or headstack "
    "catalog drives show NAME"
)

_ANSWERS: tuple[tuple[str, str], ...] = (
    ("nfs nfsv3 nfsv4 nfs3 nfs4 smb cifs samba iscsi nvmeof nvme-of nvmetcp nvme-tcp fcoe sshfs afp webdav", _NETWORK),
    (
        "ceph cephfs rbd rados gluster glusterfs lustre beegfs gpfs s3 minio hdfs moosefs longhorn linstor drbd vsan "
        "vastdata weka seaweedfs openebs portworx efs fsx",
        _DISTRIBUTED,
    ),
    (
        "ext2 ext3 ext4 xfs btrfs f2fs bcachefs ntfs refs apfs jfs reiserfs exfat fat32 vfat ufs tmpfs overlayfs",
        _FILE_SYSTEM,
    ),
    ("zfs zpool openzfs zil slog arc l2arc", _ZFS),
    ("lvm lvm2 luks dm-crypt dmcrypt bcache dm-cache lvmcache vdo dm-thin multipath dm-multipath loop", _LAYER),
    (
        "postgres postgresql mysql mariadb innodb sqlite rocksdb etcd mongodb mongo cassandra oracle mssql sqlserver "
        "elasticsearch kafka redis docker kubernetes vmware esxi proxmox",
        _APPLICATION,
    ),
    ("jbod raid raid0 raid1 raid5 raid6 raid10 raid50 raid60 raidz raidz1 raidz2 raidz3 draid md mdadm mdraid", _LEVEL),
    ("hdd disk ssd nvme sata sas drive volume ebs gp2 gp3 io1 io2 premium-ssd pd-ssd nearline", _CLASS),
    ("smr cmr shingled", _SMR),
)
_BY_NAME = {name: answer for names, answer in _ANSWERS for name in names.split()}


def unmodelled(name: str) -> str | None:
    """Returns the sentence for a name that is not modelled, without the name; ``None`` if it is not known.

    The forms ``nfs:/export``, ``ceph://pool`` and ``server:/export`` are recognized, too.

    >>> unmodelled("NFS").startswith("network storage is not modelled")
    True
    """
    word = name.strip().lower()
    if word in _BY_NAME:
        return _BY_NAME[word]
    scheme, separator, rest = word.partition(":")
    if separator and scheme in _BY_NAME:
        return _BY_NAME[scheme]
    return _NETWORK if separator and re.match(r"/\w", rest) and not scheme.startswith(("nbd", "/")) else None
