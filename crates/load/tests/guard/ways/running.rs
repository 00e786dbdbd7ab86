//! Uses of a target that begin while it is being written.

use super::{DESTROY, Way};

pub fn ways() -> Vec<Way> {
    let ways = vec![
        Way::new("a loop device is set up on the device", "losetup --find --show $DISK >$DIR/loop", DESTROY, "$NAME is held by loop")
            .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new("a loop device is set up on its backing file", "losetup --find --show $FILE >$DIR/loop", DESTROY, "$NAME is on a file that also backs loop")
            .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a loop device is set up on the device and mounted",
            "mkfs.ext4 -q -F $FILE; blockdev --flushbufs $DISK; a=$(losetup --find --show $DISK); echo $a >$DIR/loop; mkdir $DIR/m; mount -o ro,noload $a $DIR/m",
            DESTROY,
            "is mounted at $DIR/m",
        )
        .undo("umount $DIR/m; losetup --detach $(cat $DIR/loop)"),
        Way::new("a server opens the device for writing", "hold sleep 1000 9<>$DISK", DESTROY, "has it open for writing")
            .undo("release"),
        Way::new("a server opens the file behind it for writing", "hold sleep 1000 9<>$FILE", DESTROY, "has it open for writing")
            .undo("release"),
        Way::new(
            "a partition is added and opened for writing",
            "addpart $DISK 1 2048 65536; hold sleep 1000 9<>${DISK}p1",
            DESTROY,
            "has it open for writing",
        )
        .undo("release; delpart $DISK 1"),
        Way::new(
            "a partition is added, with a loop device on it",
            "addpart $DISK 1 2048 65536; losetup --find --show ${DISK}p1 >$DIR/loop",
            DESTROY,
            "$NAMEp1 is held by loop",
        )
        .undo("losetup --detach $(cat $DIR/loop); delpart $DISK 1"),
        Way::new("a loop device is set up on the file", "losetup --find --show $DIR/target >$DIR/loop", "--create 1MiB", "it is behind loop")
            .target("$DIR/target")
            .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "the file is mounted",
            "mkfs.ext2 -q -F $DIR/target; mkdir $DIR/m; mount -o ro,loop $DIR/target $DIR/m",
            "--create 1MiB",
            "is mounted at $DIR/m",
        )
        .target("$DIR/target")
        .undo("umount $DIR/m"),
        Way::new(
            "the file is used as swap",
            "chmod 600 $DIR/target; mkswap $DIR/target; swapon $DIR/target",
            "--create 1MiB",
            "it is used as swap",
        )
        .target("$DIR/target")
        .undo("swapoff $DIR/target"),
        Way::new("a server opens the file for writing", "hold sleep 1000 9<>$DIR/target", "--create 1MiB", "has it open for writing")
            .target("$DIR/target")
            .undo("release"),
        Way::new(
            "a server opens the file for writing by another hard link",
            "ln $DIR/target $DIR/alias; hold sleep 1000 9>>$DIR/alias",
            "--create 1MiB",
            "has it open for writing",
        )
        .target("$DIR/target")
        .undo("release"),
        Way::new("a process locks the file", "exec 9<$DIR/target; flock --exclusive 9; hold sleep 1000", "--create 1MiB", "holds a lock on it")
            .target("$DIR/target")
            .undo("release"),
        // Uses that are permitted.
        Way::new("a process reads the file", "hold sleep 1000 9<$DIR/target", "--create 1MiB", "")
            .target("$DIR/target")
            .undo("release"),
        Way::new("a process reads the device", "hold sleep 1000 9<$DISK", DESTROY, "")
            .undo("release"),
        Way::new("udev locks the device to probe it", "exec 9<$DISK; flock --shared 9; hold sleep 1000", DESTROY, "")
            .undo("release"),
        Way::new("a partition is added", "addpart $DISK 1 2048 65536", DESTROY, "").undo("delpart $DISK 1"),
        Way::new(
            "a server opens another file",
            "hold sleep 1000 9>$DIR/other",
            "--create 1MiB",
            "",
        )
        .target("$DIR/target")
        .undo("release"),
        Way::new("the file gets another hard link", "mv $DIR/target $DIR/moved", "--create 1MiB", "").target("$DIR/target"),
    ];
    ways.into_iter().map(Way::running).collect()
}
