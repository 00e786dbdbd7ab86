//! Contents of a device that must not be overwritten.

use super::{DESTROY, Way};

pub fn ways() -> Vec<Way> {
    vec![
        Way::carries("ext2", "mkfs.ext2 -q $DISK", "carries ext2 (at byte 1080 of $NAME)"),
        Way::carries("ext3", "mkfs.ext3 -q $DISK", "carries ext3"),
        Way::carries("ext4", "mkfs.ext4 -q $DISK", "carries ext4"),
        Way::carries("ext4", "mkfs.ext4 -q $DISK", "carries ext4").sectors(4096),
        Way::carries("ext4 with blocks of 1 KiB", "mkfs.ext4 -q -b 1024 $DISK", "carries ext4"),
        Way::carries("ext4 without a journal", "mkfs.ext4 -q -O ^has_journal $DISK", "carries ext4"),
        Way::carries("an ext4 journal device", "mke2fs -q -O journal_dev $DISK", "carries jbd"),
        Way::carries(
            "ext4 whose first MiB is lost",
            "mkfs.ext4 -q -b 1024 $DISK; dd if=/dev/zero of=$DISK bs=1M count=1 conv=notrunc status=none",
            "carries ext4 (at byte 8389688 of $NAME)",
        ),
        Way::carries("xfs", "mkfs.xfs -q -f $DISK", "carries xfs").mib(320),
        Way::carries("xfs", "mkfs.xfs -q -f -s size=4096 $DISK", "carries xfs").mib(320).sectors(4096),
        Way::carries("btrfs", "mkfs.btrfs -q -f $DISK", "carries btrfs").mib(128),
        Way::carries(
            "first of two btrfs members",
            "truncate -s 128M $DIR/second; mkfs.btrfs -q -f -d raid1 $DISK $DIR/second",
            "carries btrfs",
        )
        .mib(128),
        Way::carries(
            "second of two btrfs members",
            "truncate -s 128M $DIR/first; mkfs.btrfs -q -f -d raid1 $DIR/first $DISK",
            "carries btrfs",
        )
        .mib(128),
        Way::carries(
            "btrfs whose first superblock is lost",
            "mkfs.btrfs -q -f $DISK; dd if=/dev/zero of=$DISK bs=1M count=1 conv=notrunc status=none",
            "carries btrfs (at byte 67108928 of $NAME)",
        )
        .mib(128),
        Way::carries("f2fs", "mkfs.f2fs -q -f $DISK", "carries f2fs"),
        Way::carries("FAT12", "mkfs.vfat -F 12 $DISK", "carries vfat").mib(8),
        Way::carries("FAT16", "mkfs.vfat -F 16 $DISK", "carries vfat"),
        Way::carries("FAT32", "mkfs.vfat -F 32 $DISK", "carries vfat"),
        Way::carries("FAT32", "mkfs.vfat -F 32 -S 4096 $DISK", "carries vfat").mib(320).sectors(4096),
        Way::carries(
            "FAT32 whose boot sector is lost",
            "mkfs.vfat -F 32 $DISK; dd if=/dev/zero of=$DISK bs=512 count=1 conv=notrunc status=none",
            "carries vfat (at byte 3154 of $NAME)",
        ),
        Way::carries("exFAT", "mkfs.exfat $DISK", "carries exfat"),
        Way::carries("NTFS", "mkfs.ntfs -Q -F $DISK", "carries ntfs"),
        Way::carries(
            "NTFS whose first MiB is lost",
            "mkfs.ntfs -Q -F $DISK; dd if=/dev/zero of=$DISK bs=1M count=1 conv=notrunc status=none",
            "carries ntfs (at byte 67108355 of $NAME)",
        ),
        Way::carries("nilfs2", "mkfs.nilfs2 -q -f $DISK", "carries nilfs2 (at byte 1030 of $NAME)").mib(136),
        Way::carries(
            "nilfs2 whose first MiB is lost",
            "mkfs.nilfs2 -q -f $DISK; dd if=/dev/zero of=$DISK bs=1M count=1 conv=notrunc status=none",
            "carries nilfs2 (at byte 142602246 of $NAME)",
        )
        .mib(136),
        Way::carries("minix, version 1", "mkfs.minix -1 $DISK", "carries minix (at byte 1040 of $NAME)").mib(16),
        Way::carries("minix, version 2", "mkfs.minix -2 $DISK", "carries minix (at byte 1040 of $NAME)").mib(16),
        Way::carries("minix, version 3", "mkfs.minix -3 $DISK", "carries minix (at byte 1048 of $NAME)").mib(16),
        Way::carries("bfs", "mkfs.bfs $DISK", "carries bfs (at byte 0 of $NAME)").mib(1),
        Way::carries("cramfs", "mkfs.cramfs /etc/default $DISK", "carries cramfs").mib(16),
        Way::carries("swap", "mkswap $DISK", "carries swap (at byte 4086 of $NAME)"),
        Way::carries("swap with 64 KiB pages", "mkswap --pagesize 65536 $DISK", "carries swap"),
        Way::carries("an LVM physical volume", "pvcreate -qq -f $DISK", "carries LVM2_member"),
        Way::carries(
            "an LVM physical volume with its label in the last sector",
            "pvcreate -qq -f --labelsector 3 $DISK",
            "carries LVM2_member",
        ),
        Way::carries(
            "LUKS1",
            "cryptsetup luksFormat --type=luks1 --key-file=/etc/hostname --pbkdf-force-iterations=1000 -q $DISK",
            "carries crypto_LUKS",
        ),
        Way::carries(
            "LUKS2",
            "cryptsetup luksFormat --type=luks2 --key-file=/etc/hostname --pbkdf=pbkdf2 --pbkdf-force-iterations=1000 -q $DISK",
            "carries crypto_LUKS",
        ),
        Way::carries(
            "LUKS2 whose first header is lost",
            "cryptsetup luksFormat --type=luks2 --key-file=/etc/hostname --pbkdf=pbkdf2 --pbkdf-force-iterations=1000 -q $DISK; \
             dd if=/dev/zero of=$DISK bs=4096 count=1 conv=notrunc status=none",
            "carries crypto_LUKS (at byte 16384 of $NAME)",
        ),
        Way::carries(
            "dm-verity hashes",
            "head -c 1M /dev/zero >$DIR/data; veritysetup format $DIR/data $DISK",
            "carries DM_verity_hash",
        ),
        Way::carries(
            "dm-integrity tags",
            "printf 'integrt\\0\\001' | dd of=$DISK conv=notrunc status=none",
            "carries DM_integrity",
        ),
        Way::carries(
            "a dm-snapshot copy-on-write store",
            "printf SnAp | dd of=$DISK conv=notrunc status=none",
            "carries DM_snapshot_cow",
        ),
        Way::carries(
            "an LVM1 physical volume",
            "printf 'HM\\001\\0' | dd of=$DISK conv=notrunc status=none",
            "carries LVM1_member",
        ),
        Way::carries(
            "an md member, superblock 0.90",
            "printf '\\374\\116\\053\\251' | dd of=$DISK bs=512 seek=130944 conv=notrunc status=none",
            "carries linux_raid_member (at byte 67043328 of $NAME)",
        ),
        Way::carries(
            "an md member, superblock 1.0",
            "printf '\\374\\116\\053\\251' | dd of=$DISK bs=512 seek=131056 conv=notrunc status=none",
            "carries linux_raid_member (at byte 67100672 of $NAME)",
        ),
        Way::carries(
            "an md member, superblock 1.1",
            "printf '\\374\\116\\053\\251' | dd of=$DISK conv=notrunc status=none",
            "carries linux_raid_member (at byte 0 of $NAME)",
        ),
        Way::carries(
            "an md member, superblock 1.2",
            "printf '\\374\\116\\053\\251' | dd of=$DISK bs=512 seek=8 conv=notrunc status=none",
            "carries linux_raid_member (at byte 4096 of $NAME)",
        ),
        Way::carries(
            "a big-endian md member",
            "printf '\\251\\053\\116\\374' | dd of=$DISK bs=512 seek=130944 conv=notrunc status=none",
            "carries linux_raid_member",
        ),
        Way::carries(
            "a ZFS member, first label",
            "printf '\\014\\261\\272\\0\\0\\0\\0\\0' | dd of=$DISK bs=1024 seek=128 conv=notrunc status=none",
            "carries zfs_member (at byte 131072 of $NAME)",
        ),
        Way::carries(
            "a ZFS member, second label",
            "printf '\\014\\261\\272\\0\\0\\0\\0\\0' | dd of=$DISK bs=1024 seek=400 conv=notrunc status=none",
            "carries zfs_member",
        ),
        Way::carries(
            "a ZFS member with only the label at its end",
            "printf '\\0\\0\\0\\0\\0\\272\\261\\014' | dd of=$DISK bs=1024 seek=65408 conv=notrunc status=none",
            "carries zfs_member",
        ),
        Way::carries(
            "bcache",
            "printf '\\306\\205\\163\\366\\116\\032\\105\\312\\202\\145\\365\\177\\110\\272\\155\\201' | dd of=$DISK bs=1 seek=4120 conv=notrunc status=none",
            "carries bcache",
        ),
        Way::carries(
            "reiserfs",
            "printf ReIsEr2Fs | dd of=$DISK bs=1 seek=65588 conv=notrunc status=none",
            "carries reiserfs",
        ),
        Way::carries("jfs", "printf JFS1 | dd of=$DISK bs=512 seek=64 conv=notrunc status=none", "carries jfs"),
        Way::carries(
            "gfs2",
            "printf '\\001\\026\\031\\160' | dd of=$DISK bs=1024 seek=64 conv=notrunc status=none",
            "carries gfs2",
        ),
        Way::carries("ocfs2", "printf OCFSV2 | dd of=$DISK bs=1024 seek=1 conv=notrunc status=none", "carries ocfs2"),
        Way::carries(
            "HFS+",
            "printf 'H+\\0\\004' | dd of=$DISK bs=1024 seek=1 conv=notrunc status=none",
            "carries hfsplus",
        ),
        Way::carries("APFS", "printf NXSB | dd of=$DISK bs=1 seek=32 conv=notrunc status=none", "carries apfs"),
        Way::carries(
            "BitLocker",
            "printf -- '-FVE-FS-' | dd of=$DISK bs=1 seek=3 conv=notrunc status=none",
            "carries BitLocker",
        ),
        Way::carries(
            "ReFS",
            "printf 'ReFS\\0\\0\\0\\0' | dd of=$DISK bs=1 seek=3 conv=notrunc status=none",
            "carries ReFS",
        ),
        Way::carries("UDF", "printf NSR02 | dd of=$DISK bs=1 seek=34817 conv=notrunc status=none", "carries udf"),
        Way::carries(
            "ISO 9660",
            "printf CD001 | dd of=$DISK bs=1 seek=32769 conv=notrunc status=none",
            "carries iso9660",
        ),
        Way::carries("squashfs", "printf hsqs | dd of=$DISK conv=notrunc status=none", "carries squashfs"),
        Way::carries(
            "erofs",
            "printf '\\342\\341\\365\\340' | dd of=$DISK bs=1024 seek=1 conv=notrunc status=none",
            "carries erofs",
        ),
        Way::carries(
            "VMFS",
            "printf '\\015\\320\\001\\300' | dd of=$DISK bs=1M seek=1 conv=notrunc status=none",
            "carries VMFS_volume_member",
        ),
        Way::carries(
            "Ceph BlueStore",
            "printf 'bluestore block device' | dd of=$DISK conv=notrunc status=none",
            "carries ceph_bluestore",
        ),
        Way::carries(
            "Oracle ASM",
            "printf ORCLDISK | dd of=$DISK bs=1 seek=32 conv=notrunc status=none",
            "carries oracleasm",
        ),
        Way::carries(
            "UFS1",
            "printf '\\124\\031\\001\\0' | dd of=$DISK bs=1 seek=9564 conv=notrunc status=none",
            "carries ufs (at byte 9564 of $NAME)",
        ),
        Way::carries(
            "UFS2",
            "printf '\\031\\001\\124\\031' | dd of=$DISK bs=1 seek=66908 conv=notrunc status=none",
            "carries ufs (at byte 66908 of $NAME)",
        ),
        Way::carries(
            "SPARC UFS",
            "printf '\\0\\001\\031\\124' | dd of=$DISK bs=1 seek=9564 conv=notrunc status=none",
            "carries ufs",
        ),
        Way::carries(
            "VxFS",
            "printf '\\365\\374\\001\\245' | dd of=$DISK bs=1024 seek=1 conv=notrunc status=none",
            "carries vxfs",
        ),
        Way::carries("UBI", "printf 'UBI#' | dd of=$DISK conv=notrunc status=none", "carries ubi"),
        Way::carries("zonefs", "printf SFOZ | dd of=$DISK conv=notrunc status=none", "carries zonefs"),
        Way::carries(
            "HPFS",
            "printf '\\111\\350\\225\\371' | dd of=$DISK bs=1024 seek=8 conv=notrunc status=none",
            "carries hpfs",
        ),
        Way::carries(
            "an Intel RAID member",
            "printf 'Intel Raid ISM Cfg Sig. 1.0' | dd of=$DISK bs=512 seek=131070 conv=notrunc status=none",
            "carries isw_raid_member",
        ),
        Way::carries(
            "a DDF RAID member",
            "printf '\\336\\021\\336\\021' | dd of=$DISK bs=512 seek=131071 conv=notrunc status=none",
            "carries ddf_raid_member",
        ),
        Way::carries(
            "an NVIDIA RAID member",
            "printf 'NVIDIA  ' | dd of=$DISK bs=512 seek=131070 conv=notrunc status=none",
            "carries nvidia_raid_member",
        ),
        Way::carries(
            "a Promise RAID member",
            "printf 'Promise Technology, Inc.' | dd of=$DISK bs=512 seek=131009 conv=notrunc status=none",
            "carries promise_fasttrack_raid_member",
        ),
        Way::carries(
            "an LSI RAID member",
            "printf '$XIDE$' | dd of=$DISK bs=512 seek=131071 conv=notrunc status=none",
            "carries lsi_mega_raid_member",
        ),
        Way::carries("a GPT", "sgdisk -o $DISK", "carries gpt"),
        Way::carries("a GPT", "parted -s $DISK mklabel gpt", "carries gpt").sectors(4096),
        Way::carries(
            "a GPT whose first MiB is lost",
            "sgdisk -o $DISK; dd if=/dev/zero of=$DISK bs=1M count=1 conv=notrunc status=none",
            "carries gpt (at byte 67108352 of $NAME)",
        ),
        Way::carries(
            "only the protective MBR of a GPT",
            "sgdisk -o $DISK; dd if=/dev/zero of=$DISK bs=512 seek=1 conv=notrunc status=none || true",
            "carries gpt (at byte 510 of $NAME)",
        ),
        Way::carries(
            "an MBR",
            "parted -s $DISK mklabel msdos mkpart primary 1MiB 32MiB",
            "carries dos (at byte 510 of $NAME)",
        ),
        Way::carries("an MBR without partitions", "parted -s $DISK mklabel msdos", "carries dos"),
        Way::carries("a Mac partition map", "parted -s $DISK mklabel mac", "carries mac"),
        Way::carries("a BSD disklabel", "parted -s $DISK mklabel bsd", "carries bsd"),
        Way::carries(
            "a BSD disklabel at the Alpha offset",
            "printf '\\127\\105\\126\\202' | dd of=$DISK bs=1 seek=64 conv=notrunc status=none",
            "carries bsd (at byte 64 of $NAME)",
        ),
        Way::carries("a Sun disklabel", "parted -s $DISK mklabel sun", "carries sun"),
        Way::carries("an SGI volume header", "parted -s $DISK mklabel dvh", "carries sgi"),
        Way::carries(
            "an AIX label",
            "printf '\\311\\302\\324\\301' | dd of=$DISK conv=notrunc status=none",
            "carries aix",
        ),
        Way::carries(
            "DRBD (known only to libblkid)",
            "printf '\\203\\164\\002\\153' | dd of=$DISK bs=1 seek=67104828 conv=notrunc status=none",
            "carries drbd",
        ),
        Way::carries(
            "xfs whose first sector is lost",
            "mkfs.xfs -q -f $DISK; dd if=/dev/zero of=$DISK bs=512 count=1 conv=notrunc status=none",
            "carries xfs (at byte 512 of $NAME)",
        )
        .mib(320),
        Way::carries(
            "xfs whose first 16 MiB are lost",
            "mkfs.xfs -q -f $DISK; dd if=/dev/zero of=$DISK bs=1M count=16 conv=notrunc status=none",
            "carries xfs (at byte 83886080 of $NAME)",
        )
        .mib(320),
        Way::carries(
            "exFAT whose first 64 KiB are lost",
            "mkfs.exfat $DISK; dd if=/dev/zero of=$DISK bs=64K count=1 conv=notrunc status=none",
            "holds data of an unknown format",
        ),
        Way::carries(
            "f2fs whose first 64 KiB are lost",
            "mkfs.f2fs -q -f $DISK; dd if=/dev/zero of=$DISK bs=64K count=1 conv=notrunc status=none",
            "holds data of an unknown format",
        ),
        Way::carries(
            "LVM metadata without a label",
            "pvcreate -qq -f $DISK; dd if=/dev/zero of=$DISK bs=4096 count=1 conv=notrunc status=none",
            "carries LVM2_member (at byte 4100 of $NAME)",
        ),
        Way::carries(
            "a QEMU image written to the device",
            "qemu-img create -q -f qcow2 $DIR/image 16M; dd if=$DIR/image of=$DISK conv=notrunc status=none",
            "carries qcow2",
        ),
        Way::carries(
            "a VMware image written to the device",
            "qemu-img create -q -f vmdk $DIR/image 16M; dd if=$DIR/image of=$DISK conv=notrunc status=none",
            "carries vmdk",
        ),
        Way::carries(
            "a VirtualBox image written to the device",
            "qemu-img create -q -f vdi $DIR/image 16M; dd if=$DIR/image of=$DISK conv=notrunc status=none",
            "carries vdi",
        ),
        Way::carries(
            "a Hyper-V image written to the device",
            "qemu-img create -q -f vhdx $DIR/image 16M; dd if=$DIR/image of=$DISK conv=notrunc status=none",
            "carries vhdx",
        ),
        Way::carries(
            "a tar backup",
            "echo precious >$DIR/file; tar -C $DIR -cf - file | dd of=$DISK conv=notrunc status=none",
            "carries tar",
        ),
        Way::carries(
            "a compressed tar backup",
            "echo precious >$DIR/file; tar -C $DIR -czf - file | dd of=$DISK conv=notrunc status=none",
            "carries gzip",
        ),
        Way::carries(
            "an SBD device (cluster fencing)",
            "printf SBD_SBD_ | dd of=$DISK conv=notrunc status=none",
            "carries sbd",
        ),
        Way::carries(
            "an SPDK blobstore",
            "printf SPDKBLOB | dd of=$DISK conv=notrunc status=none",
            "carries spdk_blobstore",
        ),
        Way::carries(
            "a Windows dynamic disk (LDM)",
            "printf PRIVHEAD | dd of=$DISK bs=512 seek=6 conv=notrunc status=none",
            "carries ldm_member",
        ),
        Way::carries(
            "a Windows dynamic disk whose first MiB is lost",
            "printf PRIVHEAD | dd of=$DISK bs=512 seek=131071 conv=notrunc status=none",
            "carries ldm_member (at byte 67108352 of $NAME)",
        ),
        Way::carries(
            "a Storage Spaces member",
            "printf 'SPACEDB ' | dd of=$DISK conv=notrunc status=none",
            "carries storage_spaces",
        ),
        Way::new(
            "ext4 in a partition unknown to the kernel, table named",
            "sgdisk -n 1:2048:67583 $FILE; mkfs.ext4 -q -E offset=1048576 $FILE 32M",
            "--destroy $NAME --signature gpt",
            "carries ext4 (at byte 1080 of the partition at byte 1048576 of $NAME)",
        ),
        Way::new(
            "ext4 in a logical partition unknown to the kernel, table named",
            "parted -s $FILE mklabel msdos mkpart extended 2048s 100000s mkpart logical 4096s 69631s; \
             mkfs.ext4 -q -E offset=2097152 $FILE 32M",
            "--destroy $NAME --signature dos",
            "carries ext4 (at byte 1080 of the partition at byte 2097152 of $NAME)",
        ),
        Way::new(
            "ext4 in a partition of an MBR inside a partition",
            "addpart $DISK 1 2048 98304; truncate -s 48M $DIR/inner; parted -s $DIR/inner mklabel msdos mkpart primary 2048s 90111s; \
             mkfs.ext4 -q -E offset=1048576 $DIR/inner 40M; dd if=$DIR/inner of=${DISK}p1 bs=1M conv=notrunc status=none",
            "--destroy $NAME --signature dos",
            "carries ext4 (at byte 1080 of the partition at byte 1048576 of $NAMEp1)",
        )
        .undo("delpart $DISK 1"),
        Way::carries(
            "a database on the raw device",
            "head -c 64K /etc/services | dd of=$DISK bs=1M seek=20 conv=notrunc status=none; \
             yes 'insert into accounts' | head -c 4M | dd of=$DISK bs=1M seek=30 conv=notrunc status=none",
            "holds data of an unknown format",
        ),
        Way::carries(
            "one block of text near the start",
            "echo precious | dd of=$DISK bs=1M seek=1 conv=notrunc status=none",
            "of 2560 sampled blocks are structured, 0.04 % are not empty; to overwrite them, add --signature data:0.04%",
        ),
        Way::new(
            "data on the raw device, wrong share named",
            "yes 'insert into accounts' | head -c 8M | dd of=$DISK conv=notrunc status=none",
            "--destroy $NAME --signature data:10%",
            "--signature data:80.00%",
        ),
        Way::new(
            "a named partition table next to data",
            "sgdisk -o $DISK; yes precious | head -c 4M | dd of=$DISK bs=1M seek=2 conv=notrunc status=none",
            "--destroy $NAME --signature gpt",
            "holds data of an unknown format",
        ),
        Way::new(
            "ext4, another signature named",
            "mkfs.ext4 -q $DISK",
            "--destroy $NAME --signature xfs",
            "carries ext4",
        ),
        Way::new(
            "ext4, only part of its name given",
            "mkfs.ext4 -q $DISK",
            "--destroy $NAME --signature ext",
            "carries ext4",
        ),
        Way::new(
            "ext4, empty signature given",
            "mkfs.ext4 -q $DISK",
            "--destroy $NAME --signature ''",
            "carries ext4",
        ),
        Way::new(
            "ISO 9660 and an MBR, only one named",
            "parted -s $DISK mklabel msdos; printf CD001 | dd of=$DISK bs=1 seek=32769 conv=notrunc status=none",
            "--destroy $NAME --signature iso9660",
            "carries dos",
        ),
        Way::new(
            "ext4 in a partition, disk named",
            "addpart $DISK 1 2048 65536; mkfs.ext4 -q ${DISK}p1",
            DESTROY,
            "carries ext4 (at byte 1080 of $NAMEp1)",
        )
        .undo("delpart $DISK 1"),
        Way::new(
            "ext4 in a partition that starts at an odd sector",
            "addpart $DISK 1 63 65537; mkfs.ext4 -q ${DISK}p1",
            DESTROY,
            "carries ext4 (at byte 1080 of $NAMEp1)",
        )
        .undo("delpart $DISK 1"),
        Way::new(
            "an md member in the second partition, superblock at its end",
            "addpart $DISK 1 2048 2048; addpart $DISK 2 4096 8195; \
             printf '\\374\\116\\053\\251' | dd of=${DISK}p2 bs=512 seek=8064 conv=notrunc status=none",
            DESTROY,
            "carries linux_raid_member (at byte 4128768 of $NAMEp2)",
        )
        .undo("delpart $DISK 1; delpart $DISK 2"),
        Way::new(
            "swap in a named partition",
            "addpart $DISK 1 2048 65536; mkswap ${DISK}p1",
            "--destroy $NAMEp1",
            "carries swap",
        )
        .target("$DISKp1")
        .undo("delpart $DISK 1"),
    ]
}
