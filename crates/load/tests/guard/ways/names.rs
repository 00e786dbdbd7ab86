//! Names that the user gives, and the targets that they lead to.

use super::{DESTROY, OVERWRITE, Way};

pub fn ways() -> Vec<Way> {
    let named = "to allow it, add --destroy $NAME";
    vec![
        Way::new("a device without `--destroy`", "true", "", named),
        Way::new("a device with `--overwrite`", "true", OVERWRITE, named),
        Way::new("a device, empty name", "true", "--destroy ''", named),
        Way::new("a device, name of its driver", "true", "--destroy loop", named),
        Way::new("a device, longer name", "true", "--destroy $NAME0", named),
        Way::new("a device, name of its partition", "true", "--destroy $NAMEp1", named),
        Way::new("a device, name in capitals", "true", "--destroy LOOP0", named),
        Way::new("a device, pattern", "true", "--destroy loop*", named),
        Way::new("a device, `/dev`", "true", "--destroy /dev", named),
        Way::new("a device, another device", "true", "--destroy /dev/null", named),
        Way::new("a device, name of another disk", "true", "--destroy sda", named),
        Way::new("a device, serial number of another drive", "true", "--destroy ZX1234", named),
        Way::new("a device, its backing file", "true", "--destroy $FILE", named),
        Way::new("a device, file of the same name", ">$DIR/$NAME", "--destroy $DIR/$NAME", named),
        Way::new("a device, link to another one", "ln -s /dev/null $DIR/link", "--destroy $DIR/link", named),
        Way::new("a device, dangling link", "ln -s /dev/headstack-none $DIR/link", "--destroy $DIR/link", named),
        Way::new(
            "a partition, name of its disk",
            "addpart $DISK 1 2048 65536",
            DESTROY,
            "to allow it, add --destroy $NAMEp1; --destroy $NAME names another target",
        )
        .target("$DISKp1")
        .undo("delpart $DISK 1"),
        Way::new(
            "a disk, name of its partition",
            "addpart $DISK 1 2048 65536",
            "--destroy $NAMEp1",
            "--destroy $NAMEp1 names another target",
        )
        .undo("delpart $DISK 1"),
        Way::new("a link to a device", "ln -s $DISK $DIR/link", OVERWRITE, named).target("$DIR/link"),
        Way::new("a link to a link to a device", "ln -s $DISK $DIR/a; ln -s a $DIR/link", OVERWRITE, named)
            .target("$DIR/link"),
        Way::new("a device by a path with dots", "true", OVERWRITE, named).target("/dev/../dev/$NAME"),
        Way::new("another node of the device", "mknod $DIR/node b 7 ${NAME#loop}", OVERWRITE, named)
            .target("$DIR/node"),
        Way::new(
            "another node of a mounted device",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m; mknod $DIR/node b 7 ${NAME#loop}",
            "--destroy $NAME --signature ext4",
            "$NAME is mounted at $DIR/m",
        )
        .target("$DIR/node")
        .undo("umount $DIR/m"),
        Way::new("a node bind-mounted over a file", ">$DIR/file; mount --bind $DISK $DIR/file", OVERWRITE, named)
            .target("$DIR/file")
            .undo("umount $DIR/file"),
        Way::new(
            "a stale name in `/dev/disk`",
            "mkdir $DIR/by-id; ln -s /dev/null $DIR/by-id/disk; ln -sfn $DISK $DIR/by-id/disk",
            "--destroy /dev/null",
            named,
        )
        .target("$DIR/by-id/disk"),
        Way::new("a read-only device", "blockdev --setro $DISK", DESTROY, "is read-only")
            .undo("blockdev --setrw $DISK"),
        Way::new(
            "an existing file without `--overwrite`",
            "echo precious >$DIR/file",
            "",
            "exists and has 9B that would be overwritten; to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "an existing file, name of a device",
            "echo precious >$DIR/file",
            DESTROY,
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "an existing file, its own name",
            "echo precious >$DIR/file",
            "--destroy $DIR/file",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "an existing file, only `--create`",
            "echo precious >$DIR/file",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "an existing file, smaller `--create`",
            "echo precious >$DIR/file",
            "--create 4",
            "to allow it, add --overwrite",
        )
        .target("$DIR/file"),
        Way::new(
            "a link to an existing file",
            "echo precious >$DIR/file; ln -s file $DIR/link",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/link"),
        Way::new(
            "another hard link of a file",
            "echo precious >$DIR/file; ln $DIR/file $DIR/link",
            "--create 1MiB",
            "to allow it, add --overwrite",
        )
        .target("$DIR/link"),
        Way::new("a dangling link", "ln -s nothing $DIR/link", "--create 1MiB", "which does not exist")
            .target("$DIR/link"),
        Way::new("a folder", "mkdir $DIR/folder", "--overwrite --create 1MiB", "is a directory").target("$DIR/folder"),
        Way::new("a pipe", "mkfifo $DIR/pipe", "--overwrite --create 1MiB", "is a pipe").target("$DIR/pipe"),
        Way::new("a character device", "true", "--overwrite --destroy /dev/zero", "is a character device")
            .target("/dev/zero"),
        Way::new("a new file in `/dev`", "true", "--create 1MiB", "files in /dev are not created")
            .target("/dev/headstack-none"),
        Way::new("the same by a path with `..`", "true", "--create 1MiB", "files in /dev are not created")
            .target("/tmp/../dev/headstack-none"),
        Way::new(
            "the same by a link to the folder",
            "ln -s /dev $DIR/devices",
            "--create 1MiB",
            "files in /dev are not created",
        )
        .target("$DIR/devices/headstack-none"),
        Way::new(
            "the same through a bind mount",
            "mkdir $DIR/devices; mount --bind /dev $DIR/devices",
            "--create 1MiB",
            "files in /dev are not created",
        )
        .target("$DIR/devices/headstack-none")
        .undo("umount $DIR/devices"),
    ]
}
