//! Writes that are requested and hurt no one.

use super::{DESTROY, OVERWRITE, Way};

pub fn ways() -> Vec<Way> {
    vec![
        Way::new("an empty device", "true", DESTROY, ""),
        Way::new("an empty device", "true", DESTROY, "").sectors(4096),
        Way::new("an empty device by its path", "true", "--destroy $DISK", ""),
        Way::new("an empty device by a link", "ln -s $DISK $DIR/link", "--destroy $DIR/link", "").target("$DIR/link"),
        Way::new("an empty device by a node elsewhere", "mknod $DIR/node b 7 ${NAME#loop}", DESTROY, "").target("$DIR/node"),
        Way::new("a device of noise", "head -c 4M /dev/urandom | dd of=$DISK conv=notrunc status=none", DESTROY, ""),
        Way::new("a device of one byte throughout", "tr '\\0' '\\377' </dev/zero | head -c 64M | dd of=$DISK conv=notrunc status=none", DESTROY, ""),
        Way::new(
            "data on the raw device, and their share is named",
            "yes 'insert into accounts' | head -c 8M | dd of=$DISK conv=notrunc status=none",
            "--destroy $NAME --signature data:80%",
            "",
        ),
        Way::new("ext4 that is named", "mkfs.ext4 -q $DISK", "--destroy $NAME --signature ext4", ""),
        Way::new("ext4 that is named in capitals", "mkfs.ext4 -q $DISK", "--destroy $NAME --signature EXT4", ""),
        Way::new("a GPT that is named", "sgdisk -o $DISK", "--destroy $NAME --signature gpt", ""),
        Way::new(
            "ext4 whose signatures were wiped",
            "mkfs.ext4 -q -b 4096 $DISK; wipefs -q -a $DISK; dd if=/dev/zero of=$DISK bs=1M seek=0 count=64 conv=notrunc status=none",
            DESTROY,
            "",
        ),
        Way::new(
            "a file system that was mounted and is no more",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m; umount $DIR/m",
            "--destroy $NAME --signature ext4",
            "",
        ),
        Way::new("swap that was on and is off", "mkswap $DISK; swapon $DISK; swapoff $DISK", "--destroy $NAME --signature swap", ""),
        Way::new(
            "a partition beside one that is mounted",
            "addpart $DISK 1 2048 32768; addpart $DISK 2 34816 32768; mkfs.ext4 -q ${DISK}p1; mkdir $DIR/m; mount -o ro,noload ${DISK}p1 $DIR/m",
            "--destroy $NAMEp2",
            "",
        )
        .target("$DISKp2")
        .undo("umount $DIR/m; delpart $DISK 1; delpart $DISK 2"),
        Way::new(
            "a partition beside one that a server writes",
            "addpart $DISK 1 2048 32768; addpart $DISK 2 34816 32768; hold sleep 1000 9<>${DISK}p1",
            "--destroy $NAMEp2",
            "",
        )
        .target("$DISKp2")
        .undo("release; delpart $DISK 1; delpart $DISK 2"),
        Way::new("a device that somebody reads", "hold sleep 1000 9<$DISK", DESTROY, "").undo("release"),
        Way::new("a new file", "true", "--create 1MiB", "").target("$DIR/new"),
        Way::new("a file that exists, and the word", "head -c 1M /dev/urandom >$DIR/file", OVERWRITE, "").target("$DIR/file"),
        Way::new("a file system in a file that nobody uses", "truncate -s 16M $DIR/image; mkfs.ext4 -q $DIR/image", OVERWRITE, "").target("$DIR/image"),
        Way::new("a file that somebody reads", "head -c 1M /dev/urandom >$DIR/file; hold sleep 1000 9<$DIR/file", OVERWRITE, "")
            .target("$DIR/file")
            .undo("release"),
        Way::new("a file that was behind a loop device", "truncate -s 1M $DIR/file; losetup --detach $(losetup --find --show $DIR/file)", OVERWRITE, "").target("$DIR/file"),
        Way::new(
            "a file on an overlay whose layers are in use by nobody",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; head -c 1M /dev/urandom >$DIR/u/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m",
            OVERWRITE,
            "",
        )
        .target("$DIR/m/image")
        .undo("umount $DIR/m"),
        Way::new(
            "a file in a layer of an overlay, which is allowed",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; head -c 1M /dev/urandom >$DIR/l/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m",
            "--overwrite --signature overlay",
            "",
        )
        .target("$DIR/l/image")
        .undo("umount $DIR/m"),
        Way::new("a file to be grown, and the word", "head -c 1M /dev/urandom >$DIR/file", "--overwrite --create 2MiB", "").target("$DIR/file"),
    ]
}
