//! Names that the user gives, and the targets that they lead to.

use super::{DESTROY, OVERWRITE, Way};

pub fn ways() -> Vec<Way> {
    let named = "to allow it, add --destroy $NAME";
    vec![
        Way::new("a device, and no name", "true", "", named),
        Way::new("a device, and a word for files", "true", OVERWRITE, named),
        Way::new("a device, and an empty name", "true", "--destroy ''", named),
        Way::new("a device, and the name of all its kind", "true", "--destroy loop", named),
        Way::new("a device, and a name that begins like it", "true", "--destroy $NAME0", named),
        Way::new("a device, and the name of a partition of it", "true", "--destroy $NAMEp1", named),
        Way::new("a device, and its name in capitals", "true", "--destroy LOOP0", named),
        Way::new("a device, and a pattern", "true", "--destroy loop*", named),
        Way::new("a device, and the folder of devices", "true", "--destroy /dev", named),
        Way::new("a device, and another device", "true", "--destroy /dev/null", named),
        Way::new("a device, and the name of a disk", "true", "--destroy sda", named),
        Way::new("a device, and the serial number of another drive", "true", "--destroy ZX1234", named),
        Way::new("a device, and the file behind it", "true", "--destroy $FILE", named),
        Way::new("a device, and a file that is called so", ">$DIR/$NAME", "--destroy $DIR/$NAME", named),
        Way::new("a device, and a link to another one", "ln -s /dev/null $DIR/link", "--destroy $DIR/link", named),
        Way::new(
            "a device, and a link to nothing",
            "ln -s /dev/headstack-none $DIR/link",
            "--destroy $DIR/link",
            named,
        ),
        Way::new(
            "a partition, and the name of its disk",
            "addpart $DISK 1 2048 65536",
            DESTROY,
            "to allow it, add --destroy $NAMEp1; --destroy $NAME names another target",
        )
        .target("$DISKp1")
        .undo("delpart $DISK 1"),
        Way::new(
            "a disk, and the name of a partition of it",
            "addpart $DISK 1 2048 65536",
            "--destroy $NAMEp1",
            "--destroy $NAMEp1 names another target",
        )
        .undo("delpart $DISK 1"),
        Way::new("a link to a device, and no name", "ln -s $DISK $DIR/link", OVERWRITE, named).target("$DIR/link"),
        Way::new("a link to a link to a device", "ln -s $DISK $DIR/a; ln -s a $DIR/link", OVERWRITE, named)
            .target("$DIR/link"),
        Way::new("a device by a path with dots", "true", OVERWRITE, named).target("/dev/../dev/$NAME"),
        Way::new("a node of the device elsewhere", "mknod $DIR/node b 7 ${NAME#loop}", OVERWRITE, named)
            .target("$DIR/node"),
        Way::new(
            "a node elsewhere of a device that is mounted",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m; mknod $DIR/node b 7 ${NAME#loop}",
            "--destroy $NAME --signature ext4",
            "$NAME is mounted at $DIR/m",
        )
        .target("$DIR/node")
        .undo("umount $DIR/m"),
        Way::new("a node that is bound over a file", ">$DIR/file; mount --bind $DISK $DIR/file", OVERWRITE, named)
            .target("$DIR/file")
            .undo("umount $DIR/file"),
        Way::new(
            "a name in /dev/disk that leads to another device by now",
            "mkdir $DIR/by-id; ln -s /dev/null $DIR/by-id/disk; ln -sfn $DISK $DIR/by-id/disk",
            "--destroy /dev/null",
            named,
        )
        .target("$DIR/by-id/disk"),
        Way::new("a device that takes no writes", "blockdev --setro $DISK", DESTROY, "is read-only")
            .undo("blockdev --setrw $DISK"),
        Way::new(
            "a file that exists, and no word",
            "echo precious >$DIR/file",
            "",
            "exists and has 9B that would be overwritten; to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a file that exists, and the name of a device",
            "echo precious >$DIR/file",
            DESTROY,
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a file that exists, and its own name",
            "echo precious >$DIR/file",
            "--destroy $DIR/file",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a file that exists, and a size to create",
            "echo precious >$DIR/file",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a file that exists, and a smaller size to create",
            "echo precious >$DIR/file",
            "--create 4",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a link to a file that exists",
            "echo precious >$DIR/file; ln -s file $DIR/link",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/link"),
        Way::new(
            "another name of a file",
            "echo precious >$DIR/file; ln $DIR/file $DIR/link",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/link"),
        Way::new("a link to nothing", "ln -s nothing $DIR/link", "--create 1MiB", "which does not exist")
            .target("$DIR/link"),
        Way::new("a folder", "mkdir $DIR/folder", "--overwrite --create 1MiB", "is a directory").target("$DIR/folder"),
        Way::new("a pipe", "mkfifo $DIR/pipe", "--overwrite --create 1MiB", "is a pipe").target("$DIR/pipe"),
        Way::new("a character device", "true", "--overwrite --destroy /dev/zero", "is a character device")
            .target("/dev/zero"),
        Way::new(
            "a file that would be created among the devices",
            "true",
            "--create 1MiB",
            "files in /dev are not created",
        )
        .target("/dev/headstack-none"),
        Way::new("the same, by a path with dots", "true", "--create 1MiB", "files in /dev are not created")
            .target("/tmp/../dev/headstack-none"),
        Way::new(
            "the same, by a link to the folder",
            "ln -s /dev $DIR/devices",
            "--create 1MiB",
            "files in /dev are not created",
        )
        .target("$DIR/devices/headstack-none"),
        Way::new(
            "the same, bound elsewhere",
            "mkdir $DIR/devices; mount --bind /dev $DIR/devices",
            "--create 1MiB",
            "files in /dev are not created",
        )
        .target("$DIR/devices/headstack-none")
        .undo("umount $DIR/devices"),
    ]
}
