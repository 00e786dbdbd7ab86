//! Writes that are requested and hurt no one.

use super::{DESTROY, OVERWRITE, Way};

pub fn ways() -> Vec<Way> {
    vec![
        Way::new("an empty device", "true", DESTROY, ""),
        Way::new("an empty device", "true", DESTROY, "").sectors(4096),
        Way::new("an empty device by its path", "true", "--destroy $DISK", ""),
        Way::new("an empty device by a link", "ln -s $DISK $DIR/link", "--destroy $DIR/link", "").target("$DIR/link"),
        Way::new("an empty device by another node", "mknod $DIR/node b 7 ${NAME#loop}", DESTROY, "").target("$DIR/node"),
        Way::new("a device with random data", "head -c 4M /dev/urandom | dd of=$DISK conv=notrunc status=none", DESTROY, ""),
        Way::new("a device filled with one byte", "tr '\\0' '\\377' </dev/zero | head -c 64M | dd of=$DISK conv=notrunc status=none", DESTROY, ""),
        Way::new(
            "data on the raw device, share named",
            "yes 'insert into accounts' | head -c 8M | dd of=$DISK conv=notrunc status=none",
            "--destroy $NAME --signature data:80%",
            "",
        ),
        Way::new("ext4, named", "mkfs.ext4 -q $DISK", "--destroy $NAME --signature ext4", ""),
        Way::new("ext4, named in capitals", "mkfs.ext4 -q $DISK", "--destroy $NAME --signature EXT4", ""),
        Way::new("a GPT, named", "sgdisk -o $DISK", "--destroy $NAME --signature gpt", ""),
        Way::new(
            "ext4 with wiped signatures",
            "mkfs.ext4 -q -b 4096 $DISK; wipefs -q -a $DISK; dd if=/dev/zero of=$DISK bs=1M seek=0 count=64 conv=notrunc status=none",
            DESTROY,
            "",
        ),
        Way::new(
            "a file system after unmounting",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m; umount $DIR/m",
            "--destroy $NAME --signature ext4",
            "",
        ),
        Way::new("inactive swap", "mkswap $DISK; swapon $DISK; swapoff $DISK", "--destroy $NAME --signature swap", ""),
        Way::new(
            "a partition next to a mounted one",
            "addpart $DISK 1 2048 32768; addpart $DISK 2 34816 32768; mkfs.ext4 -q ${DISK}p1; mkdir $DIR/m; mount -o ro,noload ${DISK}p1 $DIR/m",
            "--destroy $NAMEp2",
            "",
        )
        .target("$DISKp2")
        .undo("umount $DIR/m; delpart $DISK 1; delpart $DISK 2"),
        Way::new(
            "a partition next to one open for writing",
            "addpart $DISK 1 2048 32768; addpart $DISK 2 34816 32768; hold sleep 1000 9<>${DISK}p1",
            "--destroy $NAMEp2",
            "",
        )
        .target("$DISKp2")
        .undo("release; delpart $DISK 1; delpart $DISK 2"),
        Way::new("a device that a process reads", "hold sleep 1000 9<$DISK", DESTROY, "").undo("release"),
        Way::new("a new file", "true", "--create 1MiB", "").target("$DIR/new"),
        Way::new("an existing file with `--overwrite`", "head -c 1M /dev/urandom >$DIR/file", OVERWRITE, "").target("$DIR/file"),
        Way::new("an unused file system in a file", "truncate -s 16M $DIR/image; mkfs.ext4 -q $DIR/image", OVERWRITE, "").target("$DIR/image"),
        Way::new("a file that a process reads", "head -c 1M /dev/urandom >$DIR/file; hold sleep 1000 9<$DIR/file", OVERWRITE, "")
            .target("$DIR/file")
            .undo("release"),
        Way::new("a file that was behind a loop device", "truncate -s 1M $DIR/file; losetup --detach $(losetup --find --show $DIR/file)", OVERWRITE, "").target("$DIR/file"),
        Way::new(
            "a file on an overlay with unused layers",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; head -c 1M /dev/urandom >$DIR/u/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m",
            OVERWRITE,
            "",
        )
        .target("$DIR/m/image")
        .undo("umount $DIR/m"),
        Way::new(
            "a file in a layer of an overlay with `--signature overlay`",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; head -c 1M /dev/urandom >$DIR/l/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m",
            "--overwrite --signature overlay",
            "",
        )
        .target("$DIR/l/image")
        .undo("umount $DIR/m"),
        Way::new("a file to be grown with `--overwrite`", "head -c 1M /dev/urandom >$DIR/file", "--overwrite --create 2MiB", "").target("$DIR/file"),
    ]
}
