"""Answers for names that are not systems, such as ``nfs``, ``ext4`` or ``raid6``: what is not modelled, and which
command comes closest."""

from __future__ import annotations

import re

_LISTED = "headstack catalog arrays list"
_STACKS = "headstack catalog stacks list"

_NETWORK = (
    "network storage is not modelled (protocol, network and server cache); measure a file on it with headstack "
    f"measure FILE --create 1GiB, or simulate the server's drives alone ({_LISTED})"
)
_DISTRIBUTED = (
    "distributed storage other than Ceph RBD is not modelled; measure a file or volume on it with headstack measure, "
    "or simulate one node's drives with headstack run"
)
_CEPH = f"a cluster; name a stack with Ceph RBD, for example rbd-3-copies-nvme ({_STACKS})"
_CACHE = f"a block cache; name a stack with it, for example bcache-nearline-nvme ({_STACKS})"
_FILE_SYSTEM = (
    "this file system is not modelled, only ext4, XFS and ZFS; measure one with headstack measure FILE --create 1GiB, "
    "or run a real one on a simulated drive with headstack serve"
)
_PROTOCOL = f"a protocol; name a stack over it, for example nvme-tcp-raid10-8-nvme ({_STACKS})"
_NFS = f"a protocol; name a stack over it, for example nfs-zfs-raidz2-8-nas ({_STACKS})"
_JOURNALED = f"a file system; name a stack with it, for example ext4-nvme ({_STACKS})"
_ZFS = f"a file system; name a stack with it, for example zfs-raidz2-12-slog ({_STACKS})"
_LAYER = (
    "layers of the host between file system and drive are not modelled, except RAID; measure the device with "
    "headstack measure, or simulate the drive or array below it with headstack run"
)
_APPLICATION = (
    "applications are not modelled; simulate their requests with a workload, for example -w oltp-8k, or run them on a "
    "simulated drive with headstack serve"
)
_POSTGRESQL = (
    "an application, not a system or workload; run its scenario on a stack, for example "
    "headstack run postgresql-ext4-nvme -w postgresql"
)
_LEVEL = f"a RAID level, not a system; name an array, for example md-raid6-12x16tb --level raid6 ({_LISTED})"
_CLASS = "a kind of drive, not a system; name one of headstack catalog drives list"
_SMR = (
    "a kind of recording, not a drive; see whether a drive is shingled with headstack inspect /dev/sda or headstack "
    "catalog drives show NAME"
)

_ANSWERS: tuple[tuple[str, str], ...] = (
    ("nfs nfsv3 nfsv4 nfs3 nfs4", _NFS),
    ("iscsi nvmeof nvme-of nvmetcp nvme-tcp nvme-rdma", _PROTOCOL),
    ("smb cifs samba fcoe sshfs afp webdav", _NETWORK),
    ("ceph rbd librbd rados bluestore", _CEPH),
    (
        "cephfs gluster glusterfs lustre beegfs gpfs s3 minio hdfs moosefs longhorn linstor drbd vsan vastdata weka "
        "seaweedfs openebs portworx efs fsx",
        _DISTRIBUTED,
    ),
    (
        "ext2 ext3 btrfs f2fs bcachefs ntfs refs apfs jfs reiserfs exfat fat32 vfat ufs tmpfs overlayfs",
        _FILE_SYSTEM,
    ),
    ("ext4 xfs", _JOURNALED),
    ("zfs zpool openzfs zil slog arc l2arc", _ZFS),
    ("bcache dm-cache lvmcache dm-writecache writecache", _CACHE),
    ("lvm lvm2 luks dm-crypt dmcrypt vdo dm-thin multipath dm-multipath loop", _LAYER),
    ("postgres pgbench", _POSTGRESQL),
    (
        "mysql mariadb innodb sqlite rocksdb etcd mongodb mongo cassandra oracle mssql sqlserver "
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

    The forms ``smb:/share``, ``ceph://pool`` and ``server:/export`` are recognized, too.

    >>> unmodelled("SMB").startswith("network storage is not modelled")
    True
    """
    word = name.strip().lower()
    if word in _BY_NAME:
        return _BY_NAME[word]
    scheme, separator, rest = word.partition(":")
    if separator and scheme in _BY_NAME:
        return _BY_NAME[scheme]
    return _NFS if separator and re.match(r"/\w", rest) and not scheme.startswith(("nbd", "/")) else None
